// Package choice measures whether the planner of searches by distance takes the way that takes least.
package choice

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
)

// Options are what is measured.
type Options struct {
	Data  string // folder of the real data
	Batch int    // queries of a call; default 64
	Runs  int    // of which the least time counts; default 3
	// Engine answers; nil: one core of this machine, whose time is measured. Of an engine that is given it is the time by the clock, and queries are
	// asked again until a batch is full.
	Engine gpuexec.Engine
}

// Result is one pair of a data set and what is asked: what each exact way takes a core per query, and which one the planner takes.
type Result struct {
	Data     string  `json:"data"`
	Objects  int     `json:"objects"`
	K        int     `json:"k,omitempty"`
	Radius   float64 `json:"radius,omitempty"`
	Batch    int     `json:"batch"`
	Queries  int     `json:"queries"`
	Ways     []Way   `json:"ways"`
	Taken    string  `json:"taken"` // by most queries
	Engine   string  `json:"engine,omitempty"`
	Auto     float64 `json:"auto_us"`    // per query, of the processor or by the clock
	Best     string  `json:"best"`       // by measurement
	OverBest float64 `json:"over_best"`  // time of the way that is taken over that of the best
	Within   bool    `json:"within_15%"` // of the best
	Command  string  `json:"command,omitempty"`
}

// Way is one of them.
type Way struct {
	Method   string  `json:"method"`
	Took     float64 `json:"took_us"`
	Expected float64 `json:"expected_us"` // before corrections
	Factor   float64 `json:"factor"`      // by which corrections multiply it, when all was measured
}

// Measure measures each pair and tells of it. Times of one core are those of the processor, in this process: what else runs on the machine does not count.
func Measure(ctx context.Context, o Options, tell func(*Result) error) error {
	if o.Batch == 0 {
		o.Batch = 64
	}
	if o.Runs == 0 {
		o.Runs = 3
	}
	all, err := sets(o.Data)
	if err != nil {
		return err
	}
	for _, s := range all {
		if err := s.measure(ctx, o, tell); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// measure builds the index of a set and measures all that is asked of it.
func (s *set) measure(ctx context.Context, o Options, tell func(*Result) error) (err error) {
	x, err := s.build(ctx)
	if err != nil {
		return err
	}
	queries, err := index.NewQueries(x)
	if err != nil {
		return err
	}
	engine, name := o.Engine, ""
	if engine == nil {
		engine = cpu.New(gpuexec.CPUOptions{Workers: 1})
		defer func() { err = errors.Join(err, engine.Close()) }()
	} else {
		name = engine.Info().Kind
		for i := 0; len(s.asked) < o.Batch; i++ {
			s.asked = append(s.asked, s.asked[i])
		}
	}
	on, err := engine.Load(ctx, x)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, on.Close()) }()
	m := measuring{o, on, queries, x.Distances().At(0)}
	for _, k := range s.ks {
		r := &Result{Data: s.name, Objects: len(s.objects), K: k, Batch: o.Batch, Queries: len(s.asked), Engine: name}
		if err := errors.Join(m.pair(ctx, s, r), tell(r)); err != nil {
			return err
		}
	}
	for _, radius := range s.radii {
		r := &Result{Data: s.name, Objects: len(s.objects), Radius: radius, Batch: o.Batch, Queries: len(s.asked), Engine: name}
		if err := errors.Join(m.pair(ctx, s, r), tell(r)); err != nil {
			return err
		}
	}
	return nil
}

func (s *set) build(ctx context.Context) (*index.Index, error) {
	spec, err := index.Builtin().ParseSchema([]byte("{name: choice, columns: [" + s.columns + "]}"))
	if err != nil {
		return nil, err
	}
	objects, err := index.NewObjects(spec, index.BuilderOptions{})
	if err != nil {
		return nil, err
	}
	for _, c := range s.objects {
		if err := objects.Add(&schema.Record{Cells: c}); err != nil {
			return nil, err
		}
	}
	file, err := objects.Builder.Bytes(ctx)
	if err != nil {
		return nil, err
	}
	return index.OpenBytes(file)
}

// measuring is an index on an engine.
type measuring struct {
	Options
	on      gpuexec.Searcher
	queries *index.Queries
	column  *distance.Column
}

// pair measures each exact way, and the planner's after it has seen them all.
func (m *measuring) pair(ctx context.Context, s *set, r *Result) error {
	taken := make(map[string]int)
	least := math.Inf(1)
	times := make(map[string]float64)
	for _, method := range append(m.column.Methods(), distance.Auto) {
		if method == distance.Ngram && r.Radius == 0 {
			continue
		}
		took, answers, err := m.run(ctx, s, r, method)
		if err != nil {
			return fmt.Errorf("k %d, radius %v, by %s: %w", r.K, r.Radius, method, err)
		}
		if method == distance.Auto {
			r.Auto = took
			for _, a := range answers {
				taken[a.Method]++
			}
			m.expected(r, answers)
			break
		}
		if answers[0].Method != method {
			continue // counts prove nothing
		}
		times[method] = took
		r.Ways = append(r.Ways, Way{Method: method, Took: took})
		if took < least {
			least, r.Best = took, method
		}
	}
	most := 0
	for _, method := range m.column.Methods() {
		if taken[method] > most {
			most, r.Taken = taken[method], method
		}
	}
	r.OverBest = math.Round(100*times[r.Taken]/least) / 100
	r.Within = times[r.Taken] <= 1.15*least
	return nil
}

// expected is what the planner says of the ways: the mean over queries.
func (m *measuring) expected(r *Result, answers []*distance.Answer) {
	for i := range r.Ways {
		w := &r.Ways[i]
		n := 0.0
		for _, a := range answers {
			if at := slices.IndexFunc(a.Considered, func(c distance.Considered) bool { return c.Method == w.Method }); at >= 0 {
				n++
				w.Expected += float64(a.Considered[at].Predicted) / 1e3
				w.Factor += a.Considered[at].Factor
			}
		}
		w.Expected, w.Factor = math.Round(10*w.Expected/max(1, n))/10, math.Round(100*w.Factor/max(1, n))/100
	}
}

// run asks all, in batches, and returns microseconds per query.
func (m *measuring) run(ctx context.Context, s *set, r *Result, method string) (took float64, found []*distance.Answer, err error) {
	plans := make([]gpuexec.Plan, len(s.asked))
	for i, request := range s.asked {
		request.Near.K, request.Near.Method = r.K, method
		if r.Radius > 0 {
			request.Near.Radius, request.Near.K = &r.Radius, 1024
		}
		made, err := m.queries.Plan(new(postings.MatchQuery), &request)
		if err != nil {
			return 0, nil, err
		}
		q := made.Query.(*distance.Query)
		q.Explain = method == distance.Auto
		plans[i] = gpuexec.Plan{Family: made.Family, Query: q, K: q.K}
	}
	answers := make([]gpuexec.Answer, len(plans))
	best := time.Duration(math.MaxInt64)
	for range m.Runs {
		now := processor
		if m.Engine != nil {
			start := time.Now()
			now = func() time.Duration { return time.Since(start) }
		}
		began := now()
		for first := 0; first < len(plans); first += m.Batch {
			end := min(first+m.Batch, len(plans))
			if err := m.on.Search(ctx, plans[first:end], answers[first:end], nil); err != nil {
				return 0, nil, err
			}
		}
		best = min(best, now()-began)
	}
	for i := range answers {
		if answers[i].Err != nil {
			return 0, nil, answers[i].Err
		}
		found = append(found, answers[i].Value.(*distance.Answer))
	}
	return math.Round(10*float64(best)/1e3/float64(len(plans))) / 10, found, nil
}

// Line is a result for people.
func (r *Result) Line() string {
	asked := fmt.Sprintf("k = %d", r.K)
	if r.Radius > 0 {
		asked = fmt.Sprintf("radius %g", r.Radius)
	}
	var ways []string
	for _, w := range r.Ways {
		ways = append(ways, fmt.Sprintf("%s %.1f (expected %.1f x %.2f)", w.Method, w.Took, w.Expected, w.Factor))
	}
	return fmt.Sprintf("%s, %s, batches of %d: us per query %s; taken %s, %.2f of the best", r.Data, asked, r.Batch, strings.Join(ways, ", "), r.Taken, r.OverBest)
}
