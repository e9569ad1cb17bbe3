package near

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/geniemq/geniemq/bench/sets"
	"github.com/geniemq/geniemq/index/distance"
)

// ChoiceResult is one pair of a data set and what is asked: what each exact way takes per query, and which one the planner takes.
type ChoiceResult struct {
	Head
	Question
	Hits     float64 `json:"hits"` // per query
	Ways     []Way   `json:"ways"`
	Taken    string  `json:"taken"` // by most queries
	Auto     float64 `json:"auto_us"`
	Best     string  `json:"best"`       // by measurement
	OverBest float64 `json:"over_best"`  // time of the way that is taken over that of the best
	Within   bool    `json:"within_15%"` // of the best
}

// Way is one of them.
type Way struct {
	Method   string  `json:"method"`
	Took     float64 `json:"took_us"`
	Expected float64 `json:"expected_us"` // before corrections
	Factor   float64 `json:"factor"`      // by which corrections multiply it, when all was measured
}

// choice measures whether the planner takes the way that takes least.
func choice() Measurement {
	return Measurement{
		Name: "choice", Short: "Measure whether searches by distance take the way that takes least",
		Long: `Choice asks each index for the nearest and for what is within a radius by every exact way, and then as the planner chooses. A result
is a pair of data and question: what each way took and was expected to take, which one was taken, and whether that took at most 15 % more than the best.`,
		Sets: []string{"cities", "atmosphere", "digits", "digits-cosine", "sift", "words", "dna"},
		Run: func(ctx context.Context, o *Options, set string, tell func(Result) error) error {
			s, err := sets.Open(set, o.Options)
			if err != nil {
				return err
			}
			return o.with(ctx, set, exactPaths(s), func(l *loaded) error {
				ask := func(q Question) error { return l.choice(ctx, q, tell) }
				if len(o.Ks)+len(o.Selectivity) > 0 {
					if err := l.each(o.Ks, nil, ask); err != nil {
						return err
					}
					return l.selected(ctx, o.Selectivity, ask)
				}
				ks := []int{1, 10, 100}
				if s.Texts() {
					ks = ks[:2] // beyond, all ways compare all
				}
				return l.each(ks, s.Radii, ask)
			})
		},
	}
}

// exactPaths are the paths of a set that find all.
func exactPaths(s *sets.Set) string {
	if s.Texts() {
		return "index: [tree, ngram]"
	}
	return "index: [tree]"
}

// each asks for the nearest, and for what is within radii.
func (l *loaded) each(ks []int, radii []float64, do func(Question) error) error {
	for _, k := range ks {
		if err := do(Question{K: k}); err != nil {
			return fmt.Errorf("k = %d: %w", k, err)
		}
	}
	for _, r := range radii {
		if err := do(Question{Radius: r}); err != nil {
			return fmt.Errorf("radius %v: %w", r, err)
		}
	}
	return nil
}

// selected asks for what is within radii that so many per cent of the objects are within.
func (l *loaded) selected(ctx context.Context, shares []float64, do func(Question) error) error {
	if len(shares) == 0 {
		return nil
	}
	values, err := l.sampled(ctx)
	if err != nil {
		return err
	}
	for _, percent := range shares {
		at := min(len(values)-1, int(percent/100*float64(len(values))))
		if err := do(Question{K: mostSelected, Radius: l.column.Metric.Report(values[at]), Selectivity: percent}); err != nil {
			return fmt.Errorf("%v %% of the objects: %w", percent, err)
		}
	}
	return nil
}

// mostSelected is how many hits there are at most of what is asked for so.
const mostSelected = 1 << 16

// sampled are values between what is asked for and objects from all over the set, ascending.
func (l *loaded) sampled(ctx context.Context) (values []float64, err error) {
	const queries, objects = 256, 8192
	space, err := l.column.Space()
	if err != nil {
		return nil, err
	}
	all := l.index.Objects()
	step := max(1, all/objects)
	for _, request := range l.set.Asked[:min(queries, len(l.set.Asked))] {
		made, err := l.plan(request, &Question{K: 1, Method: distance.Scan})
		if err != nil {
			return nil, err
		}
		asker, err := made.Query.(*distance.Query).Asker(space)
		if err != nil {
			return nil, err
		}
		for id := uint32(0); id < all; id += step {
			values = append(values, asker.Value(id))
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	slices.Sort(values)
	return values, nil
}

// choice measures each exact way, and the planner's after it has seen them all.
func (l *loaded) choice(ctx context.Context, q Question, tell func(Result) error) error {
	r := &ChoiceResult{Head: l.head("choice"), Question: q}
	least, times := math.Inf(1), make(map[string]float64)
	for _, method := range l.column.Methods() {
		if method == distance.Ngram && q.Radius == 0 {
			continue
		}
		q.Method = method
		a, err := l.ask(ctx, l.set.Asked, q)
		if err != nil {
			return fmt.Errorf("by %s: %w", method, err)
		}
		if a.taken() != method {
			continue // counts prove nothing
		}
		times[method] = a.Took
		r.Ways = append(r.Ways, Way{Method: method, Took: a.Took})
		if a.Took < least {
			least, r.Best = a.Took, method
		}
	}
	q.Method = distance.Auto
	a, err := l.ask(ctx, l.set.Asked, q)
	if err != nil {
		return fmt.Errorf("by the planner's choice: %w", err)
	}
	for i := range r.Ways {
		w := &r.Ways[i]
		w.Expected, w.Factor = a.considered(w.Method)
	}
	r.Auto, r.Taken, r.Hits = a.Took, a.taken(), round(a.hits(), 1)
	r.OverBest = round(times[r.Taken]/least, 2)
	r.Within = times[r.Taken] <= 1.15*least
	return tell(r)
}

// Line implements Result.
func (r *ChoiceResult) Line() string {
	var ways []string
	for _, w := range r.Ways {
		ways = append(ways, fmt.Sprintf("%s %.1f (expected %.1f x %.2f)", w.Method, w.Took, w.Expected, w.Factor))
	}
	return fmt.Sprintf("%s, %v, batches of %d: us per query %s; taken %s, %.2f of the best", r.Set, &r.Question, r.Batch, strings.Join(ways, ", "), r.Taken, r.OverBest)
}
