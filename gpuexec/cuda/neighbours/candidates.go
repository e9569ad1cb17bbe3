//go:build cuda

package neighbours

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	hosted "github.com/geniemq/geniemq/gpuexec/cpu/nearest"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/device"
	"github.com/geniemq/geniemq/gpuexec/cuda/nearest"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
	"github.com/geniemq/geniemq/gpuexec/cuda/room"
	"github.com/geniemq/geniemq/gpuexec/cuda/textscan"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/metric"
)

// candidates answers the queries of an approximate method of columns whose means to find candidates lie on the device beside their rows or texts: rank vectors, and cells.
type candidates struct {
	scan    *scan
	method  string
	form    string             // how what lies there is said to people
	columns []*candidateColumn // by position; nil: there is none
	held
}

// A finder of candidates: nearest.Ranks, nearest.Cells.
type candidateFinder interface {
	Takes(q *distance.Query, waves *profile.NearWaves) bool
	Least(q *distance.Query, waves *profile.NearWaves) int
	Cost(q *distance.Query, waves *profile.NearWaves) int64
	Fits(q *distance.Query, room plan.Room, waves *profile.NearWaves) bool
	Plan(asks, asked []nearest.Ask, room plan.Room, waves *profile.NearWaves) *nearest.CandidatesPiece
	Tell(a *nearest.Ask, compared uint64) (did distance.Answer, enough bool)
}

// candidateColumn is a column with the means to find candidates on the device.
type candidateColumn struct {
	candidateFinder
	near, of *column // what is searched first, and whose objects these are
	bytes    int64
	// ask is what asks ask of near.
	ask func(ctx context.Context, asks []nearest.Ask) ([]nearest.Ask, error)
	// compare records what compares the objects that are near, and answers.
	compare func(steps *device.Steps, p *nearest.CandidatesPiece, near abi.Near, arena abi.Pointer)
}

// each calls lay with every column whose objects are all here and have a value, and keeps what it has laid out. It is nil where that is nothing. starts: of texts.
func (p *candidates) each(texts *textscan.Path, lay func(c *column, starts []uint32) (*candidateColumn, error)) (*candidates, error) {
	any := false
	for i, c := range p.scan.columns {
		p.columns = append(p.columns, nil)
		var starts []uint32
		if c == nil && texts != nil {
			c, starts = descended(texts, i)
		}
		if c == nil {
			continue
		}
		space, _ := p.scan.host.Column(i)
		_, ids, err := c.Of.Dense(space)
		if err == nil && ids == nil {
			p.columns[i], err = lay(c, starts)
		}
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		any = any || p.columns[i] != nil
	}
	if !any {
		return nil, nil
	}
	return p, nil
}

// descended is a column of texts as a search of some of them wants it, and where each begins, by object; nil where there is none.
func descended(texts *textscan.Path, at int) (*column, []uint32) {
	of, rows, starts := texts.Descended(at)
	if of == nil {
		return nil, nil
	}
	return &column{Column: of, rows: rows}, starts
}

// keep lays out words beside what is searched first, and says where; nil: they have no room, and that is given back too. fill allocates more in the same memory, of so many bytes; nil: nothing.
func (p *candidates) keep(e *device.Engine, r *room.Room, own *candidateColumn, bytes int64, fill func(m *device.Memory, at []abi.Pointer) error, arrays ...[]uint32) (at []abi.Pointer, err error) {
	all := bytes
	for _, array := range arrays {
		all += abi.Align(int64(abi.WordBytes * len(array)))
	}
	ok, err := p.take(e, r, p.form+" of "+own.of.Of.Name, all, func(m *device.Memory) error {
		for _, array := range arrays {
			to, err := m.Allocate(p.form, int64(abi.WordBytes*len(array)))
			if err != nil {
				return err
			}
			at = append(at, to)
			if err := m.Upload(to, func(write func([]byte)) { write(abi.Bytes(array)) }); err != nil {
				return err
			}
		}
		if fill == nil {
			return nil
		}
		return fill(m, at)
	})
	if !ok {
		return nil, errors.Join(err, own.near.close())
	}
	own.bytes += all
	return at, nil
}

func (p *candidates) column(q *distance.Query) *candidateColumn {
	return ofColumn(p.scan.host, p.columns, q)
}

// Takes implements nearest.Path.
func (p *candidates) Takes(b *hosted.Batch, job int) bool {
	q := b.Job(job).Query.(*distance.Query)
	c := p.column(q)
	return c != nil && b.Method(job) == p.method && c.Takes(q, p.scan.waves) && (b.Len() >= c.Least(q, p.scan.waves) || p.scan.engine.Untried()) && c.Fits(q, p.scan.engine.Room(), p.scan.waves)
}

// Cost implements nearest.Path.
func (p *candidates) Cost(of *gpuexec.Plan) int64 {
	if q, ok := of.Query.(*distance.Query); ok && q != nil {
		if c := p.column(q); c != nil && c.Takes(q, p.scan.waves) {
			return c.Cost(q, p.scan.waves)
		}
	}
	return 0
}

// Price implements nearest.Path. Which queries go so the reference device decides, so nobody asks.
func (p *candidates) Price(*distance.Query, string, int) time.Duration { return 0 }

// Residence implements nearest.Path.
func (p *candidates) Residence() run.Residence {
	var forms []string
	bytes := int64(0)
	for _, c := range p.columns {
		if c != nil {
			bytes += c.bytes
			form := p.form + " of " + c.of.Of.Name
			if c.near.Sieve != nil {
				form += " by " + c.near.Sieve.Product.Said()
			}
			forms = append(forms, form)
		}
	}
	return resident(forms, bytes)
}

// Close implements nearest.Path.
func (p *candidates) Close() error {
	var errs []error
	for _, c := range p.columns {
		if c != nil {
			errs = append(errs, c.near.close())
		}
	}
	p.columns = nil
	return errors.Join(append(errs, p.free())...)
}

// Match implements nearest.Path: column after column, in pieces that fit.
func (p *candidates) Match(ctx context.Context, b *hosted.Batch, jobs []int, t *gpuexec.Trace) (left []int, err error) {
	for _, own := range p.columns {
		asks := asksOf(b, jobs, func(q *distance.Query) bool { return own != nil && p.column(q) == own })
		if len(asks) == 0 {
			continue
		}
		asked, err := own.ask(ctx, asks)
		if err != nil {
			return nil, err
		}
		if err := p.scan.engine.OnLane(ctx, func(l *device.Lane) error {
			s := comparison{candidates: p, own: own, lane: l, b: b, t: t, asked: asked}
			err := inPieces(ctx, b, asks, comparing, s.execute)
			slices.Sort(s.left)
			left = append(left, s.left...)
			return err
		}); err != nil {
			return nil, err
		}
	}
	return left, nil
}

// A comparison is asks of a batch whose candidates are found and compared.
type comparison struct {
	*candidates
	own   *candidateColumn
	lane  *device.Lane
	b     *hosted.Batch
	t     *gpuexec.Trace
	asked []nearest.Ask // of the asks that are left: of what is searched first
	mu    sync.Mutex
	left  []int // jobs that compare more than is here: they are the host's
}

const comparing = "comparing candidates"

// execute executes a piece of the first asks. Those that the sieve of what is searched first has given up are asked anew.
func (s *comparison) execute(ctx context.Context, asks []nearest.Ask) (n int, again []nearest.Ask, err error) {
	s.asked = nearest.Left(s.asked, asks)
	p := s.own.Plan(asks, s.asked, s.scan.engine.Room(), s.scan.waves)
	if n = len(p.Asks); n == 0 {
		return 0, nil, nil
	}
	if s.t != nil {
		s.t.Work.Used(p.End(), n)
	}
	out, err := s.lane.Execute(comparing, s.t, p.InBytes(), func(in []byte) { p.Encode(in, cores(ctx, s.scan.engine)) }, func(steps *device.Steps, arena abi.Pointer) { s.record(steps, p, arena) }, p.States, p.OutBytes())
	if err != nil {
		return 0, nil, err
	}
	if again, err = p.Decode(out, cores(ctx, s.scan.engine), s.told); p.Marks != nil { // alone few warps would visit its many cells: a host's core is quicker
		s.left, again = nearest.AppendJobs(s.left, again), nil
	} else if len(again) > 0 {
		for i := range p.Asks {
			if p.Asks[i].Exact { // and was not: those that are exact are in pieces of their own
				s.asked = append(s.asked, s.asked[i])
			}
		}
	}
	return n, again, err
}

// told hands an ask what was found, from any core.
func (s *comparison) told(a *nearest.Ask, hits []metric.Hit, did *distance.Answer, passed uint64) {
	told, ok := s.own.Tell(a, did.Distances)
	if !ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.left = append(s.left, a.Job)
		return
	}
	*did = told
	job := s.b.Job(a.Job)
	job.Candidates += passed
	job.Approximate = !did.Exact
	s.b.Answer(a.Job, hits, did)
}

// record records the first search, and that among what it has found.
func (s *comparison) record(steps *device.Steps, p *nearest.CandidatesPiece, arena abi.Pointer) {
	k, d := s.scan.kernels, s.scan.engine.Device()
	launcher{k, s.own.near, &p.First, d}.recordWaves(steps, arena)
	of := launcher{k, s.own.of, &p.Piece, d}
	of.derived(steps, arena)
	near := of.near(arena)
	s.own.compare(steps, p, near, arena)
}
