package near

import (
	"context"
	"fmt"

	"github.com/geniemq/geniemq/bench/sets"
	"github.com/geniemq/geniemq/index/distance"
)

// GrowthResult is what searches take of a part of a data set, or of one that has copies.
type GrowthResult struct {
	Head
	Question
	Share    float64 `json:"share"`    // of the set's objects
	Distinct float64 `json:"distinct"` // of them, that are no copies of others
	Taken    string  `json:"taken"`
	Took     float64 `json:"took_us"`
	// Distances that were computed per query, and hits.
	Distances float64 `json:"distances"`
	Hits      float64 `json:"hits"`
	Built     float64 `json:"built_s"` // the whole index, by the clock
}

func growth() Measurement {
	return Measurement{
		Name: "growth", Short: "Measure searches of parts of the data, and of data with copies",
		Long: `Growth takes 20 to 100 % of a data set, and all of it where 20 to 100 % of the objects differ from each other and the others are copies, and asks
for the 8 nearest by a scan, by a tree, and as the planner chooses (figures 11 and 10 of the paper of GTS). With --share it takes that part alone.`,
		Sets: []string{"words", "tloc", "vector", "dna", "color", "atmosphere"},
		Run: func(ctx context.Context, o *Options, set string, tell func(Result) error) error {
			shares, distincts := []float64{0.2, 0.4, 0.6, 0.8, 1}, []float64{0.2, 0.4, 0.6, 0.8}
			if o.Share > 0 {
				shares, distincts = []float64{o.Share}, nil
			}
			for _, share := range shares {
				if err := o.growth(ctx, set, share, 1, tell); err != nil {
					return fmt.Errorf("%v of the objects: %w", share, err)
				}
			}
			for _, distinct := range distincts {
				if err := o.growth(ctx, set, 1, distinct, tell); err != nil {
					return fmt.Errorf("%v of the objects distinct: %w", distinct, err)
				}
			}
			return nil
		},
	}
}

func (o *Options) growth(ctx context.Context, set string, share, distinct float64, tell func(Result) error) error {
	own := *o
	if own.Share = share; distinct < 1 {
		own.Distinct = distinct
	}
	s, err := sets.Open(set, own.Options)
	if err != nil {
		return err
	}
	// The paper's capacity: what all would choose anew is not what grows.
	l, err := own.load(ctx, s, "index: [tree], tree: {capacity: 20, leaf: 32}")
	if err != nil {
		return err
	}
	defer l.Close()
	for _, method := range []string{distance.Scan, "tree", distance.Auto} {
		q := Question{K: 8, Method: method}
		a, err := l.ask(ctx, s.Asked, q)
		if err != nil {
			return fmt.Errorf("by %s: %w", method, err)
		}
		r := &GrowthResult{Head: l.head("growth"), Question: q, Share: share, Distinct: distinct, Taken: a.taken(), Took: a.Took, Hits: a.hits(),
			Distances: a.mean(func(x *distance.Answer) float64 { return float64(x.Distances) }), Built: round(l.built.Seconds(), 3)}
		if err := tell(r); err != nil {
			return err
		}
	}
	return nil
}

// Line implements Result.
func (r *GrowthResult) Line() string {
	return fmt.Sprintf("%s, %d objects, %.0f %% distinct, %v, by %s: %.0f distances, %.1f us", r.Set, r.Objects, 100*r.Distinct, &r.Question, r.Method, r.Distances, r.Took)
}
