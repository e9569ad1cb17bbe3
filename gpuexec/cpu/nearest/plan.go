package nearest

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/distance"
)

// corrections are what searches of a column took a processor lately over what was expected, by method: what a model of the work does not know, such as texts that are
// far away in memory, or bounds that cut most comparisons short.
//
// What counts is how long the processor worked for a search, and not how long that took: on a busy machine searches wait for cores, which says nothing of them (processor.Time).
//
// A ratio is a mean of logarithms that moves by a part of each new one, and is bounded, so that one search tells little. That
// of a method which could have been taken and was not goes back to 1, slowly: what was dear once is tried again. Answers do not depend on any of it, since
// only ways that give the same hits are chosen by it.
type corrections struct {
	mu       sync.Mutex
	byMethod map[string]float64 // logarithms
}

const (
	// learning is the part of a new ratio, and forgetting that of the way back to 1 per batch.
	learning, forgetting = 1.0 / 16, 1.0 / 512
	// mostFactor bounds ratios either way, and mostSeen what one search tells.
	mostFactor, mostSeen = 4, 16
)

// now gives the factors of methods as they are now. A batch asks for them once.
func (c *corrections) now() (factor func(method string) float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	factors := make(map[string]float64, len(c.byMethod))
	for method, logarithm := range c.byMethod {
		factors[method] = math.Exp(logarithm)
	}
	return func(method string) float64 {
		if f, ok := factors[method]; ok {
			return f
		}
		return 1
	}
}

// seen is what searches of a batch took, and were expected to take, by method.
type seen []work

type work struct {
	method          string
	took, predicted time.Duration
}

// learn takes notice of a batch.
func (c *corrections) learn(s seen) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for method, was := range c.byMethod {
		if !slices.ContainsFunc(s, func(w work) bool { return w.method == method }) {
			c.byMethod[method] = was * (1 - forgetting)
		}
	}
	for _, one := range s {
		if one.took <= 0 || one.predicted <= 0 {
			continue
		}
		ratio := math.Log(float64(one.took) / float64(one.predicted))
		ratio = min(max(ratio, -math.Log(mostSeen)), math.Log(mostSeen))
		was := c.byMethod[one.method]
		c.byMethod[one.method] = min(max(was+learning*(ratio-was), -math.Log(mostFactor)), math.Log(mostFactor))
	}
}

// choose chooses how each job is answered. A scan is priced as one together with all others of its column that could be scanned; what is scanned then is looked at once more with
// those that are.
func (b *Batch) choose(ctx context.Context) error {
	const looking = 20_000 // nanoseconds to look a text's n-grams up
	asked := make([]int, b.columns.Len())
	for _, job := range b.jobs {
		asked[b.position(job.Query.(*distance.Query).Column)]++
	}
	var looked []int
	var last *distance.Query
	less := false // it is scanned for less
	for i, job := range b.jobs {
		q := job.Query.(*distance.Query)
		if q.Column.Theta(q) < 1 {
			continue
		}
		if last == nil || !q.Alike(last) {
			less = b.scannedForLess(q, asked[b.position(q.Column)])
		}
		if last = q; !less {
			looked = append(looked, i)
		}
	}
	if len(looked) > 0 {
		if err := b.crew.Each(ctx, len(looked), len(looked)*looking, func(n int) { b.grams[looked[n]] = b.gramsOf(b.jobs[looked[n]]) }); err != nil {
			return err
		}
	}
	scans, factors := make([]int, b.columns.Len()), make([]func(string) float64, b.columns.Len())
	for at := range factors {
		factors[at] = b.scanned[at].corrections.now()
	}
	before := -1
	for i := range b.jobs {
		at := b.chooseOne(i, before, asked, factors)
		before = i
		if b.choices[i].Method == distance.Scan {
			scans[at]++
		}
	}
	before = -1
	for i := range b.jobs {
		if at := b.position(b.jobs[i].Query.(*distance.Query).Column); b.choices[i].Method == distance.Scan && scans[at] < asked[at] {
			b.chooseOne(i, before, scans, factors)
			before = i
		}
	}
	return nil
}

// scannedForLess says that somebody else scans for such a query, together with so many, in less time than counting n-grams would take, whatever they are: looking them up takes as long as such a scan.
func (b *Batch) scannedForLess(q *distance.Query, queries int) bool {
	if b.beside == nil || q.Method != distance.Auto || q.Explain {
		return false
	}
	scanned, counted := b.beside(q, distance.Scan, queries), b.beside(q, distance.Ngram, queries)
	return scanned > 0 && scanned <= counted
}

// alike says that two jobs are in the same situation, and are answered in the same way.
func (b *Batch) alike(i, j int) bool {
	_, filter := b.Passing(i)
	_, other := b.Passing(j)
	return filter == other && b.grams[i] == nil && b.grams[j] == nil && b.begun(i) == nil && b.begun(j) == nil && b.jobs[i].Query.(*distance.Query).Alike(b.jobs[j].Query.(*distance.Query))
}

// chooseOne chooses how a job is answered, where so many of a column are scanned: as one that was chosen for just before, if there is one (-1: none) and they are alike, since looking takes as
// long as a search among few coordinates.
func (b *Batch) chooseOne(i, before int, scanned []int, factors []func(string) float64) (column int) {
	q := b.jobs[i].Query.(*distance.Query)
	column = b.position(q.Column)
	s := &b.scanned[column]
	if before >= 0 && b.alike(i, before) {
		b.choices[i] = b.choices[before]
		return column
	}
	if before := b.begun(i); before != nil {
		b.choices[i] = distance.Choice{Method: distance.Scan, Why: "its scan was interrupted, and goes on"}
		if before.search != nil {
			b.choices[i] = distance.Choice{Method: before.method, Why: "it was interrupted, and goes on"}
		}
		return column
	}
	situation := distance.Situation{
		Passing: b.passingOf(i), Queries: min(scanned[column], chunkJobs), Part: b.hi-b.lo < q.Column.Objects, Factor: factors[column],
	}
	if b.beside != nil {
		situation.Elsewhere = func(method string) time.Duration {
			// Few queries keep few cores busy.
			return b.beside(q, method, scanned[column]) * time.Duration(min(b.crew.Size(), max(1, scanned[column])))
		}
	}
	if g := b.grams[i]; g != nil {
		situation.Grams = g.price(s.planner.Distance(q), s.posting)
	}
	b.choices[i] = s.planner.Choose(q, situation)
	if all := uint64(q.Column.Objects); situation.Part && all > 0 && b.beside == nil { // what is predicted is of all objects
		b.choices[i].Predicted = max(1, time.Duration(float64(b.choices[i].Predicted)*float64(b.hi-b.lo)/float64(all)))
	}
	return column
}

// saw takes notice of what jobs of a column took that are done, all together: as expected is what was, by one method. Of what goes on nothing is expected.
func (b *Batch) saw(column int, w work) {
	if w.predicted == 0 {
		return
	}
	b.seeing.Lock()
	defer b.seeing.Unlock()
	s := &b.seen[column]
	at := slices.IndexFunc(*s, func(o work) bool { return o.method == w.method })
	if at < 0 {
		*s = append(*s, w)
		return
	}
	(*s)[at].took += w.took
	(*s)[at].predicted += w.predicted
}

// learn corrects what is expected by what was seen.
func (b *Batch) learn() {
	for at, s := range b.seen {
		if len(s) > 0 {
			b.scanned[at].corrections.learn(s)
		}
	}
}

// ended has the answer of a job made that is done, where that is for a matcher to do. Nobody looks at the job afterwards.
func (b *Batch) ended(ctx context.Context, shift *run.Shift, job int) {
	if j := b.jobs[job]; j.Then != nil && j.Ranked && j.Err == nil && !j.Postponed {
		j.Then.End(ctx, shift)
	}
}
