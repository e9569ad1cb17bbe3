// Package near measures searches by distance on the data sets of package sets.
package near

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/geniemq/geniemq/bench/sets"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/postings"
)

// Measurement is one of them.
type Measurement struct {
	Name        string
	Short, Long string
	Clock       bool     // times are medians by the clock; else as Options.Clock says, and the least
	Sets        []string // that are measured if nobody says which
	// Run measures a data set and tells of each result.
	Run func(ctx context.Context, o *Options, set string, tell func(Result) error) error
}

// Options are what is measured, and on what.
type Options struct {
	sets.Options
	Sets    []string
	Batch   int // queries of a call
	Runs    int // of each call, of which the least time counts
	Workers int // that build; 0: one per processor
	// Ks and Selectivity are what choice and ways ask for, in place of what the set has: so many nearest, and what is within a radius that so many per cent of the objects are within.
	Ks          []int
	Selectivity []float64
	// What follows is for ways alone.
	Batches  []int   // queries of a call, one size after the other
	Paths    string  // of the index, like "tree, cells"; empty: those of the set
	Recall   float64 // that is asked for where a way need not find all; 0: none
	Fraction float64 // of the objects that rank vectors compare; 0: by Recall
	Export   string  // folder that vectors are written into, for other programs to search; empty: they are not
	// Engine answers. Clock: times are those by the clock, and queries are asked again until a batch is full; else what a core worked for this process, so that what else runs on the machine
	// does not count.
	Engine gpuexec.Engine
	Clock  bool
}

// Check says what of the options cannot be. It begins with the name of one.
func (o *Options) Check() error {
	share := func(x float64) bool { return x >= 0 && x <= 1 }
	switch {
	case !share(o.Share):
		return fmt.Errorf("share %v is no share: use a number up to 1, or 0 for all", o.Share)
	case o.Batch < 1 || slices.ContainsFunc(o.Batches, func(n int) bool { return n < 1 }):
		return errors.New("batch, and each of --batches, is a number above 0")
	case o.Runs < 1 || o.Asked < 1 || o.Objects < 0:
		return errors.New("runs and --asked are above 0, and --objects is not negative")
	case !share(o.Recall) || !share(o.Fraction):
		return errors.New("recall and --fraction are shares: use a number from 0 to 1")
	case slices.ContainsFunc(o.Ks, func(k int) bool { return k < 1 }):
		return errors.New("k takes numbers from 1")
	case slices.ContainsFunc(o.Selectivity, func(s float64) bool { return !(s > 0 && s <= 100) }):
		return errors.New("selectivity takes per cent above 0 and up to 100")
	}
	for _, name := range o.Sets {
		if all := sets.Names(); !slices.Contains(all, name) {
			return fmt.Errorf("sets %q is unknown: use some of %s", name, strings.Join(all, ", "))
		}
	}
	return nil
}

// Result is what is told of a measurement. It marshals to JSON.
type Result interface {
	Line() string      // for people
	By(command string) // which was called
}

// Head is what all results begin with.
type Head struct {
	Measurement string `json:"measurement"`
	Set         string `json:"set"`
	Objects     int    `json:"objects"`
	Engine      string `json:"engine,omitempty"`
	Time        string `json:"time,omitempty"` // what microseconds are: by the clock, or of a core
	Batch       int    `json:"batch,omitempty"`
	Command     string `json:"command,omitempty"`
}

// By implements Result.
func (h *Head) By(command string) { h.Command = command }

// Question is what is asked of all.
type Question struct {
	K        int     `json:"k,omitempty"`
	Radius   float64 `json:"radius,omitempty"`
	Method   string  `json:"method,omitempty"`
	Fraction float64 `json:"fraction,omitempty"`
	Recall   float64 `json:"recall,omitempty"`
	// Selectivity is the share of the objects that are within the radius, in per cent, by which it was chosen.
	Selectivity float64 `json:"selectivity,omitempty"`
}

// mostWithin is how many hits a radius has at most.
const mostWithin = 1024

func (q *Question) String() string {
	if q.Selectivity > 0 {
		return fmt.Sprintf("radius %g (%g %% of the objects)", q.Radius, q.Selectivity)
	}
	if q.Radius > 0 {
		return fmt.Sprintf("radius %g", q.Radius)
	}
	return fmt.Sprintf("k = %d", q.K)
}

// Run measures all sets.
func (m *Measurement) Do(ctx context.Context, o Options, tell func(Result) error) error {
	names := o.Sets
	if len(names) == 0 {
		names = m.Sets
	}
	for _, name := range names {
		if err := m.Run(ctx, &o, name, tell); err != nil {
			return fmt.Errorf("%s of %s: %w", m.Name, name, err)
		}
	}
	return nil
}

// loaded is the index of a set on an engine.
type loaded struct {
	*Options
	index   *index.Index
	set     *sets.Set
	column  *distance.Column
	queries *index.Queries
	on      gpuexec.Searcher
	built   time.Duration
}

// load builds the index of a set, with access paths as a schema names them, and loads it.
func (o *Options) load(ctx context.Context, s *sets.Set, paths string) (*loaded, error) {
	began := time.Now()
	finds, _ := o.Engine.(metric.Engine)
	if o.Engine.Info().Kind == gpuexec.CUDA && (strings.Contains(paths, "cells") || strings.Contains(paths, "permutation")) {
		paths += ", auto_for: gpu"
	}
	x, err := s.Build(ctx, o.Workers, paths, finds)
	if err != nil {
		return nil, err
	}
	l := &loaded{Options: o, index: x, set: s, column: x.Distances().At(0), built: time.Since(began)}
	if l.queries, err = index.NewQueries(x); err != nil {
		return nil, err
	}
	l.on, err = o.Engine.Load(ctx, x)
	return l, err
}

// again loads the index anew: what was measured and learned of searches is forgotten.
func (l *loaded) again(ctx context.Context) error {
	on, err := l.Engine.Load(ctx, l.index)
	if err != nil {
		return err
	}
	before := l.on
	l.on = on
	return before.Close()
}

func (l *loaded) head(measurement string) Head {
	h := Head{Measurement: measurement, Set: l.set.Name, Objects: len(l.set.Objects), Engine: l.Engine.Info().Kind, Time: "core", Batch: l.Batch}
	if l.Clock {
		h.Time = "clock"
	}
	return h
}

// asked is what came of asking.
type asked struct {
	Took    float64 // microseconds per query, by Options.Clock
	queries []*distance.Query
	answers []gpuexec.Answer
}

// ask asks all requests, in batches, some times.
func (l *loaded) ask(ctx context.Context, requests []index.Request, question Question) (*asked, error) {
	n := len(requests)
	if l.Clock {
		n = max(n, l.Batch)
	}
	a, plans, err := l.plans(requests, n, question)
	if err != nil {
		return nil, err
	}
	sum := time.Duration(0)
	for first := 0; first < n; first += l.Batch {
		end, least := min(first+l.Batch, n), time.Duration(math.MaxInt64)
		for range max(1, l.Runs) {
			began := l.now()
			if err := l.on.Search(ctx, plans[first:end], a.answers[first:end], nil); err != nil {
				return nil, err
			}
			least = min(least, l.now()-began)
		}
		sum += least
	}
	a.Took = round(float64(sum)/1e3/float64(n), 3)
	for i := range a.answers {
		if err := a.answers[i].Err; err != nil {
			return nil, err
		}
	}
	return a, nil
}

// plans are those of so many queries, the same ones again where there are fewer requests.
func (l *loaded) plans(requests []index.Request, n int, question Question) (*asked, []gpuexec.Plan, error) {
	a, plans := &asked{answers: make([]gpuexec.Answer, n)}, make([]gpuexec.Plan, n)
	for i := range plans {
		made, err := l.plan(requests[i%len(requests)], &question)
		if err != nil {
			return nil, nil, err
		}
		q := made.Query.(*distance.Query)
		q.Explain = true
		a.queries, plans[i] = append(a.queries, q), gpuexec.Plan{Family: made.Family, Query: q, K: q.K}
	}
	return a, plans, nil
}

func (l *loaded) plan(request index.Request, q *Question) (index.Plan, error) {
	near := &request.Near
	near.K, near.Method, near.Fraction, near.Recall = q.K, q.Method, q.Fraction, q.Recall
	if q.Radius > 0 {
		near.Radius = &q.Radius
		near.K = cmp.Or(near.K, mostWithin)
	}
	return l.queries.Plan(new(postings.MatchQuery), &request)
}

// now is a time, of this process.
func (l *loaded) now() time.Duration {
	if l.Clock {
		return time.Duration(time.Now().UnixNano())
	}
	return processor()
}

func (l *loaded) Close() error { return l.on.Close() }

// mean is that of something over all answers.
func (a *asked) mean(of func(*distance.Answer) float64) float64 {
	sum := 0.0
	for i := range a.answers {
		sum += of(a.answers[i].Value.(*distance.Answer))
	}
	return sum / float64(len(a.answers))
}

// hits is how many there are per query.
func (a *asked) hits() float64 {
	n := 0
	for i := range a.answers {
		n += len(a.answers[i].Hits)
	}
	return float64(n) / float64(len(a.answers))
}

// taken is the method of most answers.
func (a *asked) taken() (most string) {
	n := make(map[string]int)
	for i := range a.answers {
		method := a.answers[i].Value.(*distance.Answer).Method
		if n[method]++; n[method] > n[most] {
			most = method
		}
	}
	return most
}

// considered is the mean of what the planner says of a way.
func (a *asked) considered(method string) (expected, factor float64) {
	n := 0.0
	for i := range a.answers {
		all := a.answers[i].Value.(*distance.Answer).Considered
		if at := slices.IndexFunc(all, func(c distance.Considered) bool { return c.Method == method }); at >= 0 {
			n++
			expected += float64(all[at].Predicted) / 1e3
			factor += all[at].Factor
		}
	}
	return round(expected/max(1, n), 3), round(factor/max(1, n), 2)
}

func round(x float64, digits int) float64 {
	p := math.Pow10(digits)
	return math.Round(p*x) / p
}

// with opens a set, builds and loads its index, and hands it on.
func (o *Options) with(ctx context.Context, name, paths string, do func(*loaded) error) error {
	s, err := sets.Open(name, o.Options)
	if err != nil {
		return err
	}
	l, err := o.load(ctx, s, paths)
	if err != nil {
		return err
	}
	return errors.Join(do(l), l.Close())
}
