package nearest

import (
	"iter"
	"math"
	"slices"
	"time"

	hosted "github.com/geniemq/geniemq/gpuexec/cpu/nearest"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/metric"
)

// An Ask is what one query of a batch asks of a column.
type Ask struct {
	Job    int // in the batch
	Query  *distance.Query
	Set    int        // the number of its filter in the batch; -1: none
	Passes filter.Set // what passes it
	Exact  bool       // the sieve has given it up
	// Places is how many hits there is room for, of one that a radius bounds (Spare); 0: for all that it may want.
	Places int
	// Counted is what it counts that goes by n-grams.
	Counted *hosted.Counted
}

// A Piece is some queries of a batch on one column that are executed together, and where everything of theirs lies in the memory that a batch has.
//
//	arena (device)   queries | asked | sets | states | answers | vectors | sieved queries | lists | candidates
//	in (pinned)      queries | asked | sets | states    one copy to the device
//	out (pinned)                              states | answers    one copy back
//
// What is asked is float32s. A kernel makes the vectors of it, float64s, and what the sieve wants of each; of points they are sent, and of texts the masks of
// patterns.
//
// Objects run in waves of ascending ids. Waves grow: the first gives limits cheaply, and later ones profit from them. In a wave that is scanned every object
// is compared exactly; in one that is sieved those that a cheap bound leaves are put on lists, and these are compared (Sieve).
//
// Where all waves are sieved, a Sample gives the first limits: products of objects from all over the column say which of them seem to be nearest, and the farthest of as many of these as a query
// wants is no nearer than its last hit. They are forgotten, and come again with the waves.
//
// # Bounds
//
// A query has candidates for its k and what a wave may append (kernels/near.cuh): each object of a wave that is scanned, each place of a list in one that is
// sieved. Lists have a fixed room; who needs more is given up and asked again, by a scan. So all memory is bounded before anything is launched, whatever
// the data are, and a query that fits alone is executed.
type Piece struct {
	Column *Column
	Asks   []Ask
	Sieved bool // after the first wave

	// Offsets of the arrays.
	Queries, Asked, Sets, States, Answers, Vectors, Sieves, Lists, Candidates int64
	FirstWave, Wave                                                           int    // objects: of the first wave, and for which candidates have room
	Sample                                                                    int    // objects that limits are taken from in place of a first wave; 0: none
	Guess                                                                     *Guess // in place of waves; nil: none
	ListRoom                                                                  int

	waves   *profile.NearWaves
	own     bool           // each query has a set of its own, which is not sent: Marks
	listed  bool           // what was compared is what kernels have counted
	sets    []filter.Set   // that are sent
	numbers map[int]uint32 // of these, by number in the batch
	answers int64          // places
	ends    []int64        // of these, by ask: so that several cores go through asks
}

// slack is more than what the alignment of arrays takes.
const slack = 16 * 256

// need is the memory of the device that an ask takes for candidates of so many objects of a wave and a list of so many, and what is copied there and back.
func (c *Column) need(k, wave int64, lists int) (arena, in, out int64) {
	in = abi.NearQueryBytes + abi.NearStateBytes + c.askedBytes()
	out = abi.NearStateBytes + abi.NearEntryBytes*k
	arena = in + abi.NearEntryBytes*(2*k+wave) + abi.WordBytes*int64(lists)
	if c.Derives() {
		arena += 8 * int64(c.Dims)
	}
	if lists > 0 {
		arena += c.Sieve.QueryBytes()
	}
	return arena, in, out
}

// Derives says that vectors of queries are derived of what is sent; askedBytes is what is sent of one.
func (c *Column) Derives() bool { return c.Of.Of == distance.Vectors }
func (c *Column) askedBytes() int64 {
	if c.Derives() {
		return 4 * int64(c.Dims)
	}
	return 8 * int64(c.Dims)
}

// setBytes is the memory of what passes a filter.
func (c *Column) setBytes() int64 { return abi.WordBytes * int64(c.SetWords()) }

// hits is how many a query can have in the column, and places for how many an ask has room.
func (c *Column) hits(q *distance.Query) int64 { return min(int64(q.K), int64(c.Objects)) }
func (c *Column) places(a *Ask) int64 {
	if a.Places > 0 {
		return min(int64(a.Places), c.hits(a.Query))
	}
	return c.hits(a.Query)
}

// Spare gives those who want what is within a radius room for so many hits: they may have far more, and few do. Who has as many is asked again, with more room (Decode).
func Spare(asks []Ask, places int) []Ask {
	for i := range asks {
		asks[i].spare(places)
	}
	return asks
}

func (a *Ask) spare(places int) {
	if !math.IsInf(a.Query.Most, 1) {
		a.Places = min(places, a.Query.K)
	}
}

// Cost is the memory of the device that a query takes at least.
func (c *Column) Cost(q *distance.Query, waves *profile.NearWaves) int64 {
	arena, _, _ := c.need(c.hits(q), min(int64(waves.Least), int64(c.Objects)), 0)
	if q.Filter != nil {
		arena += c.setBytes()
	}
	return arena + slack
}

// Fits says whether a query can be executed alone.
func (c *Column) Fits(q *distance.Query, room plan.Room, waves *profile.NearWaves) bool {
	arena, in, out := c.need(c.hits(q), min(int64(waves.Least), int64(c.Objects)), 0)
	return slack+arena+c.setBytes() <= room.Arena && slack+in+c.setBytes() <= room.In && slack+out <= room.Out
}

// Price is what a query takes together with so many, of those that all scan the column.
func (c *Column) Price(q *distance.Query, queries int, waves *profile.NearWaves) time.Duration {
	n := max(1, queries)
	took := c.scanned(n, waves) + c.waited(waves)
	a := Ask{Query: q}
	a.spare(waves.Places)
	if c.Sieves(&a, waves) {
		took = min(took, c.sieved(n, waves))
	}
	hits, turns := min(c.Of.ExpectedHits(q), float64(c.hits(q))), 1.
	for places := float64(waves.Places); places < hits; places *= float64(waves.MorePlaces) {
		turns++ // it is asked again
	}
	return time.Duration((waves.Batch+turns*took)/float64(n) + waves.Place*float64(c.hits(q)) + waves.Hit*hits)
}

// scanned is what so many queries take that compare all objects, in nanoseconds. Of a block of queries that is not full all is computed.
func (c *Column) scanned(queries int, waves *profile.NearWaves) float64 {
	const together = 8 // queries of a block
	element := waves.Element
	if p := c.Of.Metric.P; p > leastPower {
		element *= 1 + float64(p-leastPower)/waves.ElementPowers
	}
	return float64(c.Objects) * float64(c.Dims) * element * float64(together*((queries+together-1)/together)) / 1e3
}

// waited is what the waves of a scan behind the first wait for each other, in nanoseconds.
func (c *Column) waited(waves *profile.NearWaves) (ns float64) {
	for seen := waves.First; seen < min(int(c.Objects), waves.Least); seen *= waves.Growth {
		ns += waves.Wave
	}
	return ns
}

// sieved is what so many queries take that are sieved, in nanoseconds.
func (c *Column) sieved(queries int, waves *profile.NearWaves) float64 {
	blocks := (queries + abi.SieveQueries - 1) / abi.SieveQueries
	return float64(c.Objects) * float64(c.Sieve.Steps) * c.Sieve.step(waves) * float64(abi.SieveQueries*blocks) / 1e3
}

// SievedFirst puts asks that are sieved before those that are not; both keep their order.
func (c *Column) SievedFirst(asks []Ask, waves *profile.NearWaves) []Ask {
	sieves := func(a Ask) bool { return c.Sieves(&a, waves) }
	scanned := slices.DeleteFunc(slices.Clone(asks), sieves)
	return append(slices.DeleteFunc(asks, func(a Ask) bool { return !sieves(a) }), scanned...)
}

// Plan makes a piece of the first asks, as many as fit; of none, if not even the first does. Those that the sieve takes and those that it does not are in
// different pieces. It takes none of so few that a scan takes less.
func (c *Column) Plan(asks []Ask, room plan.Room, waves *profile.NearWaves) Piece {
	p := Piece{Column: c, waves: waves}
	if len(asks) == 0 {
		return p
	}
	pays := c.Sieve != nil && c.sieved(len(asks), waves) < c.scanned(len(asks), waves)
	p.Sieved = pays && c.Sieves(&asks[0], waves)
	wave := min(int64(waves.Least), int64(c.Objects)) // that each is to have room for
	if p.Sieved {
		p.ListRoom = waves.List
		wave = max(int64(waves.List), min(int64(waves.First), int64(c.Objects)))
	}
	if end := slices.IndexFunc(asks, func(a Ask) bool { return (pays && c.Sieves(&a, waves)) != p.Sieved }); end > 0 {
		asks = asks[:end]
	}
	arena := p.fit(asks, plan.Room{Arena: slack, In: slack, Out: slack}, wave, nil, func(int) plan.Room { return room })
	if n := int64(len(p.Asks)); n > 0 {
		if !p.Sieved { // what is left makes waves wider
			wave = min(wave+(room.Arena-arena)/(n*abi.NearEntryBytes), int64(c.Objects))
		}
		p.place(wave)
	}
	return p
}

// fit takes the first of the asks, as many as fit the room that so many of them have beside what is taken of it, and returns the memory of the device that is taken then. wave
// is how many candidates each has room for, beside its k, and more what each takes beside all that a Piece has; nil: nothing.
func (p *Piece) fit(asks []Ask, taken plan.Room, wave int64, more func(i int) (arena, in int64), room func(n int) plan.Room) (arena int64) {
	c := p.Column
	p.ends = slices.Grow(p.ends, len(asks))
	for i := range asks {
		a := &asks[i]
		needs, sends, gets := c.need(c.places(a), wave, p.ListRoom)
		if more != nil {
			beside, sent := more(i)
			needs, sends = needs+beside, sends+sent
		}
		if _, there := p.numbers[a.Set]; a.Set >= 0 && !there {
			needs, sends = needs+c.setBytes(), sends+c.setBytes()
		}
		if r := room(i + 1); taken.Arena+needs > r.Arena || taken.In+sends > r.In || taken.Out+gets > r.Out {
			break
		}
		taken.Arena, taken.In, taken.Out = taken.Arena+needs, taken.In+sends, taken.Out+gets
		p.take(a)
		p.Asks = asks[: i+1 : i+1]
	}
	return taken.Arena
}

// take takes notice of an ask.
func (p *Piece) take(a *Ask) {
	if _, there := p.numbers[a.Set]; a.Set >= 0 && !there {
		if p.numbers == nil {
			p.numbers = make(map[int]uint32)
		}
		p.numbers[a.Set] = uint32(len(p.sets))
		p.sets = append(p.sets, a.Passes)
	}
	p.answers += p.Column.places(a)
	p.ends = append(p.ends, p.answers)
}

// place places the arrays, with candidates for waves of so many objects.
func (p *Piece) place(wave int64) {
	p.placeSent(0)
	p.placeDerived(p.InBytes())
	p.waved(wave)
}

// waved sets how many objects waves have.
func (p *Piece) waved(wave int64) {
	p.Wave = int(wave)
	p.FirstWave = min(p.Wave, p.waves.First, int(p.Column.Objects))
	c, w := p.Column, p.waves
	if w.Sample > 0 && p.Sieved && c.Sieve.Product == Halves && min(p.Wave, p.ListRoom) >= max(w.Sample, abi.MostKept) && int(c.Objects) >= w.Sample*w.SampleShare && p.MostHits() <= w.SampleHits {
		p.FirstWave, p.Sample = 0, w.Sample
	}
}

// Apart is how far from each other parts of the sample begin, of abi.SieveObjects each.
func (p *Piece) Apart() int {
	return int(p.Column.Objects) / (p.Sample / abi.SieveObjects) / abi.SieveObjects * abi.SieveObjects
}

// placeSent places what is sent, from an offset on.
func (p *Piece) placeSent(at int64) {
	c, n := p.Column, int64(len(p.Asks))
	p.Queries = at
	p.Asked = abi.Align(at + n*abi.NearQueryBytes)
	p.Sets = abi.Align(p.Asked + n*c.askedBytes())
	p.States = abi.Align(p.Sets + int64(len(p.sets))*c.setBytes())
}

// placeDerived places the other arrays, from an offset on: of a piece whose answers are copied back that is the end of States.
func (p *Piece) placeDerived(at int64) {
	c, n := p.Column, int64(len(p.Asks))
	p.Answers = at
	p.Vectors = abi.Align(p.Answers + p.answers*abi.NearEntryBytes)
	p.Sieves = p.Vectors
	if c.Derives() {
		p.Sieves = abi.Align(p.Vectors + 8*n*int64(c.Dims))
	} else {
		p.Vectors = p.Asked
	}
	p.Lists = p.Sieves
	if p.Sieved {
		p.Lists = abi.Align(p.Sieves + c.Sieve.QueriesBytes(int(n)))
	}
	p.Candidates = abi.Align(p.Lists + n*abi.WordBytes*int64(p.ListRoom))
}

// MostHits is the most hits that a query wants.
func (p *Piece) MostHits() (most int) {
	for i := range p.Asks {
		most = max(most, p.Asks[i].Query.K)
	}
	return most
}

// InBytes and OutBytes are what is copied to the device and back.
func (p *Piece) InBytes() int64  { return p.States + int64(len(p.Asks))*abi.NearStateBytes }
func (p *Piece) OutBytes() int64 { return p.Answers + p.answers*abi.NearEntryBytes - p.States }

// End is the memory of all that lies in the arena.
func (p *Piece) End() int64 {
	return p.Candidates + (p.answers+int64(len(p.Asks))*int64(p.Wave))*abi.NearEntryBytes
}

// growth is after how many waves behind the first all objects have been seen, and how many times as many after each as before it.
func (p *Piece) growth() (waves int, times float64) {
	all := float64(p.Column.Objects) / float64(max(p.FirstWave, p.Sample))
	waves = max(1, int(math.Ceil(math.Log(all)/math.Log(float64(p.waves.Growth))-p.waves.Over)))
	return waves, math.Pow(all, 1/float64(waves))
}

// Waves are the waves: their first objects and how many each has. Behind a sample all are sieved, and it counts as the first.
func (p *Piece) Waves() iter.Seq2[int, int] {
	return func(yield func(first, count int) bool) {
		objects := int(p.Column.Objects)
		most := p.Wave
		if p.Sieved {
			most = p.waves.Sieved
		}
		waves, times := p.growth()
		seen := float64(max(p.FirstWave, p.Sample))
		for i, first := 0, 0; first < objects; i++ {
			end := p.FirstWave
			if i >= waves {
				end = objects
			} else if i > 0 {
				end = min(objects, int(math.Ceil(seen/abi.SieveObjects))*abi.SieveObjects)
			}
			for first < end {
				count := min(end-first, most)
				if !yield(first, count) {
					return
				}
				first += count
			}
			seen *= times
		}
	}
}

// Each calls work for every unit of so many that take so many nanoseconds together, on several cores maybe (run.Crew.Each); nil: one after the other.
type Each func(units, nanoseconds int, work func(unit int)) error

// all does what Each may leave undone, too, and at once what takes no longer than alone.
func (e Each) all(units, nanoseconds, alone int, work func(unit int)) {
	if e != nil && nanoseconds > alone && e(units, nanoseconds, work) == nil {
		return
	}
	for unit := range units {
		work(unit)
	}
}

// begin is how many places of answers the asks before one have.
func (p *Piece) begin(i int) int64 {
	if i == 0 {
		return 0
	}
	return p.ends[i-1]
}

// coded is how many asks a core encodes at a time, and decodes of few hits.
const coded = 64

// Encode fills what is copied to the device.
func (p *Piece) Encode(in []byte, each Each) {
	n := len(p.Asks)
	each.all((n+coded-1)/coded, n*p.waves.Encode, p.waves.Alone, func(unit int) { p.encode(in, unit*coded, min(n, (unit+1)*coded)) })
	for i, set := range p.sets {
		words := abi.Array[uint64](in, p.Sets+int64(i)*p.Column.setBytes(), p.Column.SetWords()/2)
		clear(words[copy(words, set):])
	}
}

// encode fills it for the asks from one to another.
func (p *Piece) encode(in []byte, from, to int) {
	c, n := p.Column, len(p.Asks)
	queries, states := abi.Array[abi.NearQuery](in, p.Queries, n), abi.Array[abi.NearState](in, p.States, n)
	for i := from; i < to; i++ {
		a, out := &p.Asks[i], p.begin(i)
		k, entries := p.ends[i]-out, out+int64(i)*int64(p.Wave)
		q := abi.NearQuery{Most: ordered(a.Query.Most), Entries: uint64(entries), Out: uint64(out), K: uint32(k), Passing: abi.NoFilter}
		if counts(a.Query) {
			q.Counts = 1
		}
		switch {
		case p.own:
			q.Passing = uint32(i)
		case a.Set >= 0:
			q.Passing = p.numbers[a.Set]
		}
		queries[i], states[i] = q, abi.NearState{Limit: q.Most}
		switch c.Of.Of {
		case distance.Vectors:
			copy(abi.Array[float32](in, p.Asked, n*c.Dims)[i*c.Dims:], a.Query.Vector)
		case distance.Points:
			c.point(a.Query, abi.Array[float64](in, p.Asked, n*c.Dims)[i*c.Dims:])
		case distance.Texts:
			c.texts.write(a.Query.Text, abi.Array[uint64](in, p.Asked, n*c.Dims)[i*c.Dims:][:c.Dims])
		}
	}
}

// counts says that all objects within the radius are counted.
func counts(q *distance.Query) bool { return q.Total || q.K == 0 }

// Decode tells of each ask what came back of it: its hits in order, and what was done. Those that the sieve has given up are returned, and those whose places were too few.
func (p *Piece) Decode(out []byte, each Each,
	told func(a *Ask, hits []metric.Hit, did *distance.Answer, passed uint64)) (again []Ask, err error) {
	n := len(p.Asks)
	dids, states, work := make([]distance.Answer, n), abi.Array[abi.NearState](out, 0, n), 0
	for i := range states {
		work += p.waves.Decode + p.waves.Sort*int(states[i].Kept)
	}
	of := max(1, min(coded, coded*p.waves.Decode*n/max(1, work)))
	stretch := func(unit int) {
		var hits, spare []metric.Hit
		for i := unit * of; i < min(n, (unit+1)*of); i++ {
			hits, spare = p.decode(out, i, p.Answers-p.States+p.begin(i)*abi.NearEntryBytes, hits[:0], spare, &dids[i], told)
		}
	}
	units := (n + of - 1) / of
	if each != nil {
		err = each(units, work, stretch)
	} else {
		for unit := range units {
			stretch(unit)
		}
	}
	for i := range p.Asks {
		switch a := &p.Asks[i]; {
		case states[i].Given != 0:
			a.Exact = true
		case p.full(i, &states[i]):
			a.Places *= p.waves.MorePlaces
		default:
			continue
		}
		again = append(again, p.Asks[i])
	}
	return again, err
}

// full says that an ask may have had more hits than places.
func (p *Piece) full(i int, s *abi.NearState) bool {
	a := &p.Asks[i]
	return a.Places > 0 && int64(s.Kept) >= p.Column.places(a) && p.Column.places(a) < p.Column.hits(a.Query)
}

// decode tells of one ask, unless it is to be asked again.
func (p *Piece) decode(out []byte, i int, at int64, hits, spare []metric.Hit, did *distance.Answer,
	told func(a *Ask, hits []metric.Hit, did *distance.Answer, passed uint64)) (_, _ []metric.Hit) {
	a, s := &p.Asks[i], &abi.Array[abi.NearState](out, 0, len(p.Asks))[i]
	if s.Given != 0 || p.full(i, s) {
		return hits, spare
	}
	entries := abi.Array[abi.NearEntry](out, at, int(min(p.ends[i]-p.begin(i), int64(s.Kept))))
	hits = slices.Grow(hits, len(entries))
	for _, e := range entries {
		hits = append(hits, metric.Hit{Value: valueOf(e.Value), ID: e.Id})
	}
	spare = metric.Sort(hits, spare)
	*did = distance.Answer{Method: distance.Scan, Exact: true, Counted: counts(a.Query), Distances: uint64(p.Column.Objects)}
	if did.Counted {
		did.Within = s.Within
	}
	switch {
	case p.listed:
		did.Method, did.Distances, did.Blocks = "tree", s.Listed, uint64(s.List) // or a path that says so itself
	case p.Sieved:
		did.Distances = uint64(p.FirstWave) + s.Listed
	}
	told(a, hits, did, s.Passed)
	return hits, spare
}
