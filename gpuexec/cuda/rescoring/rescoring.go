// Package rescoring is what a CUDA device computes of candidates in the batch that finds them: which originals lie there for it, and
// what is sent and comes back. It needs no device.
//
// Once the answers stand in device memory a kernel scores the first candidates of each query that is to be rescored, and what it finds comes
// down with the answers: there is no second round trip. What to make of it, where to stop and what is certain, is decided by package
// verify, which takes it for what the host would have computed (verify.Known).
//
// There are kinds of scoring, a kernel and a form each:
//
//	edit   texts: distances of whole texts            verify.Nearest       kernels/verify.cu
//	terms  a column's terms: what sets share, BM25    verify.Scores        kernels/terms.cu
//
// Of BM25 another kernel puts the candidates in the order of scores, and hits come down alone (Orders).
//
// Forms only make an index faster. Where one is not on the device, or a candidate is more than the kernel takes, the host compares, and the answer
// is the same.
package rescoring

import (
	"context"
	"slices"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/texts"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/forward"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/verify"
)

// Originals are those of an index that lie on a device, each nil or absent where it stays on the host.
type Originals struct {
	Texts *Texts
	Terms []*Terms // by column
}

// Survey finds what of a range of a source's tiles can lie on a device. texts are those that are compared, nil: none.
func Survey(ctx context.Context, x gpuexec.Source, texts verify.Texts, tiles run.Tiles, c *run.Crew) (o Originals, err error) {
	if texts != nil {
		if o.Texts, err = surveyTexts(ctx, texts, tiles, c); err != nil {
			return o, err
		}
	}
	if kept, ok := x.Structure(forward.FamilyName).(*forward.Forward); ok && kept != nil {
		columns := kept.Columns()
		for i := range columns {
			if columns[i].Form == schema.KeptTerms {
				o.Terms = append(o.Terms, newTerms(&columns[i], tiles))
			}
		}
	}
	return o, nil
}

// DeviceBytes is the memory of all.
func (o *Originals) DeviceBytes() int64 { return o.Texts.DeviceBytes() + o.TermsBytes() }

// TermsBytes is the memory of terms.
func (o *Originals) TermsBytes() (bytes int64) {
	for _, t := range o.Terms {
		bytes += t.DeviceBytes()
	}
	return bytes
}

// Fitting are those for which so much memory suffices, one after the other.
func (o *Originals) Fitting(bytes int64) (fitting Originals) {
	if own := o.Texts.DeviceBytes(); own <= bytes {
		fitting.Texts = o.Texts
		bytes -= own
	}
	for _, t := range o.Terms {
		if own := t.DeviceBytes(); own <= bytes {
			fitting.Terms = append(fitting.Terms, t)
			bytes -= own
		}
	}
	return fitting
}

// A kind of scoring.
type kind uint8

const (
	none kind = iota
	edit
	terms
	kinds
)

// sizes are those of what is sent for a kind, and of what comes back: scores whose size is the larger one come first.
type sizes struct{ task, word, score int64 }

func (k kind) sizes() sizes {
	switch k {
	case edit:
		return sizes{abi.VerifyTaskBytes, abi.SymbolBytes, abi.DistanceBytes}
	case terms:
		return sizes{abi.TermsTaskBytes, abi.AskedTermBytes, abi.TermsScoreBytes}
	}
	return sizes{}
}

// A Share is what of a job the device scores: its first candidates, so many as are Scored. The zero Share is nothing.
type Share struct {
	Scored int32
	kind   kind
	launch uint32 // which of the kind's: the class of pairs, the column
	tasks  int32
	words  int32 // of the query's side: symbols, terms

	// Of terms.
	measure uint32
	mean    float64
	hits    int32 // that come back in order, in place of entries and scores; 0: these come back

	first, scores uint32 // of words and scores in a Layout that was encoded
	order, hit    uint32 // number among those in order, and place of the first hit
}

// Share is that of a job, on a device that compares patterns of so many symbols.
func (o *Originals) Share(job *run.Job, maxPattern int) (s Share) {
	switch asked := job.Rescore.(type) {
	case *verify.Nearest:
		if o.Texts.Compares(asked, maxPattern) {
			return o.Texts.share(job, asked)
		}
	case *verify.Scores:
		if len(o.Terms) == 0 {
			break
		}
		if by, ok := asked.Terms(); ok {
			i := slices.IndexFunc(o.Terms, func(t *Terms) bool { return t.Column == by.Column })
			if i >= 0 && o.Terms[i].scores(&by) {
				return o.Terms[i].share(i, job, &by)
			}
		}
	}
	return s
}

// Need is what a share takes beside the answer, in bytes sent to the device, bytes that come back, and bytes that are written and read there alone.
func (s *Share) Need() (in, out, inner int64) {
	z := s.kind.sizes()
	in, out = z.task*int64(s.tasks)+z.word*int64(s.words), z.score*int64(s.Scored)
	if s.Ordered() {
		in, out, inner = in+abi.TermsOrderBytes, abi.OrderedHeadBytes+abi.OrderedHitBytes*int64(s.hits), out
	}
	return in, out, inner
}

// A Launch is tasks that one launch of a kernel does, of which none has more ranks.
type Launch struct{ First, Tasks, Ranks int }

// A Part is what of a Layout is of one kind.
type Part struct {
	Launches             []Launch // of edit by class of pairs, of terms by column
	Tasks, Words, Scores int64    // offsets in the arena

	tasks, words int
	scored       int64
}

// A Layout is what is scored of a piece, and where what concerns it lies in its arena. Tasks and what they ask are sent beside the queries,
// scores follow the answers. All is empty where nothing is scored.
//
// It is made in this order: Begin, Add for each query, Send and Return, Encode for each query in the order of answers, then Ask for each in any order,
// by any number of goroutines; and Decode when the device is done.
type Layout struct {
	parts  [kinds]Part
	Orders Orders
}

// Begin forgets the shares of another piece.
func (l *Layout) Begin(o *Originals) {
	for k := range l.parts {
		launches := 0
		switch kind(k) {
		case edit:
			launches = texts.PairClasses
		case terms:
			launches = len(o.Terms)
		}
		p := &l.parts[k]
		*p = Part{Launches: slices.Grow(p.Launches[:0], launches)[:launches]}
		clear(p.Launches)
	}
	l.Orders = Orders{}
}

// Add counts a share.
func (l *Layout) Add(s *Share) {
	if s.kind == none {
		return
	}
	p := &l.parts[s.kind]
	launch := &p.Launches[s.launch]
	launch.Tasks += int(s.tasks)
	launch.Ranks = max(launch.Ranks, int(min(s.Scored, taskRanks)))
	p.tasks += int(s.tasks)
	p.words += int(s.words)
	if s.Ordered() {
		l.Orders.add(s)
	} else {
		p.scored += int64(s.Scored)
	}
}

// Edit and Terms are the parts of these kinds.
func (l *Layout) Edit() *Part  { return &l.parts[edit] }
func (l *Layout) Terms() *Part { return &l.parts[terms] }

// Send places what is sent from an offset on, which is aligned, and returns the end.
func (l *Layout) Send(at int64) int64 {
	for k := kinds - 1; k > none; k-- { // the larger alignment first
		p, z := &l.parts[k], k.sizes()
		p.Tasks = at
		p.Words = p.Tasks + z.task*int64(p.tasks)
		at = p.Words + z.word*int64(p.words)
		if k == terms {
			l.Orders.Tasks = at
			at += abi.TermsOrderBytes * int64(l.Orders.Count)
		}
		first := 0
		for i := range p.Launches {
			p.Launches[i].First = first
			first += p.Launches[i].Tasks
		}
	}
	return at
}

// Return places the scores from an offset on, which is aligned, and returns where what comes back ends, and all.
func (l *Layout) Return(at int64) (back, end int64) {
	for k := kinds - 1; k > none; k-- {
		p := &l.parts[k]
		p.Scores = at
		at += k.sizes().score * p.scored
		if k == terms {
			at = l.Orders.back(at)
		}
	}
	return at, l.Orders.stay(abi.Align(at))
}

// An Encoder writes the tasks of a Layout.
type Encoder struct {
	layout    *Layout
	originals *Originals
	in        []byte
	next      [kinds]struct{ words, scores uint32 }
	orders    orderEncoder
}

// Encoder writes into the pinned input.
func (l *Layout) Encoder(o *Originals, in []byte) Encoder {
	return Encoder{layout: l, originals: o, in: in, orders: l.Orders.encoder(in)}
}

// Add writes the tasks of a share of a job with so many candidates. query is its number, and answer the place where its answer begins. It reads nothing of the job,
// which lies anywhere in memory, since one core does this for all jobs.
func (e *Encoder) Add(s *Share, k, query, answer uint32) {
	if s.kind == none {
		return
	}
	p, next := &e.layout.parts[s.kind], &e.next[s.kind]
	s.first, s.scores = next.words, next.scores
	next.words += uint32(s.words)
	if s.Ordered() {
		e.orders.add(s, query, answer, uint32(p.Scores/abi.TermsScoreBytes))
	} else {
		next.scores += uint32(s.Scored)
	}
	launch := &p.Launches[s.launch]
	at := p.Tasks + s.kind.sizes().task*int64(launch.First) // First runs along, and Done takes it back
	launch.First += int(s.tasks)
	switch n := int(s.tasks); s.kind {
	case edit:
		e.originals.Texts.tasks(abi.Array[abi.VerifyTask](e.in, at, n), s, k, answer)
	case terms:
		s.termsTasks(abi.Array[abi.TermsTask](e.in, at, n), query, answer)
	}
}

// Done ends the tasks.
func (e *Encoder) Done() {
	for k := range e.layout.parts {
		for i := range e.layout.parts[k].Launches {
			l := &e.layout.parts[k].Launches[i]
			l.First -= l.Tasks
		}
	}
}

// AskWork estimates what Ask takes for all queries together, by what it takes for a word and for a query, which has to be waited for.
func (l *Layout) AskWork(word, query int) int {
	return word*(l.parts[edit].words+l.parts[terms].words) + query*(l.parts[edit].tasks+l.parts[terms].tasks)
}

// Ask writes the query's side of a share whose tasks are written.
func (l *Layout) Ask(o *Originals, in []byte, s *Share, job *run.Job) {
	if s.kind == none {
		return
	}
	at := l.parts[s.kind].Words + s.kind.sizes().word*int64(s.first)
	switch n := int(s.words); s.kind {
	case edit:
		o.Texts.ask(abi.Array[uint16](in, at, n), job.Rescore.(*verify.Nearest))
	case terms:
		ask(abi.Array[abi.AskedTerm](in, at, n), job.Rescore.(*verify.Scores))
	}
}

// Decode hands a job, whose entries are there, what is known of the first ones, or its hits in their order. out is what came back, which begins at an offset of
// the arena.
func (l *Layout) Decode(out []byte, from int64, s *Share, job *run.Job) {
	job.Known = job.Known[:0]
	switch {
	case s.kind == none:
		return
	case s.Ordered():
		l.Orders.decode(out, from, s, job)
		return
	}
	n := min(int(s.Scored), len(job.Entries))
	at := l.parts[s.kind].Scores - from + s.kind.sizes().score*int64(s.scores)
	job.Known = slices.Grow(job.Known, n)
	switch s.kind {
	case edit:
		job.Known = known(job.Known, abi.Array[int32](out, at, n))
	case terms:
		job.Known = append(job.Known, abi.Array[verify.Known](out, at, n)...)
	}
}
