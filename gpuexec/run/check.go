package run

import (
	"fmt"
	"math"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
)

// check says whether an engine can execute p on x, and returns its count bound.
func Check(p *gpuexec.Plan, x *index.Index) (bound uint32, err error) {
	if p.Kind != gpuexec.PlanMatch {
		return 0, planErrorf("plan kind %d is not supported", p.Kind)
	}
	m := &p.Match
	if m.K < 1 || m.K > gpuexec.MaxK {
		return 0, planErrorf("k is %d, it must be 1 to %d", m.K, gpuexec.MaxK)
	}
	if v := m.Verify; v != nil {
		if v.K < 1 || v.K > gpuexec.MaxK {
			return 0, planErrorf("k is %d, it must be 1 to %d", v.K, gpuexec.MaxK)
		}
		if kind := x.Schema().Kind; kind != index.Sequences {
			return 0, planErrorf("texts are compared in indexes of sequences only, this is one of %s", kind)
		}
	}
	attrs := x.Attributes()
	var total uint64 // as Index.CountBound has it; an item adds less than 2^48
	for i, item := range m.Query.Items {
		if int64(item.Attr) >= int64(len(attrs)) {
			return 0, planErrorf("item %d asks for attribute %d of %d", i, item.Attr, len(attrs))
		}
		if item.Weight < 1 || item.Weight > index.MaxWeight {
			return 0, planErrorf("item %d has weight %d, it must be 1 to %d", i, item.Weight, index.MaxWeight)
		}
		if uint64(item.First)+uint64(item.Count) > uint64(len(m.Query.Spans)) {
			return 0, planErrorf("item %d has spans that the query has not", i)
		}
		// Disjoint spans are what makes the count bound a bound.
		end := uint32(0) // of the last one
		for _, span := range m.Query.ItemSpans(item) {
			if span.Lo < end || span.Lo >= span.Hi || span.Hi > attrs[item.Attr].Keywords {
				return 0, planErrorf("item %d has a span [%d, %d) that is empty, out of order or beyond the %d keywords of its attribute",
					i, span.Lo, span.Hi, attrs[item.Attr].Keywords)
			}
			end = span.Hi
		}
		if end > 0 {
			total += uint64(item.Weight) * uint64(attrs[item.Attr].MaxPerObject)
		}
	}
	if total > math.MaxUint32 {
		return 0, planErrorf("match counts could reach %d, more than 4294967295: use smaller weights or fewer items", total)
	}
	return uint32(total), nil
}

func planErrorf(format string, args ...any) error {
	return &gpuexec.PlanError{Reason: fmt.Sprintf(format, args...)}
}
