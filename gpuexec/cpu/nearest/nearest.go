// Package nearest answers searches by distance on the cores of this machine. It is the CPU engine's matcher of the family distance, and that of every
// engine that has no kernels for it.
package nearest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/passing"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/cost"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/internal/pool"
)

// Loader is that of the family, for any engine.
func Loader() run.Loader {
	return run.Loader{Load: func(_ context.Context, h *run.Host, own run.Extent, _ []run.Extent) (run.Matcher, error) {
		m, err := Load(h, own)
		if err != nil {
			return nil, err
		}
		m.release, err = h.Budget.Reserve(gpuexec.Holding{Owner: run.OwnerOf(own.Source), Form: "what distances are computed from", Bytes: m.held, Needed: true})
		if err != nil {
			return nil, err
		}
		return m, nil
	}}
}

// Matcher compares queries with the objects of an index, or of some of its tiles.
//
// # How
//
// A scan takes the objects in blocks of about as many bytes as a core's cache holds. A unit of work is up to chunkJobs queries and a range of
// blocks: each block is compared with all the queries before the next is read, so that memory is read once for many of them. What a query keeps of a range
// is its K best, in a heap, so memory is bounded by K whatever a radius admits. The ranges of a query are joined by the order of (value, id), which is
// total: neither the number of workers nor the shape of a batch changes an answer. The worst of K hits of one range limits what others look for
// (chunk.known). So how many candidates and blocks there were is not the same in each run.
//
// # Who may be a hit
//
// Objects without a value are none. Filters are bits, found once for each distinct filter of a batch. Where few objects of a block may be hits,
// these alone are compared.
//
// # Who may wait
//
// Between two blocks, and in the middle of comparing a long text, a unit looks at its context, and for each query at its deadline and at the work that it may take (Job.Work). The seat is
// offered to other calls by Shift.Spend. When the allowance of the call is spent, scans stop where they are, and go on in another call (begun), and so do access paths and n-grams, which are told of by the same kind of meter.
//
// # Which way
//
// A distance.Planner per column, with this host's constants, says what each way to answer a query is expected to take, and corrections, which the matcher owns, what such queries
// really took.
type Matcher struct {
	columns *distance.Columns
	scanned []scanned       // by column
	hands   []pool.Of[hand] // by column
	index   passing.Index
	tiles   run.Tiles
	lo, hi  uint32 // the objects of the tiles
	crew    *run.Crew
	release func()
	held    int64 // bytes

	counters pool.Of[counters]
	terms    pool.Of[gramTerms]
	batches  pool.Of[Batch]
}

// scanned is a column as it is scanned.
type scanned struct {
	space   metric.Space
	sieved  bool       // many queries are compared with objects in panels
	reading float64    // what a chunk of a batch does with an object before it compares it: readOnly or readAndLaidOut
	present filter.Set // the objects with a value; nil: all
	bytes   int64      // of an object, about
	bound   *bound     // its access paths; nil: none
	grams   int        // the attribute of its n-grams; -1: it has none
	posting float64    // nanoseconds to count one

	planner     *distance.Planner
	corrections *corrections
}

// lay says how objects are laid out: in panels once for all, if there is room and the matcher has all objects, which panels are of; else by each chunk, texts in lanes. It returns what that takes in memory.
func (s *scanned) lay(all bool) (bytes int64) {
	s.reading = readOnly
	switch space := s.space.(type) {
	case *metric.Texts:
		s.reading = readAndLaidOut
	case *metric.Vectors:
		if s.sieved = space.Sieved(); s.sieved && all {
			space = space.UsePanels()
			s.space, bytes = space, space.PanelBytes()
		}
		if s.sieved && bytes == 0 {
			s.reading = readAndLaidOut
		}
	}
	return bytes
}

// costsKey is of what an engine keeps: this host's constants, which are measured once for it.
type costsKey struct{}

// Load makes the matcher of some tiles of a source. What it holds is memory of this host, which the budget of an engine with a device is not about.
func Load(h *run.Host, own run.Extent) (*Matcher, error) {
	kept, _ := h.Kept.LoadOrStore(costsKey{}, cost.Host())
	d := kept.(*cost.Device)
	d.Load()
	columns, ok := own.Source.Structure(distance.FamilyName).(*distance.Columns)
	if !ok {
		return nil, errors.New("the structure is no distance.Columns")
	}
	lists, ok := own.Source.Structure(postings.FamilyName).(*postings.Lists)
	if !ok {
		return nil, errors.New("the index has no lists, which filters are held against")
	}
	m := &Matcher{
		columns: columns, tiles: own.Tiles, crew: h.Crew,
		index: passing.Index{Lists: lists, Stored: filter.StoredBy(own.Source.Structure(filter.StoredFamily))},
	}
	m.lo = min(own.Tiles.Base(), own.Source.Objects())
	m.hi = m.lo + own.Tiles.Objects(own.Source.Objects())
	m.hands = make([]pool.Of[hand], columns.Len())
	for i := range columns.Len() {
		c := columns.At(i)
		space, err := c.Space()
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", c.Name, err)
		}
		s := scanned{space: space, present: c.Present(), bytes: max(1, c.Bytes()/max(1, int64(c.Objects)))}
		var more int64
		if s.bound, more, err = bind(c, space); err != nil {
			return nil, fmt.Errorf("column %q: %w", c.Name, err)
		}
		more += s.lay(m.hi-m.lo == c.Objects)
		objects := c.Objects
		if s.present != nil {
			objects = uint32(s.present.Len())
		}
		s.planner, s.corrections = c.Planner(d, objects, s.bound.all()), &corrections{byMethod: make(map[string]float64)}
		s.grams, s.posting = gramAttribute(lists, c), d.Of(cost.Constant{Name: "posting", Reference: 1.5})
		m.held += 8*int64(len(s.present)) + c.SpaceBytes() + more
		m.scanned = append(m.scanned, s)
	}
	return m, nil
}

// Residence implements run.Matcher. The file is told of by the lists.
func (m *Matcher) Residence() run.Residence {
	return run.Residence{Parts: 1, Form: "distances in place"}
}

// Close implements run.Matcher.
func (m *Matcher) Close() error {
	if m.release != nil {
		m.release()
	}
	return nil
}

// Scan implements run.Matcher: there is no rescoring that could end in a scan.
func (m *Matcher) Scan(context.Context, []*run.ScanJob, *gpuexec.Trace) error { return nil }

// Check implements run.Matcher. No object has a count.
func (m *Matcher) Check(p *gpuexec.Plan) (bound uint32, err error) {
	q, ok := p.Query.(*distance.Query)
	switch {
	case !ok || q == nil:
		return 0, fmt.Errorf("distances are asked for with a *distance.Query, not with %T", p.Query)
	case p.MinCount > 0 || p.Rescore != nil || p.Certify:
		return 0, errors.New("a query by distance has no counts: it takes no min_count, rescoring or certificate")
	case max(1, q.K) != p.K:
		return 0, fmt.Errorf("k is %d of the plan and %d of its query", p.K, q.K)
	}
	if err := q.Check(); err != nil {
		return 0, err
	}
	if m.columns.Column(q.Column.Name) != q.Column {
		return 0, fmt.Errorf("column %q is of another index", q.Column.Name)
	}
	if err := m.index.Lists.CheckFilter(q.Filter, m.index.Stored); err != nil {
		return 0, err
	}
	return 1, nil
}

const hitBytes = 16

// Cost implements run.Matcher: the best hits of each range that a lone query is split into, those that are joined, what is computed of a block, and
// a bit per object for a filter.
func (m *Matcher) Cost(p *gpuexec.Plan) int64 {
	q, ok := p.Query.(*distance.Query)
	if !ok || q == nil {
		return 0
	}
	k := min(int64(max(0, q.K)), int64(m.hi-m.lo))
	ranges := int64(run.Splits(1, math.MaxInt, m.crew.Size()))
	cost := 1024 + (min(k*ranges, int64(m.hi-m.lo))+2*k)*hitBytes + 16*int64(len(q.Vector)+len(q.Text))
	if q.Filter != nil {
		cost += int64(m.tiles.Len()) * 8 * passing.TileWords
	}
	return cost
}

// Match implements run.Matcher.
func (m *Matcher) Match(ctx context.Context, jobs []*run.Job, _ *gpuexec.Trace) error {
	b, err := m.Begin(ctx, jobs, nil)
	if err != nil {
		return err
	}
	for i := range jobs {
		b.all = append(b.all, i)
	}
	err = b.Run(ctx, b.all)
	b.End()
	return err
}

// Begin begins a call for jobs: what all ways to answer them want to know is found once. Who answers jobs otherwise than by Run tells the batch (Answer), and says
// what that takes; nil: nobody does. Batch.End ends the call.
func (m *Matcher) Begin(ctx context.Context, jobs []*run.Job, beside Elsewhere) (*Batch, error) {
	b := m.batches.Get()
	b.Matcher, b.jobs, b.pace, b.beside = m, jobs, gpuexec.PaceOf(ctx), beside
	b.choices, b.grams, b.seen = run.Resize(b.choices, len(jobs)), run.Resize(b.grams, len(jobs)), run.Resize(b.seen, m.columns.Len())
	b.resume()
	if err := b.filter(ctx); err != nil {
		return nil, err
	}
	if err := b.choose(ctx); err != nil {
		return nil, err
	}
	return b, nil
}

// Run answers the chosen ones of the jobs on the host's cores.
func (b *Batch) Run(ctx context.Context, chosen []int) error {
	b.others, b.scans = b.others[:0], run.Resize(b.scans, b.columns.Len())
	for at := range b.scans {
		b.scans[at], b.seen[at] = b.scans[at][:0], b.seen[at][:0]
	}
	for _, i := range chosen {
		if b.choices[i].Method == distance.Scan {
			at := b.position(b.jobs[i].Query.(*distance.Query).Column)
			b.scans[at] = append(b.scans[at], i)
		} else {
			b.others = append(b.others, i)
		}
	}
	for at, chosen := range b.scans {
		if err := b.scan(ctx, at, chosen); err != nil {
			return err
		}
	}
	if err := b.search(ctx, b.others); err != nil {
		return err
	}
	b.learn()
	return nil
}

// Columns are those of the index, At the position of one of them, Tiles the matcher's, and Objects their number.
func (m *Matcher) Columns() *distance.Columns           { return m.columns }
func (m *Matcher) At(c *distance.Column) (position int) { return m.position(c) }
func (m *Matcher) Tiles() run.Tiles                     { return m.tiles }
func (m *Matcher) Objects() uint32                      { return m.hi - m.lo }

// Column is the space of a column by its position, and the objects of the index that have a value in it; nil: all.
func (m *Matcher) Column(position int) (space metric.Space, present filter.Set) {
	return m.scanned[position].space, m.scanned[position].present
}

// Join implements run.Joiner: parts are the same job on ranges of tiles. Where one is to go on, so is the job, with what each has come to.
func (m *Matcher) Join(job *run.Job, parts []*run.Job) {
	job.Hits, job.Ranked, job.Total = job.Hits[:0], true, 0
	var begun begunAll
	for _, part := range parts {
		if part.Err != nil {
			job.Err = part.Err
			return
		}
		if all, ok := part.Begun.(begunAll); ok {
			begun = append(begun, all...)
		}
		job.Postponed = job.Postponed || part.Postponed
		job.Spent += part.Spent
	}
	if job.Postponed {
		job.Begun = begun
		return
	}
	job.Begun = nil
	all := distance.Answer{Method: distance.Scan, Exact: true, Counted: true}
	for _, part := range parts {
		job.Hits = append(job.Hits, part.Hits...)
		job.Units += part.Units
		job.Candidates += part.Candidates
		job.Total += part.Total
		if a, ok := part.Value.(*distance.Answer); ok {
			all.Join(a)
		}
	}
	slices.SortFunc(job.Hits, compareScored)
	job.Hits = job.Hits[:min(len(job.Hits), job.Query.(*distance.Query).K)]
	job.Value, job.Approximate = &all, !all.Exact
}
