package near

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/geniemq/geniemq/bench/sets"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/tree"
)

// BuildsResult is how long a tree takes to build, beside the paper's (its Table 4).
type BuildsResult struct {
	Head
	Tree    string  `json:"tree"`
	Shape   string  `json:"shape"`
	Workers int     `json:"workers"`
	Built   float64 `json:"built_s"`
	GTS     float64 `json:"gts_s"`
	Bytes   int     `json:"bytes"`
}

func builds() Measurement {
	sizes := map[string]int{"words": 611_756, "tloc": 10_000_000, "vector": 200_000, "strands": 1_000_000, "color": 1_000_000}
	times := map[string]float64{"words": 0.11, "tloc": 1.1, "vector": 0.2, "strands": 2.47, "color": 0.54} // its Table 4
	return Measurement{
		Name: "builds", Short: "Measure how long trees take to build",
		Long: `Builds makes trees over data as large as the paper of GTS has (its Table 4): of a given shape, capacity 20, and as the cost model chooses, which
builds all shapes over a sample before. Only the tree is built, from objects in memory.`,
		Sets: []string{"words", "tloc", "vector", "strands", "color"},
		Run: func(ctx context.Context, o *Options, set string, tell func(Result) error) error {
			own := *o
			own.Objects = cmp.Or(own.Objects, sizes[set])
			s, err := sets.Open(set, own.Options)
			if err != nil {
				return err
			}
			space, err := spaceOf(s)
			if err != nil {
				return err
			}
			for _, options := range []tree.Options{{Bounds: tree.Pivot, Capacity: 20, Leaf: 32}, {Capacity: 20, Leaf: 32}, {}} {
				options.Workers = o.Workers
				began := time.Now()
				t, err := tree.Build(ctx, space, options)
				if err != nil {
					return err
				}
				r := &BuildsResult{Head: Head{Measurement: "builds", Set: set, Objects: len(s.Objects)}, Tree: fmt.Sprintf("bounds %s, capacity %d", options.Bounds, options.Capacity),
					Shape: t.Shape().String(), Workers: o.Workers, Built: round(time.Since(began).Seconds(), 3), GTS: times[set], Bytes: len(t.Encode())}
				if err := tell(r); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// spaceOf is the space of a set's objects.
func spaceOf(s *sets.Set) (metric.Space, error) {
	if s.Texts() {
		return metric.NewTexts(uint32(len(s.Objects)), func(i uint32) string { return s.Objects[i].Values[0] }, nil)
	}
	m, err := distance.ParseMetric(s.Metric)
	if err != nil {
		return nil, err
	}
	elements := make([]float32, 0, len(s.Objects)*s.Dims)
	for i := range s.Objects {
		elements = append(elements, s.Objects[i].Vector...)
	}
	v, err := metric.NewVectors(m, s.Dims, elements)
	if err != nil {
		return nil, err
	}
	return v.UseNorms(v.Norms(nil)) // as a column has them
}

// Line implements Result.
func (r *BuildsResult) Line() string {
	return fmt.Sprintf("%s, %d objects, %s: %.3f s (%s), GTS %.2f", r.Set, r.Objects, r.Tree, r.Built, r.Shape, r.GTS)
}
