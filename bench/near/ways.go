package near

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/geniemq/geniemq/bench/export"
	"github.com/geniemq/geniemq/bench/sets"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/distance"
)

// WayResult is what one way takes of one question, by how many queries are asked together. Times are medians of Options.Runs.
type WayResult struct {
	Head
	Question
	Took      float64 `json:"took_ms"`             // the whole call, by the clock
	Device    float64 `json:"device_ms,omitempty"` // of it, match and select
	PerSecond float64 `json:"per_second"`          // queries
	Found     float64 `json:"found"`               // the share of what a scan finds
	Distances float64 `json:"distances"`           // computed per query
	Taken     string  `json:"taken"`               // by most queries
}

// slowest is how long a call may take for more queries to be asked together.
const slowest = time.Second

func ways() Measurement {
	return Measurement{
		Name: "ways", Short: "Measure every way of an index by the size of batches",
		Long: `Ways asks each index by every way that it has, and as the planner chooses, in batches of 1 to 16,384 queries, and tells what a batch takes as a whole and on a
device, and the share of what there is that it finds. Larger batches are left out where a call takes a second.`,
		Clock: true,
		Sets:  []string{"tloc", "vector", "letters", "strands", "color", "clusters", "overlapping", "gaussian", "gaussian128"},
		Run: func(ctx context.Context, o *Options, set string, tell func(Result) error) error {
			s, err := sets.Open(set, o.Options)
			if err != nil {
				return err
			}
			return o.with(ctx, set, "index: ["+cmp.Or(o.Paths, s.Paths)+"]", func(l *loaded) error {
				if o.Export != "" && s.Dims > 0 {
					if err := l.export(ctx); err != nil {
						return err
					}
				}
				ask := func(q Question) error { return l.ways(ctx, q, tell) }
				ks, radii := o.Ks, []float64(nil)
				if len(o.Ks)+len(o.Selectivity) == 0 {
					ks, radii = []int{8}, s.Radii
				}
				if err := l.each(ks, radii, ask); err != nil {
					return err
				}
				return l.selected(ctx, o.Selectivity, ask)
			})
		},
	}
}

// ways measures all of them, and what the planner chooses after it has seen them.
func (l *loaded) ways(ctx context.Context, q Question, tell func(Result) error) error {
	all, err := l.exactly(ctx, q)
	if err != nil {
		return fmt.Errorf("%v, by a scan: %w", &q, err)
	}
	for _, q.Method = range append(l.column.Methods(), distance.Auto) {
		if q.Method == distance.Ngram && q.Radius == 0 {
			continue
		}
		own := q
		switch q.Method {
		case "cells", distance.Auto:
			own.Recall = l.Recall
		case "permutation":
			if own.Fraction = l.Fraction; own.Fraction == 0 {
				own.Recall = l.Recall
			}
		}
		for _, batch := range l.Batches {
			r, err := l.way(ctx, own, batch, all)
			if err != nil {
				return fmt.Errorf("%v, by %s, batches of %d: %w", &q, q.Method, batch, err)
			}
			if err := tell(r); err != nil {
				return err
			}
			if r.Took > float64(slowest/time.Millisecond) {
				break
			}
		}
	}
	return nil
}

// compared is how many queries say what is found.
const compared = 256

// exactly has what there is to find, of the first queries.
func (l *loaded) exactly(ctx context.Context, q Question) (*asked, error) {
	q.Method = distance.Scan
	a, plans, err := l.plans(l.set.Asked, min(compared, len(l.set.Asked)), q)
	if err != nil {
		return nil, err
	}
	return a, l.search(ctx, plans, a.answers, nil)
}

// search asks once.
func (l *loaded) search(ctx context.Context, plans []gpuexec.Plan, answers []gpuexec.Answer, t *gpuexec.Trace) error {
	if err := l.on.Search(ctx, plans, answers, t); err != nil {
		return err
	}
	for i := range answers {
		if err := answers[i].Err; err != nil {
			return err
		}
	}
	return nil
}

// way measures one of them with batches of one size: of small ones 64, and no more queries than are compared, so that no lone query speaks for all.
func (l *loaded) way(ctx context.Context, q Question, batch int, all *asked) (*WayResult, error) {
	n := max(batch, min(len(all.answers)/batch*batch, 64*batch))
	a, plans, err := l.plans(l.set.Asked, n, q)
	if err != nil {
		return nil, err
	}
	var took, device []float64 // the mean of all batches, by run
	for range 1 + l.Runs {     // the first one is not measured
		var trace gpuexec.Trace
		began := time.Now()
		for first := 0; first < n; first += batch {
			if err := l.search(ctx, plans[first:first+batch], a.answers[first:first+batch], &trace); err != nil {
				return nil, err
			}
		}
		calls := float64(n/batch) * float64(time.Millisecond)
		took, device = append(took, float64(time.Since(began))/calls), append(device, float64(trace.Match+trace.Select)/calls)
	}
	r := &WayResult{Head: l.head("ways"), Question: q, Took: round(median(took[1:]), 4), Device: round(median(device[1:]), 4), Taken: a.taken(),
		Distances: round(a.mean(func(x *distance.Answer) float64 { return float64(x.Distances) }), 1)}
	r.Batch, r.Time, r.PerSecond = batch, "clock", round(float64(batch)/median(took[1:])*1e3, 0)
	some := min(n, len(all.answers))
	found, any := (&asked{answers: a.answers[:some]}).found(&asked{answers: all.answers[:some]})
	if r.Found = round(found, 4); !any {
		r.Found = 1
	}
	return r, nil
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

// export writes the vectors of a set that has some, and the nearest of each query that a scan finds.
func (l *loaded) export(ctx context.Context) error {
	const k = 100
	a, plans, err := l.plans(l.set.Asked, len(l.set.Asked), Question{K: k, Method: distance.Scan})
	if err != nil {
		return err
	}
	if err := l.search(ctx, plans, a.answers, nil); err != nil {
		return err
	}
	v := export.Vectors{
		Name: l.set.Name, Metric: l.set.Metric, Seed: l.Seed, Dims: l.set.Dims, Objects: len(l.set.Objects),
		Object: func(_ []float32, id int) []float32 { return l.set.Objects[id].Vector }, K: k, Answer: export.Hits(a.answers),
	}
	for _, r := range l.set.Asked {
		v.Queries = append(v.Queries, []float32(r.Vector))
	}
	return v.Write(ctx, filepath.Join(l.Export, l.set.Name))
}

// Line implements Result.
func (r *WayResult) Line() string {
	taken, device := "", ""
	if r.Taken != r.Method {
		taken = " (" + r.Taken + ")"
	}
	if r.Device > 0 {
		device = fmt.Sprintf(", %.3f on the device", r.Device)
	}
	return fmt.Sprintf("%s, %v, by %s%s, batches of %d: %.3f ms%s, %.0f per second, %.4f found, %.0f distances", r.Set, &r.Question, r.Method, taken, r.Batch, r.Took, device, r.PerSecond, r.Found,
		r.Distances)
}
