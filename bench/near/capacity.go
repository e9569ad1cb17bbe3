package near

import (
	"context"
	"fmt"

	"github.com/geniemq/geniemq/bench/sets"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/tree"
)

// CapacityResult is what searches of a tree of some capacity did, beside what was expected of them: what GTS has in Figure 6.
type CapacityResult struct {
	Head
	Question
	Bounds   string  `json:"bounds"`
	Capacity int     `json:"capacity"`
	Leaf     int     `json:"leaf"`
	Height   int     `json:"height"`
	Idim     float64 `json:"idim"`
	Built    float64 `json:"built_s"` // the whole index, by the clock

	Distances         float64 `json:"distances"` // per query, those to pivots too
	Blocks            float64 `json:"blocks"`
	ExpectedDistances float64 `json:"expected_distances"`
	ExpectedBlocks    float64 `json:"expected_blocks"`
	ExpectedNodes     float64 `json:"expected_nodes"`
	Took              float64 `json:"took_us"`
	Expected          float64 `json:"expected_us"` // by the planner, before corrections
	Hits              float64 `json:"hits"`
}

// searched is what a tree of an index says of itself.
type searched interface {
	Expect(metric.Want) tree.Row
	Shape() tree.Shape
	Calibration() tree.Calibration
}

func capacity() Measurement {
	return Measurement{
		Name: "capacity", Short: "Measure trees of all capacities, beside what is expected",
		Long: `Capacity builds trees whose nodes have 4 to 128 children, by pivots and where there are coordinates by boxes too, asks each for the nearest
and for what is within a radius, and tells what was expected beside what was done: distances, leaves, time.`,
		Sets: []string{"words", "atmosphere", "cities", "tloc", "digits", "color", "dna", "sift"},
		Run: func(ctx context.Context, o *Options, set string, tell func(Result) error) error {
			s, err := sets.Open(set, o.Options)
			if err != nil {
				return err
			}
			bounds := []tree.Bounds{tree.Pivot}
			if s.Dims < 10 && !s.Texts() {
				bounds = append(bounds, tree.Box)
			}
			for _, b := range bounds {
				for capacity := 4; capacity <= 128; capacity *= 2 {
					if err := o.capacity(ctx, s, b, capacity, tell); err != nil {
						return fmt.Errorf("capacity %d: %w", capacity, err)
					}
				}
			}
			return nil
		},
	}
}

func (o *Options) capacity(ctx context.Context, s *sets.Set, b tree.Bounds, capacity int, tell func(Result) error) error {
	l, err := o.load(ctx, s, fmt.Sprintf("index: [tree], tree: {bounds: %s, capacity: %d, leaf: 32, seed: 3}", b, capacity))
	if err != nil {
		return err
	}
	defer l.Close()
	t := l.column.Path("tree").(searched)
	radii := s.Radii
	if len(radii) > 1 {
		radii = radii[1:]
	}
	return l.each([]int{1, 10, 100}, radii, func(q Question) error {
		q.Method = "tree"
		if err := l.again(ctx); err != nil { // on a busy machine cores are slower for seconds, which would be taken for what is wrong with prices
			return err
		}
		a, err := l.ask(ctx, s.Asked, q)
		if err != nil {
			return err
		}
		r := &CapacityResult{Head: l.head("capacity"), Question: q, Bounds: string(b), Capacity: capacity, Leaf: 32, Height: t.Shape().Height,
			Idim: round(t.Calibration().Idim, 2), Built: round(l.built.Seconds(), 3), Took: a.Took, Hits: round(a.hits(), 1),
			Distances: a.mean(func(x *distance.Answer) float64 { return float64(x.Distances) }), Blocks: a.mean(func(x *distance.Answer) float64 { return float64(x.Blocks) })}
		for _, query := range a.queries {
			w := t.Expect(query.Want()).Work
			r.ExpectedNodes += w.Nodes / float64(len(a.queries))
			if b == tree.Pivot {
				r.ExpectedDistances += w.Nodes / float64(len(a.queries))
			}
			r.ExpectedDistances += w.Distances / float64(len(a.queries))
			r.ExpectedBlocks += w.Blocks / float64(len(a.queries))
		}
		r.Expected, _ = a.considered("tree")
		return tell(r)
	})
}

// Line implements Result.
func (r *CapacityResult) Line() string {
	return fmt.Sprintf("%s, %v, %s, capacity %d: %.0f distances (%.2f of them expected), %.1f leaves (%.2f), %.1f us (%.2f)", r.Set, &r.Question, r.Bounds, r.Capacity,
		r.Distances, r.ExpectedDistances/r.Distances, r.Blocks, r.ExpectedBlocks/r.Blocks, r.Took, r.Expected/r.Took)
}
