package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// Limits are the rates of a device that bound matching. docs/benchmarks/limits.cu measures them and prints them as JSON.
type Limits struct {
	SharedAtomics float64 `json:"shared_atomics_per_s"` // additions to counters in shared memory, free of bank conflicts
	L2Bytes       float64 `json:"l2_bytes_per_s"`       // reading what lies in the L2 cache
	HBMBytes      float64 `json:"hbm_bytes_per_s"`      // copying device memory, bytes read and written
	Source        string  `json:"source"`               // where the figures are from
}

// Achieved are the rates that match and select reached, as shares of Limits. They take every posting that the queries
// touch for one atomic addition and for two bytes read through L2, which is what the (query, tile) kernel does. The shared-decode
// kernel does neither, so its shares say how much work it avoids, and may exceed 1. HBM is a lower bound of the
// traffic: the resident index, read once a batch.
type Achieved struct {
	SharedAtomics float64 `json:"shared_atomics_share"`
	L2            float64 `json:"l2_share"`
	HBM           float64 `json:"hbm_share"`
	Source        string  `json:"limits_from"`
}

// ReadLimits reads what limits.cu printed.
func ReadLimits(path string) (*Limits, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	l := new(Limits)
	if err := json.Unmarshal(text, l); err != nil {
		return nil, fmt.Errorf("reading the limits in %s: %w", path, err)
	}
	return l, nil
}

// knownLimits are of devices that were measured before, nil for others.
func knownLimits(device string) *Limits {
	if strings.Contains(device, "H200") {
		return &Limits{
			// 13 additions a cycle and multiprocessor (the design's prototype, lists free of conflicts), and a copy through PyTorch.
			SharedAtomics: 3.4e12, HBMBytes: 4.3e12, Source: "H200, measured 2026-10 and 2026-11",
		}
	}
	return nil
}

func (l *Limits) achieved(scanned uint64, indexBytes int64, ms float64) *Achieved {
	if l == nil || ms <= 0 {
		return nil
	}
	share := func(amount, limit float64) float64 {
		if limit <= 0 {
			return 0
		}
		return amount / (ms / 1000) / limit
	}
	return &Achieved{
		SharedAtomics: share(float64(scanned), l.SharedAtomics),
		L2:            share(2*float64(scanned), l.L2Bytes),
		HBM:           share(float64(indexBytes), l.HBMBytes),
		Source:        l.Source,
	}
}
