package rescoring

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/gpuexec/topk"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/verify"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// device does what kernels/terms.cu says, of what is sent.
type device struct {
	memory [][]byte // of columns, by Originals.Terms
	in     []byte

	unordered int // orders that it says mean nothing
}

// order puts the candidates of orders in order. It is written from the kernel's text too.
func (d *device) order(l *Layout, out []byte, from int64, answers [][]topk.Entry, kept []int) {
	o, p := &l.Orders, l.Terms()
	heads := abi.Array[abi.OrderedHead](out, o.Heads-from, o.Count)
	for i, own := range abi.Array[abi.TermsOrder](d.in, o.Tasks, o.Count) {
		n := kept[own.Query]
		scores := abi.Array[uint64](out, p.Scores-from+abi.TermsScoreBytes*int64(own.Scores), n)
		hits := make([]abi.OrderedHit, n, n+int(own.Wanted))
		heads[i] = abi.OrderedHead{Ordered: 1}
		for rank, score := range scores {
			hits[rank] = abi.OrderedHit{Score: score, Entry: uint64(answers[own.Query][n-1-rank])}
			heads[i].Least = answers[own.Query][0].Count()
		}
		if i%3 == 2 { // as if a candidate had not been compared
			heads[i], d.unordered = abi.OrderedHead{}, d.unordered+1
			continue
		}
		slices.SortFunc(hits, func(a, b abi.OrderedHit) int {
			return -cmp.Or(cmp.Compare(a.Score, b.Score), cmp.Compare(a.Entry, b.Entry))
		})
		copy(abi.Array[abi.OrderedHit](out, o.Hits-from+abi.OrderedHitBytes*int64(own.Hits), int(own.Wanted)), hits)
	}
}

// score scores a task's entries. It is written from the kernel's text, not from the host's measures.
func (d *device) score(l *Layout, o *Originals, out []byte, from int64, answers [][]topk.Entry, kept []int) {
	p := l.Terms()
	for column, launch := range p.Launches {
		own := o.Terms[column]
		tiles := abi.Array[uint64](d.memory[column], 0, own.Tiles.Len())
		data := d.memory[column][own.TableBytes():]
		for _, task := range abi.Array[abi.TermsTask](d.in, p.Tasks, launch.First+launch.Tasks)[launch.First:] {
			asked := abi.Array[abi.AskedTerm](d.in, p.Words+abi.AskedTermBytes*int64(task.First), int(task.Terms))
			scores := abi.Array[uint64](out, p.Scores-from+abi.TermsScoreBytes*int64(task.Scores), int(task.Rank+task.Ranks))
			for rank := task.Rank; rank < task.Rank+task.Ranks; rank++ {
				if scores[rank] != 1 {
					panic("a rank is in two tasks")
				}
				scores[rank] = math.MaxUint64
				if int(rank) < kept[task.Query] {
					entry := answers[task.Query][kept[task.Query]-1-int(rank)]
					scores[rank] = scoreOf(data, tiles, int(own.Objects()), int(entry.ID()-own.Tiles.Base()), asked, &task)
				}
			}
		}
	}
}

func scoreOf(data []byte, tiles []uint64, objects, object int, asked []abi.AskedTerm, task *abi.TermsTask) uint64 {
	tile, local := object/abi.TileObjects, object%abi.TileObjects
	at := int64(16 * tiles[tile])
	records := min(objects-tile*abi.TileObjects, abi.TileObjects)
	r := abi.Array[uint32](data, at+16*int64(local), 4)
	words := abi.Array[uint32](data, at+16*int64(records)+4*int64(r[0]), int(r[1]))
	behind := at + 16*int64(records) + 4*int64(r[0]+r[1])
	times := func(i int) float64 {
		switch repeats := r[2] - r[1]; {
		case repeats == 0:
			return 1
		case repeats < 255:
			return float64(data[behind+int64(i)])
		}
		return float64(abi.Array[uint32](data, behind+4*int64(i), 1)[0])
	}
	if r[1] > abi.MaxObjectTerms {
		return math.MaxUint64
	}
	common, score := uint64(0), 0.0
	for i, term := range words {
		for _, a := range asked {
			if a.Term != term {
				continue
			}
			common += uint64(a.Weight)
			norm := float64(1.2 * float64(0.25+float64(0.75*float64(float64(r[2])/task.Mean))))
			score += float64(float64(a.Gain*times(i)) / float64(times(i)+norm))
		}
	}
	switch task.Measure {
	case abi.TermsBM25:
		return math.Float64bits(score)
	case abi.TermsSummed:
		return common<<32 | uint64(r[3])
	}
	return common<<32 | uint64(r[1])
}

// TestTerms: what is sent of jobs that are rescored by terms tells a device all that it needs, and with what comes back the hits are those that the host
// finds alone. The device is a few lines here; the kernel is held against the CPU engine where it runs.
func TestTerms(t *testing.T) {
	raced.Skip(t, raced.One)
	rng := seeded.Rand(t)
	scored, left, unordered := 0, 0, 0
	for round := 0; round < 25 || (scored < 10_000 || left == 0 || unordered == 0) && round < 1000; round++ {
		n := 1 + rng.IntN(600)
		if round == 0 && !testing.Short() {
			n = abi.TileObjects + 700
		}
		x := enginetest.TermsIndex(t, rng, n)
		tiles := run.AllTiles(x)
		tiles.First = rng.IntN(tiles.Len())
		all, err := Survey(context.Background(), x, nil, tiles, run.NewCrew(1))
		if err != nil {
			t.Fatal(err)
		}
		if all.Texts != nil || len(all.Terms) != 3 {
			t.Fatalf("%+v", all)
		}
		o := all.fit(t)
		d := device{in: make([]byte, 8<<20)}
		for _, own := range o.Terms {
			var memory []byte
			own.Each(func(array []byte) {
				memory = append(memory, array...)
				memory = append(memory, make([]byte, int(abi.Units(len(array))*abi.UnitBytes)-len(array))...)
			})
			if int64(len(memory)) != own.DeviceBytes() {
				t.Fatalf("%d bytes in place of %d", len(memory), own.DeviceBytes())
			}
			d.memory = append(d.memory, memory)
		}
		some, none := o.roundTrip(t, rng, x, tiles, &d)
		scored, left, unordered = scored+some, left+none, unordered+d.unordered
	}
	t.Logf("%d candidates scored, %d plans left to the host, %d not put in order", scored, left, unordered)
	if scored < 10_000 || left == 0 || unordered == 0 {
		t.Error("a case has not come up")
	}
}

// fit are those that fit in the memory that they take.
func (o *Originals) fit(t testing.TB) Originals {
	t.Helper()
	if got := o.Fitting(o.DeviceBytes() - 1); len(got.Terms) != len(o.Terms)-1 {
		t.Fatalf("%d of %d columns fit where a byte is missing", len(got.Terms), len(o.Terms))
	}
	return o.Fitting(o.DeviceBytes())
}

// roundTrip sends a piece of jobs and compares what becomes of what comes back.
func (o *Originals) roundTrip(t testing.TB, rng *rand.Rand, x *index.Index, tiles run.Tiles, d *device) (scored, left int) {
	t.Helper()
	var l Layout
	l.Begin(o)
	jobs, shares := make([]run.Job, 1+rng.IntN(20)), make([]Share, 0, 20)
	answers, kept := make([][]topk.Entry, len(jobs)), make([]int, len(jobs))
	for i := range jobs {
		column := &x.Forward().Columns()[rng.IntN(3)]
		jobs[i].Rescore, jobs[i].Orderable = enginetest.AskTerms(t, rng, column), rng.IntN(3) > 0
		if rng.IntN(8) == 0 {
			jobs[i].Rescore = nil
		}
		objects := int(tiles.Objects(x.Objects()))
		jobs[i].K = min(objects, jobs[i].K+rng.IntN(400))
		for _, at := range rng.Perm(objects)[:rng.IntN(jobs[i].K+1)] {
			jobs[i].Entries = append(jobs[i].Entries, topk.NewEntry(1000+rng.Uint32N(5), tiles.Base()+uint32(at)))
		}
		slices.Sort(jobs[i].Entries)
		answers[i], kept[i] = append(slices.Clone(jobs[i].Entries), make([]topk.Entry, jobs[i].K-len(jobs[i].Entries))...), len(jobs[i].Entries)
		shares = append(shares, o.Share(&jobs[i], 0))
		l.Add(&shares[i])
	}
	const at, from = 256, 1 << 20
	in := l.Send(at)
	out, end := l.Return(from + 8*100)
	var needIn, needOut, needInner int64
	for i := range shares {
		a, b, c := shares[i].Need()
		needIn, needOut, needInner = needIn+a, needOut+b, needInner+c
		if shares[i].Ordered() {
			needInner += topk.EntryBytes * int64(jobs[i].K) // its answer
		}
	}
	if in-at != needIn || out-from-800 != needOut || end-abi.Align(out) != needInner {
		t.Fatalf("%d bytes are sent, %d come back and %d do not, announced were %d, %d and %d", in-at, out-from-800, end-abi.Align(out), needIn, needOut, needInner)
	}
	e := l.Encoder(o, d.in)
	answer := uint32(0)
	for i := range jobs {
		e.Add(&shares[i], uint32(jobs[i].K), uint32(i), answer)
		answer += uint32(jobs[i].K)
	}
	e.Done()
	for _, i := range rng.Perm(len(jobs)) {
		l.Ask(o, d.in, &shares[i], &jobs[i])
	}
	back := make([]byte, end-from)
	for i := range abi.Array[uint64](back, 0, len(back)/8) {
		abi.Array[uint64](back, 0, len(back)/8)[i] = 1 // of no score
	}
	d.score(&l, o, back, from, answers, kept)
	d.order(&l, back, from, answers, kept)
	back = back[:out-from]
	for i := range jobs {
		if !l.Orders.Sound(back, from, &shares[i]) {
			continue
		}
		if jobs[i].Ordered, jobs[i].Found = shares[i].Ordered(), kept[i]; jobs[i].Ordered {
			wants := jobs[i].Rescore.(*verify.Scores)
			if by, _ := wants.Terms(); by.BM25 == nil || !jobs[i].Orderable {
				t.Fatal("a job that nobody can put in order")
			}
		}
		l.Decode(back, from, &shares[i], &jobs[i])
		if jobs[i].Rescore == nil || shares[i].Scored == 0 {
			if left++; len(jobs[i].Known) != 0 {
				t.Fatal("something is known of what nobody has scored")
			}
			continue
		}
		scored += kept[i]
		sameHits(t, &jobs[i])
	}
	return scored, left
}

// sameHits compares the hits of candidates of which something is known, or which are in order, with those that the host finds.
func sameHits(t testing.TB, job *run.Job) {
	t.Helper()
	if !job.Ordered && (len(job.Known) != len(job.Entries) || slices.Contains(job.Known, verify.Unknown)) {
		t.Fatalf("%d of %d candidates are known", len(job.Known), len(job.Entries))
	}
	var candidates []verify.Candidate
	for _, e := range slices.Backward(job.Entries) {
		candidates = append(candidates, verify.Candidate{ID: e.ID(), Count: e.Count()})
	}
	offered := func(known []verify.Known) verify.Rescorer {
		r := job.Rescore.New(nil)
		if err := r.Offer(candidates, known, nil, 0); err != nil {
			t.Fatal(err)
		}
		return r
	}
	host, other := offered(nil), offered(job.Known)
	if job.Ordered {
		if n := len(candidates); n > 0 && job.Least != candidates[n-1].Count {
			t.Fatalf("the least count is told to be %d, it is %d", job.Least, candidates[n-1].Count)
		}
		other = job.Rescore.New(other)
		other.(verify.Taker).Take(job.Best, job.Found)
		if other.Offered() != len(candidates) {
			t.Fatalf("%d of %d candidates are done with", other.Offered(), len(candidates))
		}
	}
	for rest := range uint32(3) {
		if order, ok := job.Rescore.(verify.Ordering); ok && job.Ordered && host.Certified(rest) != order.Proven(job.Best, rest) {
			t.Fatalf("certified for a count of %d: %v by the host, proven by the order: %v", rest, host.Certified(rest), order.Proven(job.Best, rest))
		}
		if host.Certified(rest) != other.Certified(rest) {
			t.Fatalf("certified for a count of %d: %v by the host alone, %v with the device", rest, host.Certified(rest), other.Certified(rest))
		}
	}
	if want, got := host.Hits(nil), other.Hits(nil); !slices.Equal(want, got) {
		t.Fatalf("with what the device knows:\n%v\nthe host alone:\n%v", got, want)
	}
}
