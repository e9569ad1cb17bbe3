//go:build cuda

package neighbours

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	hosted "github.com/geniemq/geniemq/gpuexec/cpu/nearest"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/device"
	"github.com/geniemq/geniemq/gpuexec/cuda/nearest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/metric"
)

// ranks answers the queries of the method permutation of columns whose rank vectors lie on the device beside their rows or texts (kernels/near_ranks.cu). The ranks of a query are
// found on the host, since they are some values of one each.
type ranks struct {
	scan    *scan
	listed  device.Function
	scans   map[string]*scanKernel            // of rank vectors
	edits   map[nearest.Terms]device.Function // of texts
	columns []*rankColumn                     // by position; nil: there is none
	release []func()
}

// rankColumn is a column of rank vectors on the device.
type rankColumn struct {
	*nearest.Ranks
	of     *column // whose objects they are of
	ranks  *column
	memory *device.Memory // of starts
	starts abi.Pointer    // of texts
	bytes  int64
}

const formRanks = "rank vectors"

// loadRanks lays rank vectors out. It is nil where there are none.
func loadRanks(e *device.Engine, r *room, s *scan, texts *textPath) (*ranks, error) {
	p := &ranks{scan: s, scans: make(map[string]*scanKernel), edits: make(map[nearest.Terms]device.Function)}
	if err := p.find(e); err != nil {
		return nil, err
	}
	any := false
	for i, c := range s.columns {
		p.columns = append(p.columns, nil)
		var starts []uint32
		if c == nil && texts != nil {
			c, starts = texts.descended(i)
		}
		if c == nil {
			continue
		}
		space, _ := s.host.Column(i)
		_, ids, err := c.Of.Dense(space)
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		own := nearest.NewRanks(c.Column, ids)
		if own == nil {
			continue
		}
		if p.columns[i], err = p.load(e, r, own, c, starts); err != nil {
			return nil, errors.Join(err, p.Close())
		}
		any = any || p.columns[i] != nil
	}
	if !any {
		return nil, nil
	}
	return p, nil
}

// find finds the kernels.
func (p *ranks) find(e *device.Engine) error {
	var errs []error
	number := func(name string) int {
		n, err := e.Constant("near_ranks", name)
		errs = append(errs, err)
		return n
	}
	kernel := func(name string, threads int) device.Function {
		f, err := e.Kernel("near_ranks", name, threads, 0)
		errs = append(errs, err)
		return f
	}
	lists, threads := number("near_ranks_threads"), number("rank_threads")
	p.listed = kernel("near_ranked", lists)
	for _, terms := range nearest.TextTerms() {
		p.edits[terms] = kernel("near_list_"+string(terms), lists)
	}
	for _, most := range ranksOf {
		for _, terms := range []nearest.Terms{nearest.Squares, nearest.Differences} {
			name := scanName(terms, most)
			p.scans[name] = &scanKernel{kernel(name, threads), threads, number("rank_queries")}
		}
	}
	return errors.Join(errs...)
}

// ranksOf are the most ranks that kernels compare.
var ranksOf = [...]int{64, 128, 256}

func scanName(terms nearest.Terms, most int) string { return fmt.Sprintf("rank_%s_%d", terms, most) }

// rankScanOf is the kernel that compares rank vectors of a column: there are at most 255 permutants.
func rankScanOf(c *nearest.Column) string {
	at := slices.IndexFunc(ranksOf[:], func(most int) bool { return c.Dims <= most })
	return scanName(c.Terms, ranksOf[at])
}

// load lays rank vectors out; nil where they have no room.
func (p *ranks) load(e *device.Engine, r *room, of *nearest.Ranks, c *column, starts []uint32) (*rankColumn, error) {
	own := &rankColumn{Ranks: of, of: c}
	var err error
	rows := func(write func([]byte)) { write(of.Ranks()) }
	if own.ranks, err = load(e, p.scan.kernels, r, of.Column, nil, rows, nil, false); err != nil || own.ranks == nil {
		return nil, err
	}
	own.ranks.scan = p.scans[rankScanOf(of.Column)]
	own.bytes = own.ranks.RowsBytes()
	if starts == nil {
		return own, nil
	}
	bytes := int64(abi.WordBytes * len(starts))
	release, err := r.take(formRanks+" of "+c.Of.Name, bytes)
	if err != nil || release == nil {
		return nil, errors.Join(err, own.ranks.close())
	}
	p.release, own.bytes = append(p.release, release), own.bytes+bytes
	own.memory, err = e.NewMemory(func(m *device.Memory) (err error) {
		if own.starts, err = m.Allocate("starts of texts", bytes); err != nil {
			return err
		}
		return m.Upload(own.starts, func(write func([]byte)) { write(abi.Bytes(starts)) })
	})
	if err != nil {
		return nil, errors.Join(err, own.ranks.close())
	}
	return own, nil
}

func (p *ranks) column(q *distance.Query) *rankColumn {
	if at := p.scan.host.At(q.Column); at >= 0 {
		return p.columns[at]
	}
	return nil
}

// Takes implements nearest.Path.
func (p *ranks) Takes(b *hosted.Batch, job int) bool {
	q := b.Job(job).Query.(*distance.Query)
	c := p.column(q)
	return c != nil && b.Method(job) == "permutation" && c.Takes(q) && c.Fits(q, p.scan.engine.Room(), p.scan.waves)
}

// Cost implements nearest.Path.
func (p *ranks) Cost(of *gpuexec.Plan) int64 {
	if q, ok := of.Query.(*distance.Query); ok && q != nil {
		if c := p.column(q); c != nil && c.Takes(q) {
			return c.Cost(q, p.scan.waves)
		}
	}
	return 0
}

// Price implements nearest.Path. Which queries go by ranks the reference device decides, so nobody asks.
func (p *ranks) Price(*distance.Query, string, int) time.Duration { return 0 }

// Residence implements nearest.Path.
func (p *ranks) Residence() run.Residence {
	r := run.Residence{Parts: 1}
	var forms []string
	for _, c := range p.columns {
		if c != nil {
			r.DeviceBytes += c.bytes
			forms = append(forms, formRanks+" of "+c.of.Of.Name)
		}
	}
	r.IndexBytes, r.Form = r.DeviceBytes, strings.Join(forms, ", ")
	return r
}

// Close implements nearest.Path.
func (p *ranks) Close() error {
	var errs []error
	for _, c := range p.columns {
		if c == nil {
			continue
		}
		errs = append(errs, c.ranks.close())
		if c.memory != nil {
			errs = append(errs, c.memory.Free())
		}
	}
	for _, release := range p.release {
		release()
	}
	p.columns, p.release = nil, nil
	return errors.Join(errs...)
}

// Match implements nearest.Path: column after column, in pieces that fit.
func (p *ranks) Match(ctx context.Context, b *hosted.Batch, jobs []int, t *gpuexec.Trace) error {
	for _, own := range p.columns {
		var asks []nearest.Ask
		for _, job := range jobs {
			q := b.Job(job).Query.(*distance.Query)
			if own == nil || p.column(q) != own {
				continue
			}
			a := nearest.Ask{Job: job, Query: q}
			a.Passes, a.Set = b.Passing(job)
			asks = append(asks, a)
		}
		if len(asks) == 0 {
			continue
		}
		asked, err := p.asked(ctx, own, asks)
		if err != nil {
			return err
		}
		s := ranking{p, own, b, t}
		if err := p.scan.engine.OnLane(ctx, func(l *device.Lane) error { return s.pieces(ctx, l, asks, asked) }); err != nil {
			return err
		}
	}
	return nil
}

// asked finds the ranks of queries, on all cores, and is what they ask of rank vectors.
func (p *ranks) asked(ctx context.Context, own *rankColumn, asks []nearest.Ask) ([]nearest.Ask, error) {
	space, _ := p.scan.host.Column(p.scan.host.At(own.of.Of))
	found := make([]nearest.Ask, len(asks))
	const together = 16
	err := p.scan.engine.Host.Crew.Run(ctx, (len(asks)+together-1)/together, func(_ *run.Shift, unit int) {
		searcher := own.Searcher()
		for i := unit * together; i < min(len(asks), (unit+1)*together); i++ {
			if asker, err := asks[i].Query.Asker(space); err == nil { // Check has seen to it
				found[i] = own.Asked(&asks[i], searcher.Ranks(asker))
			}
		}
	})
	return found, err
}

// A ranking is asks of a batch by rank vectors of a column.
type ranking struct {
	*ranks
	own *rankColumn
	b   *hosted.Batch
	t   *gpuexec.Trace
}

// pieces executes asks, piece after piece.
func (s ranking) pieces(ctx context.Context, l *device.Lane, asks, asked []nearest.Ask) error {
	for len(asks) > 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if job := s.b.Job(asks[0].Job); !job.Deadline.IsZero() && !time.Now().Before(job.Deadline) {
			job.Err = gpuexec.ErrDeadline
			asks, asked = asks[1:], asked[1:]
			continue
		}
		p := s.own.Plan(asks, asked, s.scan.engine.Room(), s.scan.waves)
		if len(p.Asks) == 0 { // Takes has seen to it that this cannot be
			s.b.Job(asks[0].Job).Err = &gpuexec.DeviceError{Op: "searching by rank vectors", OutOfMemory: true, Err: errors.New("it has no room alone")}
			asks, asked = asks[1:], asked[1:]
			continue
		}
		if s.t != nil {
			s.t.Work.Used(p.End(), len(p.Asks))
		}
		out, err := l.Execute("searching by rank vectors", s.t, p.InBytes(), p.Encode, func(steps *device.Steps, arena abi.Pointer) { s.record(steps, p, arena) }, p.States, p.OutBytes())
		if err != nil {
			return err
		}
		asks, asked = asks[len(p.Asks):], asked[len(p.Asks):]
		each := func(units, nanoseconds int, work func(int)) error {
			return s.scan.engine.Host.Crew.Each(ctx, units, nanoseconds, work)
		}
		if _, err := p.Decode(out, each, s.told); err != nil { // no sieve has given any up
			return err
		}
	}
	return nil
}

// told hands an ask what was found, and says what is known of it (permutation.Searcher.End).
func (s ranking) told(a *nearest.Ask, hits []metric.Hit, did *distance.Answer, passed uint64) {
	steps, passing := s.own.Steps(a.Query), s.own.Of.Objects
	if a.Set >= 0 {
		passing = uint32(a.Passes.Len())
	}
	*did = distance.Answer{
		Method: "permutation", Exact: passing <= steps, Distances: uint64(min(passing, steps)) + uint64(len(s.own.Permutants())), Blocks: 1,
		Fraction: a.Query.Column.Compares(a.Query),
	}
	if a.Set < 0 && math.IsInf(a.Query.Most, 1) && !did.Exact {
		if expected, ok := s.own.Recall().At(a.Query.K, did.Fraction); ok {
			did.Recall = expected.Share
		}
	}
	job := s.b.Job(a.Job)
	job.Candidates += passed
	job.Approximate = !did.Exact
	s.b.Answer(a.Job, hits, did)
}

// record records the search for candidates and that among them.
func (s ranking) record(steps *device.Steps, p *nearest.RanksPiece, arena abi.Pointer) {
	k, n, d := s.scan.kernels, len(p.Asks), s.scan.engine.Device()
	launcher{k, s.own.ranks, &p.Ranked, d}.recordWaves(steps, arena)
	own := launcher{k, s.own.of, &p.Piece, d}
	own.derived(steps, arena)
	at := func(offset int64) abi.Pointer { return arena + abi.Pointer(offset) }
	v := abi.NearRanked{
		Near: own.near(arena), Queries: at(p.Ranked.Queries), States: at(p.Ranked.States), Entries: at(p.Ranked.Candidates),
		Starts: s.own.starts, Symbols: uint32(s.own.of.Symbols()),
	}
	device.Launch(steps, s.listed, n, 1, &v)
	if s.own.starts != 0 {
		device.Launch(steps, s.edits[s.own.of.Terms], n, 1, &v)
		device.Launch(steps, k.compact, n, 1, &v.Near)
	} else {
		device.Launch(steps, k.list[s.own.of.Terms], n, 1, &v.Near)
	}
	device.Launch(steps, k.answer, n, 1, &v.Near)
}
