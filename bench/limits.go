package bench

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"os"
	"strings"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/postings"
)

// Limits are the rates of a device that bound matching. docs/benchmarks/limits.cu measures them and prints them as JSON.
type Limits struct {
	SharedAtomics float64 `json:"shared_atomics_per_s"` // additions to counters in shared memory, free of bank conflicts
	SharedRows    float64 `json:"shared_rows_per_s"`    // rows of 128 bytes read from shared memory
	Logic         float64 `json:"logic_per_s"`          // three-input logic instructions of a warp
	Matrix        float64 `json:"matrix_per_s"`         // products of matrices of 64 x 256 and 256 x 128 bits
	L2Bytes       float64 `json:"l2_bytes_per_s"`       // reading what lies in the L2 cache
	HBMBytes      float64 `json:"hbm_bytes_per_s"`      // copying device memory, bytes read and written
	Source        string  `json:"source"`               // where the figures are from
}

// Achieved says how much of a device's limits match and select took. It is counted from what the batch did (gpuexec.Work),
// and from no more than it cannot do without, so that a share is a lower bound and at most 1.
//
//   - A posting that the (query, tile) kernel adds is an addition in shared memory, and two bytes through L2.
//   - A row of 1,024 objects that the shared-decode kernel adds to a query's counters is read from shared memory, with an
//     eighth of a row of row numbers, and takes 2.3 logic instructions in its tree of adders. An octet, eight rows, takes 6
//     rows of shared memory and 12 instructions to decode, once for a block of queries (docs/benchmarks/history,
//     2026-11-21-h200-sliced.md). The Gate is not counted.
//   - A step of the bound is a product on the tensor cores. What it passes on is counted beside that, and not counted here.
//   - From device memory comes once, whatever the batch: two bytes of each posting that is added, or of each that there is;
//     the planes of the attributes asked; the bound's row of bytes of each object.
type Achieved struct {
	TileQueries   int `json:"tile_queries"`   // executed by the (query, tile) kernel
	SlicedQueries int `json:"sliced_queries"` // by the shared-decode kernel
	BoundQueries  int `json:"filter_queries"` // by the bound, which recorded lines call so
	// Shares of the limits that are known, by their names in Limits without "_per_s".
	Shares map[string]float64 `json:"shares"`
	// Binds is the limit with the largest share when that is at least half, else "none": the time goes where nothing is
	// counted, the Gate, waiting and launching.
	Binds  string  `json:"binds"`
	Share  float64 `json:"share"` // the largest
	Source string  `json:"limits_from"`
}

const (
	rowReads, rowLogic     = 1 + 1./8, 2.3 // of a row that the shared-decode kernel adds
	octetReads, octetLogic = 6, 12         // of an octet that it decodes
	blockQueries           = 128           // its queries per block
)

// demand is what a batch cannot do without, beside what the engine counts.
type demand struct {
	octets uint64 // that the shared-decode kernel decodes, in all groups
	bytes  uint64 // read from device memory
}

// demandOf is the demand of plans that took so much work. Octets and planes are known where all of them were executed by the
// shared-decode kernel.
func demandOf(ix *index.Index, lists uint64, plans []gpuexec.Plan, work gpuexec.Work) (d demand) {
	d.bytes = 2 * min(work.TilePostings, lists)
	if work.BoundQueries > 0 {
		const stepBytes = 8 * 64 // of codes
		d.bytes += work.BoundSteps * stepBytes / uint64((work.BoundQueries+blockQueries-1)/blockQueries)
	}
	if work.SlicedQueries == len(plans) {
		const groupObjects = 1024
		groups := uint64((int(ix.Objects()) + groupObjects - 1) / groupObjects)
		d.octets = groups * octets(ix, plans)
		d.bytes += groups * groupObjects / 8 * planes(ix, plans)
	}
	return d
}

// octets is how many octets the shared-decode kernel decodes of a group for plans on sliced attributes alone: those that
// some query of a block needs.
func octets(ix *index.Index, plans []gpuexec.Plan) (total uint64) {
	const equal, less, atLeast = 0, 1, 2
	type octet struct{ attr, kind, number uint32 }
	for first := 0; first < len(plans); first += blockQueries {
		need := map[octet]struct{}{}
		for i := range plans[first:min(first+blockQueries, len(plans))] {
			query := queryOf(&plans[first+i])
			for _, item := range query.Items {
				codes := ix.Codes(int(item.Attr))
				for _, span := range query.Spans[item.First:][:item.Count] {
					lo, hi := codes.Of(span.Lo), codes.Of(span.Hi)
					switch {
					case lo == hi:
					case hi-lo == 1:
						need[octet{item.Attr, equal, lo / 8}] = struct{}{}
					default:
						need[octet{item.Attr, less, hi / 8}] = struct{}{}
						if lo > 0 {
							need[octet{item.Attr, atLeast, lo / 8}] = struct{}{}
						}
					}
				}
			}
		}
		total += uint64(len(need))
	}
	return total
}

// planes is how many planes the attributes have that the plans ask.
func planes(ix *index.Index, plans []gpuexec.Plan) (total uint64) {
	asked := make([]bool, len(ix.Attributes()))
	for i := range plans {
		for _, item := range queryOf(&plans[i]).Items {
			asked[item.Attr] = asked[item.Attr] || item.Count > 0
		}
	}
	for a := range asked {
		if asked[a] {
			total += uint64(bits.Len(uint(ix.Codes(a).Len())))
		}
	}
	return total
}

// ReadLimits reads what limits.cu printed.
func ReadLimits(path string) (*Limits, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	l := new(Limits)
	if err := json.NewDecoder(file).Decode(l); err != nil {
		return nil, fmt.Errorf("reading the limits in %s: %w", path, err)
	}
	return l, nil
}

// knownLimits are of devices that were measured before, nil for others.
func knownLimits(device string) *Limits {
	if strings.Contains(device, "H200") {
		return &Limits{
			SharedAtomics: 8.14e12, SharedRows: 2.59e11, Logic: 5.16e11, L2Bytes: 8.7e12, HBMBytes: 4.3e12, Matrix: 3.7e9,
			Source: "H200, measured 2026-11",
		}
	}
	return nil
}

// achieved is nil where nothing is known of the device, or of what it did.
func (l *Limits) achieved(work gpuexec.Work, d demand, ms float64) *Achieved {
	if l == nil || ms <= 0 || work == (gpuexec.Work{}) {
		return nil
	}
	a := &Achieved{
		TileQueries: work.TileQueries, SlicedQueries: work.SlicedQueries, BoundQueries: work.BoundQueries,
		Shares: map[string]float64{}, Binds: "none", Source: l.Source,
	}
	for _, unit := range []struct {
		name          string
		amount, limit float64
	}{
		{"shared_atomics", float64(work.TilePostings), l.SharedAtomics},
		{"l2_bytes", 2 * float64(work.TilePostings), l.L2Bytes},
		{"shared_rows", rowReads*float64(work.SlicedRows) + octetReads*float64(d.octets), l.SharedRows},
		{"logic", rowLogic*float64(work.SlicedRows) + octetLogic*float64(d.octets), l.Logic},
		{"matrix", float64(work.BoundSteps), l.Matrix},
		{"hbm_bytes", float64(d.bytes), l.HBMBytes},
	} {
		if unit.limit <= 0 || unit.amount == 0 {
			continue
		}
		share := unit.amount / (ms / 1000) / unit.limit
		a.Shares[unit.name] = share
		if a.Share = max(a.Share, share); share == a.Share && share >= 0.5 {
			a.Binds = unit.name
		}
	}
	return a
}

// queryOf is what a plan asks postings.
func queryOf(p *gpuexec.Plan) *postings.MatchQuery { return p.Query.(*postings.MatchQuery) }
