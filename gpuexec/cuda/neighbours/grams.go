//go:build cuda

package neighbours

import (
	"context"
	"errors"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	hosted "github.com/geniemq/geniemq/gpuexec/cpu/nearest"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/device"
	"github.com/geniemq/geniemq/gpuexec/cuda/nearest"
	"github.com/geniemq/geniemq/gpuexec/cuda/room"
	"github.com/geniemq/geniemq/gpuexec/cuda/textscan"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/metric"
)

// grams answers queries within a radius of columns of texts whose n-grams are in lists: these are counted on the device (kernels/near_grams.cu), and what is in enough of them is compared.
// Which lists are counted, and how many are enough, the host has found out, since by that it chooses.
type grams struct {
	scan    *scan
	kernels gramKernels
	columns []*gramColumn // by position; nil: there is none
	held
}

type gramKernels struct {
	count, listed device.Function
	threads       int
	edits         map[nearest.Terms]device.Function
}

// gramColumn is a column of texts with its lists on the device.
type gramColumn struct {
	*column
	bytes                                   int64
	lists                                   hosted.GramLists
	textStarts                              abi.Pointer
	starts, tiles, ids, rareStarts, rareIds abi.Pointer
}

// loadGrams lays out the lists of n-grams of columns of texts whose objects are all here. It is nil where there are none.
func loadGrams(e *device.Engine, r *room.Room, s *scan, texts *textscan.Path) (*grams, error) {
	p := &grams{scan: s}
	if err := p.kernels.find(e); err != nil {
		return nil, err
	}
	any := false
	for i := range s.host.Columns().Len() {
		p.columns = append(p.columns, nil)
		c, starts := descended(texts, i)
		lists, ok := s.host.GramLists(i)
		if c == nil || !ok {
			continue
		}
		space, _ := s.host.Column(i)
		_, ids, err := c.Of.Dense(space)
		if err == nil && ids == nil {
			p.columns[i], err = p.lay(e, r, &gramColumn{column: c, lists: lists}, starts)
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

func (k *gramKernels) find(e *device.Engine) error {
	const module = "near_grams"
	l := lookup{engine: e}
	k.threads = l.number(module, "near_grams_threads")
	k.count, k.listed = l.kernel(module, "near_grams", k.threads, l.number(module, "near_grams_shared")), l.kernel(module, "near_grams_listed", k.threads, 0)
	k.edits = make(map[nearest.Terms]device.Function)
	for _, terms := range nearest.TextTerms() {
		k.edits[terms] = l.kernel("near_ranks", "near_list_"+string(terms), l.number("near_ranks", "near_ranks_threads"), 0)
	}
	return l.err()
}

// lay lays a column's lists out; nil: they have no room.
func (p *grams) lay(e *device.Engine, r *room.Room, c *gramColumn, textStarts []uint32) (*gramColumn, error) {
	tiles, each := c.Tiles.Len(), int64(abi.WordBytes)*int64(c.lists.Frequent()+1)
	begins, all := make([]uint64, tiles), int64(0)
	for i := range tiles {
		begins[i] = uint64(all)
		all += int64(len(c.lists.Ids(i)))
	}
	rareStarts, rareIds := c.lists.Rare()
	words := [][]uint32{textStarts, rareStarts, rareIds}
	c.bytes = abi.Align(each*int64(tiles)) + abi.Align(8*int64(tiles)) + abi.Align(2*all)
	for _, w := range words {
		c.bytes += abi.Align(int64(abi.WordBytes * len(w)))
	}
	ok, err := p.take(e, r, "n-grams of "+c.Of.Name, c.bytes, func(m *device.Memory) error {
		put := func(to *abi.Pointer, bytes int64, each func(write func([]byte))) (err error) {
			if *to, err = m.Allocate("n-grams", bytes); err == nil && bytes > 0 {
				err = m.Upload(*to, each)
			}
			return err
		}
		for i, to := range []*abi.Pointer{&c.textStarts, &c.rareStarts, &c.rareIds} {
			if err := put(to, int64(abi.WordBytes*len(words[i])), func(write func([]byte)) { write(abi.Bytes(words[i])) }); err != nil {
				return err
			}
		}
		return errors.Join(
			put(&c.tiles, 8*int64(tiles), func(write func([]byte)) { write(abi.Bytes(begins)) }),
			put(&c.starts, each*int64(tiles), func(write func([]byte)) {
				for i := range tiles {
					write(abi.Bytes(c.lists.Starts(i)))
				}
			}),
			put(&c.ids, 2*all, func(write func([]byte)) {
				for i := range tiles {
					write(abi.Bytes(c.lists.Ids(i)))
				}
			}))
	})
	if !ok {
		return nil, err
	}
	return c, nil
}

func (p *grams) column(q *distance.Query) *gramColumn { return ofColumn(p.scan.host, p.columns, q) }

// Takes implements nearest.Path.
func (p *grams) Takes(b *hosted.Batch, job int) bool {
	q := b.Job(job).Query.(*distance.Query)
	c := p.column(q)
	if c == nil || b.Method(job) != distance.Ngram || !c.GramsFit(q, p.scan.engine.Room(), p.scan.waves) {
		return false
	}
	lists, ok := b.CountedLists(job)
	return ok && c.CountsGrams(q, lists)
}

// Price implements nearest.Path.
func (p *grams) Price(q *distance.Query, method string, queries int) time.Duration {
	if c := p.column(q); c != nil && method == distance.Ngram {
		return c.GramsPrice(q, queries, p.scan.waves)
	}
	return 0
}

// Cost implements nearest.Path.
func (p *grams) Cost(of *gpuexec.Plan) int64 {
	if q, ok := of.Query.(*distance.Query); ok && q != nil {
		if c := p.column(q); c != nil && q.Column.Theta(q) >= 1 {
			return c.GramsCost(q, p.scan.waves)
		}
	}
	return 0
}

// Residence implements nearest.Path.
func (p *grams) Residence() run.Residence {
	var forms []string
	bytes := int64(0)
	for _, c := range p.columns {
		if c != nil {
			forms, bytes = append(forms, "n-grams of "+c.Of.Name), bytes+c.bytes
		}
	}
	return resident(forms, bytes)
}

// Close implements nearest.Path.
func (p *grams) Close() error {
	p.columns = nil
	return p.free()
}

// Match implements nearest.Path: column after column, in pieces that fit. Who finds more than a list has room for is left to the host.
func (p *grams) Match(ctx context.Context, b *hosted.Batch, jobs []int, t *gpuexec.Trace) (left []int, err error) {
	for _, own := range p.columns {
		s := gramCall{grams: p, own: own, b: b, t: t}
		asks := asksOf(b, jobs, func(q *distance.Query) bool { return own != nil && p.column(q) == own })
		for i := range asks {
			asks[i].Counted = b.Counted(asks[i].Job)
		}
		if len(asks) == 0 {
			continue
		}
		if err := p.scan.engine.OnLane(ctx, func(l *device.Lane) error {
			s.lane = l
			return inPieces(ctx, b, nearest.Spare(asks, p.scan.waves.Places), countingGrams, s.execute)
		}); err != nil {
			return nil, err
		}
		left = append(left, s.left...)
	}
	return left, nil
}

const countingGrams = "counting n-grams"

// gramCall is the jobs of a batch on one column.
type gramCall struct {
	*grams
	own  *gramColumn
	lane *device.Lane
	b    *hosted.Batch
	t    *gpuexec.Trace
	left []int
}

// execute executes a piece of the first asks.
func (s *gramCall) execute(ctx context.Context, asks []nearest.Ask) (n int, again []nearest.Ask, err error) {
	p := s.own.PlanGrams(asks, s.scan.engine.Room(), s.scan.waves)
	if n = len(p.Asks); n == 0 {
		return 0, nil, nil
	}
	if s.t != nil {
		s.t.Work.Used(p.End(), n)
	}
	out, err := s.lane.Execute(countingGrams, s.t, p.InBytes(), func(in []byte) { p.Encode(in, cores(ctx, s.scan.engine)) }, func(steps *device.Steps, arena abi.Pointer) { s.record(steps, p, arena) }, p.States, p.OutBytes())
	if err != nil {
		return 0, nil, err
	}
	again, err = p.Decode(out, cores(ctx, s.scan.engine), func(a *nearest.Ask, hits []metric.Hit, did *distance.Answer, passed uint64) {
		*did = p.Told(a, did)
		s.b.Job(a.Job).Candidates += passed
		s.b.Answer(a.Job, hits, did)
	})
	s.left, again = nearest.GivenUp(s.left, again)
	return n, again, err
}

func (s *gramCall) record(steps *device.Steps, p *nearest.GramPiece, arena abi.Pointer) {
	n, c, k := len(p.Asks), s.own, &s.kernels
	v := abi.NearGrams{
		Near: launcher{s.scan.kernels, c.column, &p.Piece, s.scan.engine.Device()}.near(arena), Asks: arena + abi.Pointer(p.Heads), Numbers: arena + abi.Pointer(p.Numbers),
		Starts: c.starts, Tiles: c.tiles, Ids: c.ids, RareStarts: c.rareStarts, RareIds: c.rareIds, Frequent: uint32(c.lists.Frequent()),
	}
	device.Launch(steps, k.count, n, c.Tiles.Len(), &v)
	device.Launch(steps, k.listed, (n+k.threads-1)/k.threads, 1, &v)
	device.Launch(steps, k.edits[c.Terms], n, 1, &abi.NearRanked{Near: v.Near, Starts: c.textStarts, Symbols: uint32(c.Symbols())})
	device.Launch(steps, s.scan.kernels.compact, n, 1, &v.Near)
	device.Launch(steps, s.scan.kernels.answer, n, 1, &v.Near)
}
