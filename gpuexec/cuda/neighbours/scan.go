//go:build cuda

package neighbours

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	hosted "github.com/geniemq/geniemq/gpuexec/cpu/nearest"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/device"
	"github.com/geniemq/geniemq/gpuexec/cuda/nearest"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
	"github.com/geniemq/geniemq/gpuexec/cuda/room"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/metric"
)

// launches are the kernels of searches by distance, with the numbers that launches need.
type launches struct {
	scan, list                   map[nearest.Terms]device.Function
	compact, answer              device.Function
	few                          device.Function // compact, where few are wanted
	fewQueries                   int             // of a block of that
	sieve                        map[nearest.Product]device.Function
	forms                        map[string]device.Function // by Form: makes what is compared
	norms, size, ask             device.Function
	scanObjects, scanQueries     int // of a block
	loadThreads                  int
	sieveStep                    map[nearest.Product]int // shared memory of a block: for each step
	sieveStatic, shared          int                     // and beside that; what it may have
	groups, sample, groupsSample device.Function         // the sieve of float16s by groups of warps; of a sample, both ways
	grouped                      bool                    // there is one
	limit                        map[nearest.Terms]device.Function
	levels                       levelsLaunches
}

// find finds the kernels.
func find(e *device.Engine) (*launches, error) {
	k := &launches{
		scan: make(map[nearest.Terms]device.Function), list: make(map[nearest.Terms]device.Function), limit: make(map[nearest.Terms]device.Function),
		sieve: make(map[nearest.Product]device.Function), forms: make(map[string]device.Function), sieveStep: make(map[nearest.Product]int),
	}
	l := lookup{engine: e}
	number, kernel := l.number, l.kernel
	k.scanObjects, k.scanQueries = number("near_scan", "near_scan_objects"), number("near_scan", "near_scan_queries")
	gate := number("near_gate", "near_gate_threads")
	for _, terms := range nearest.ScanTerms() {
		k.scan[terms] = kernel("near_scan", "near_"+string(terms), number("near_scan", "near_scan_threads"), 0)
		k.list[terms] = kernel("near_gate", "near_list_"+string(terms), gate, 0)
	}
	for _, terms := range nearest.HalvesTerms() {
		k.limit[terms] = kernel("near_gate", "near_limit_"+string(terms), gate, 0)
	}
	k.compact, k.answer = kernel("near_gate", "near_compact", gate, 0), kernel("near_gate", "near_answer", gate, 0)
	few := number("near_few", "near_few_threads")
	k.few, k.fewQueries = kernel("near_few", "near_compact_few", few, 0), few/abi.WarpLanes
	k.loadThreads = number("near_load", "near_load_threads")
	k.norms, k.size = kernel("near_load", "near_norms", k.loadThreads, 0), kernel("near_load", "near_size", k.loadThreads, 0)
	k.ask = kernel("near_load", "near_ask", k.loadThreads, 0)
	k.shared, k.sieveStatic = e.Shared(), number("near_sieve", "near_sieve_static")
	for _, p := range nearest.AllProducts() {
		name := "near_sieve_" + string(p)
		k.forms[p.Form()], k.sieveStep[p] = kernel("near_load", "near_"+p.Form(), k.loadThreads, 0), number("near_sieve", name+"_step_bytes")
		k.sieve[p] = kernel("near_sieve", name, number("near_sieve", "near_sieve_threads"), e.Shared()-k.sieveStatic)
	}
	k.sample = kernel("near_sieve", "near_sample_halves", number("near_sieve", "near_sieve_threads"), e.Shared()-k.sieveStatic)
	if threads := number("near_groups", "near_groups_threads"); threads > 0 {
		k.groups, k.grouped = kernel("near_groups", "near_groups", threads, k.shared-k.sieveStatic), true
		k.groupsSample = kernel("near_groups", "near_groups_sample", threads, k.shared-k.sieveStatic)
	}
	if e.Device().Profile.Paths.Levels || e.Untried() {
		k.levels.find(e.Shared(), number, kernel)
	}
	return k, l.err()
}

// scan is the path that compares all objects of columns of vectors and points.
type scan struct {
	engine  *device.Engine
	kernels *launches
	host    *hosted.Matcher
	columns []*column // by position; nil: it is not here
	waves   *profile.NearWaves
}

// loadScan brings the columns of an index onto the device, as far as there is room.
func loadScan(e *device.Engine, r *room.Room, own run.Extent, host *hosted.Matcher) (*scan, error) {
	k, err := find(e)
	if err != nil {
		return nil, err
	}
	s := &scan{engine: e, kernels: k, host: host, waves: &e.Device().Profile.Near}
	columns := host.Columns()
	for i := range columns.Len() {
		space, present := host.Column(i)
		of := nearest.NewColumn(columns.At(i), own.Tiles)
		c, err := load(e, k, r, of, space, nil, present, e.Device().Profile.Paths.Sieves || e.Untried())
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.columns = append(s.columns, c)
	}
	return s, nil
}

// column is that of a query; nil: it is not on the device.
func (s *scan) column(q *distance.Query) *column {
	return ofColumn(s.host, s.columns, q)
}

// Takes implements nearest.Path.
func (s *scan) Takes(b *hosted.Batch, job int) bool {
	q := b.Job(job).Query.(*distance.Query)
	c := s.column(q)
	return c != nil && b.Method(job) == distance.Scan && c.Fits(q, s.engine.Room(), s.waves)
}

// Price implements nearest.Path.
func (s *scan) Price(q *distance.Query, method string, queries int) time.Duration {
	if c := s.column(q); c != nil && method == distance.Scan {
		return c.Price(q, queries, s.waves)
	}
	return 0
}

// Cost implements nearest.Path.
func (s *scan) Cost(p *gpuexec.Plan) int64 {
	if q, ok := p.Query.(*distance.Query); ok && q != nil {
		if c := s.column(q); c != nil {
			return c.Cost(q, s.waves)
		}
	}
	return 0
}

// Residence implements nearest.Path.
func (s *scan) Residence() run.Residence {
	r := run.Residence{Parts: 1}
	var forms []string
	for _, c := range s.columns {
		if c == nil {
			continue
		}
		r.IndexBytes += c.bytes()
		form := formRows
		if c.Sieve != nil {
			form += " and " + c.Sieve.Product.Said()
		}
		forms = append(forms, form+" of "+c.Of.Name)
	}
	r.DeviceBytes, r.Form = r.IndexBytes, strings.Join(forms, ", ")
	return r
}

// Close implements nearest.Path.
func (s *scan) Close() error {
	var errs []error
	for _, c := range s.columns {
		if c != nil {
			errs = append(errs, c.close())
		}
	}
	s.columns = nil
	return errors.Join(errs...)
}

// Match implements nearest.Path.
func (s *scan) Match(ctx context.Context, b *hosted.Batch, jobs []int, t *gpuexec.Trace) (left []int, err error) {
	for _, c := range s.columns {
		if c == nil {
			continue
		}
		asks := asksOf(b, jobs, func(q *distance.Query) bool { return s.column(q) == c })
		asks = c.SievedFirst(nearest.Spare(asks, s.waves.Places), s.waves)
		if len(asks) == 0 {
			continue
		}
		if err := s.engine.OnLane(ctx, func(l *device.Lane) error {
			return inPieces(ctx, b, asks, scanning, func(ctx context.Context, asks []nearest.Ask) (int, []nearest.Ask, error) {
				return s.piece(ctx, l, b, c, asks, t)
			})
		}); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

const scanning = "executing a search by distance"

// piece executes the first asks of a column, and says how many; and which of these the sieve has given up.
func (s *scan) piece(ctx context.Context, l *device.Lane, b *hosted.Batch, c *column, asks []nearest.Ask, t *gpuexec.Trace) (n int, again []nearest.Ask, err error) {
	p := c.Plan(asks, s.engine.Room(), s.waves)
	if n = len(p.Asks); n == 0 {
		return 0, nil, nil
	}
	if t != nil {
		t.Work.Used(p.End(), n)
	}
	list := launcher{s.kernels, c, &p, s.engine.Device()}
	out, err := l.Execute(scanning, t, p.InBytes(), func(in []byte) { p.Encode(in, cores(ctx, s.engine)) }, list.record, p.States, p.OutBytes())
	if err != nil {
		return 0, nil, err
	}
	again, err = p.Decode(out, cores(ctx, s.engine), func(a *nearest.Ask, hits []metric.Hit, did *distance.Answer, passed uint64) {
		b.Job(a.Job).Candidates += passed
		b.Answer(a.Job, hits, did)
	})
	return n, again, err
}

// A launcher records the kernels of a piece.
type launcher struct {
	*launches
	column *column
	piece  *nearest.Piece
	device *plan.Device
}

func (l launcher) record(s *device.Steps, arena abi.Pointer) {
	l.recordWaves(s, arena)
	near := l.near(arena)
	device.Launch(s, l.answer, len(l.piece.Asks), 1, &near)
}

// near is what all kernels read of the piece.
func (l launcher) near(arena abi.Pointer) abi.Near {
	c, p := l.column, l.piece
	at := func(offset int64) abi.Pointer { return arena + abi.Pointer(offset) }
	return abi.Near{
		Rows: c.rows, Norms: c.norms, Vectors: at(p.Vectors), Queries: at(p.Queries), States: at(p.States), Entries: at(p.Candidates), Out: at(p.Answers),
		Sets: at(p.Sets), Present: c.present, Lists: at(p.Lists),
		Dims: uint32(c.Dims), Storage: c.Storage, Power: uint32(c.Of.Metric.P), PassingWords: uint32(c.SetWords()),
		QueriesOfBatch: uint32(len(p.Asks)), Base: c.Tiles.Base(), ListRoom: uint32(p.ListRoom),
	}
}

// recordWaves records all waves, after which the first candidates are in their place.
func (l launcher) recordWaves(s *device.Steps, arena abi.Pointer) {
	l.derived(s, arena)
	l.waves(s, l.near(arena), arena)
}

// waves records them of queries that are there.
func (l launcher) waves(s *device.Steps, near abi.Near, arena abi.Pointer) {
	c, p := l.column, l.piece
	if p.Guess != nil {
		l.guessed(s, near)
		return
	}
	if p.Sample > 0 {
		l.sampled(s, near, arena)
	}
	for first, count := range p.Waves() {
		near.First, near.End = uint32(first), uint32(first+count)
		if p.Sieved && (first > 0 || p.Sample > 0) {
			l.sieved(s, near, arena)
			device.Launch(s, l.list[c.Terms], len(p.Asks), 1, &near)
			continue
		}
		l.scanned(s, near, 1, anyRoom)
		l.compacted(s, near, count)
	}
}

// anyRoom says that candidates have room for a wave, and rankRounds in how many rounds blocks of a scan of rank vectors run: the more, the less the last one leaves undone, and the more often
// queries are loaded.
const anyRoom, rankRounds = 1 << 30, 4

// compacted records what cuts the candidates of a wave of so many objects to the first ones.
func (l launcher) compacted(s *device.Steps, near abi.Near, objects int) {
	n := len(l.piece.Asks)
	if waves := &l.device.Profile.Near; objects <= waves.FewObjects && l.piece.MostHits() <= waves.FewHits {
		device.Launch(s, l.few, (n+l.fewQueries-1)/l.fewQueries, 1, &near)
	} else {
		device.Launch(s, l.compact, n, 1, &near)
	}
}

// guessed records a sample that limits are guessed by, and all objects in one wave.
func (l launcher) guessed(s *device.Steps, near abi.Near) {
	g, k, n := l.piece.Guess, l.column.scan.ranks, len(l.piece.Asks)
	near.End = uint32(g.Sample)
	l.scanned(s, near, g.Stride, g.Room)
	device.Launch(s, k.guess, n, 1, &abi.NearRankScan{Near: near, Objects: l.column.Objects})
	near.End = l.column.Objects
	l.scanned(s, near, 1, g.Room)
	near.ListRoom = uint32(g.Room)
	device.Launch(s, k.guessed, n, 1, &near)
}

// scanned records the comparison of a wave, in launches of as many blocks as there may be; of rank vectors of every stride-th object, for whose candidates there is some room.
func (l launcher) scanned(s *device.Steps, near abi.Near, stride, room int) {
	kernel := l.column.scan
	if kernel == nil {
		kernel = &scanKernel{l.scan[l.column.Terms], l.scanObjects, l.scanQueries, 0, nil}
	}
	across := (len(l.piece.Asks) + kernel.queries - 1) / kernel.queries
	if kernel.ranks != nil {
		units := (int(near.End-near.First) + kernel.objects - 1) / kernel.objects
		each := max(1, units*across/(l.device.Processors*kernel.blocks*rankRounds))
		device.Launch(s, kernel.Function, across, (units+each-1)/each, &abi.NearRankScan{Near: near, Stride: uint32(stride), Room: uint32(room), Stretch: uint32(each * kernel.objects)})
		return
	}
	most, end := uint32(abi.MaxGridY*kernel.objects), near.End
	for ; near.First < end; near.First = near.End {
		near.End = min(end, near.First+most)
		device.Launch(s, kernel.Function, across, (int(near.End-near.First)+kernel.objects-1)/kernel.objects, &near)
	}
}

// derived records what makes vectors of what is asked, and float16s.
func (l launcher) derived(s *device.Steps, arena abi.Pointer) {
	c, p := l.column, l.piece
	if !c.Derives() {
		return
	}
	at := func(offset int64) abi.Pointer { return arena + abi.Pointer(offset) }
	n := len(p.Asks)
	ask := abi.NearAsk{Asked: at(p.Asked), Vectors: at(p.Vectors), Queries: at(p.Queries), States: at(p.States), Dims: uint32(c.Dims), QueriesOfBatch: uint32(n)}
	if c.Angles() {
		ask.Angles = 1
	}
	if p.Sieved {
		ask.Mean, ask.Sieved, ask.Few = c.mean, at(p.Sieves), at(p.Sieves+nearest.FewAt(n))
		ask.Scale, ask.Wrong, ask.Steps, ask.Product = c.Sieve.Scale(), c.Sieve.Wrong(), uint32(c.Sieve.Steps), c.Sieve.Product.Asked()
	}
	warps := l.loadThreads / abi.WarpLanes
	device.Launch(s, l.ask, (n+warps-1)/warps, 1, &ask)
}

// sieveAtOnce is how many blocks of a product a multiprocessor has registers for, and sharedOfBlock the shared memory that a block takes beside its own.
const sieveAtOnce, sharedOfBlock = 2, 1 << 10

// byLevels says whether a wave behind so many objects goes by levels: what these leave is compared by its bytes, which takes longer than all bytes do where much is left.
func (l launcher) byLevels(seen uint32) bool {
	return l.column.levels != 0 && int64(seen) >= int64(max(1, l.piece.MostHits()))*int64(l.column.levelled)
}

// byGroups says whether groups of warps multiply float16s.
func (l launcher) byGroups(of *nearest.Sieve) bool {
	return l.grouped && of.Product == nearest.Halves && of.Steps >= l.device.Profile.Near.Grouped
}

// sieved records the product of a wave.
func (l launcher) sieved(s *device.Steps, near abi.Near, arena abi.Pointer) {
	steps := l.column.Sieve.Steps
	kernel, bytes, most := l.sieve[l.column.Sieve.Product], l.sieveBytes(), sieveAtOnce
	switch {
	case l.byLevels(near.First):
		kernel, bytes, most = l.levels.match, l.levels.bytes(steps), 1
	case l.byGroups(l.column.Sieve):
		kernel = l.groups
	}
	blocks, objects := l.sieveBlocks(), int(near.End-near.First)
	atOnce := l.device.Processors * min(most, (l.shared+sharedOfBlock)/(bytes+l.sieveStatic+sharedOfBlock))
	sieve := l.sieveOf(near, arena, nearest.Stretch(objects, blocks, atOnce, &l.device.Profile.Near))
	stretches := (objects + int(sieve.Stretch) - 1) / int(sieve.Stretch)
	if l.byLevels(near.First) {
		device.Launch(s, kernel.Sharing(bytes), blocks, stretches, &abi.NearLevels{Sieve: sieve, Least: l.column.levels})
		return
	}
	device.Launch(s, kernel.Sharing(bytes), blocks, stretches, &sieve)
}

// sieveBytes is the shared memory of a block, and sieveBlocks how many blocks of queries there are.
func (l launcher) sieveBytes() int { return l.column.Sieve.Steps * l.sieveStep[l.column.Sieve.Product] }
func (l launcher) sieveBlocks() int {
	return (len(l.piece.Asks) + abi.SieveQueries - 1) / abi.SieveQueries
}

// sieveOf is what a product reads, of which a block has so many objects.
func (l launcher) sieveOf(near abi.Near, arena abi.Pointer, stretch int) abi.NearSieve {
	c, p := l.column, l.piece
	return abi.NearSieve{
		Near: near, Few: c.few, Begins: c.begins, Reaches: c.reaches, Sieved: arena + abi.Pointer(p.Sieves),
		Queries: arena + abi.Pointer(p.Sieves+nearest.FewAt(len(p.Asks))), Gamma: c.Sieve.Gamma, Scale: c.Sieve.ScaleOfValues(),
		Steps: uint32(c.Sieve.Steps), Stretch: uint32(stretch),
	}
}

// sampled records the product of a sample, and what takes limits from it.
func (l launcher) sampled(s *device.Steps, near abi.Near, arena abi.Pointer) {
	p, kernel := l.piece, l.sample
	if l.byGroups(l.column.Sieve) {
		kernel = l.groupsSample
	}
	sieve := l.sieveOf(near, arena, p.Apart())
	device.Launch(s, kernel.Sharing(l.sieveBytes()), l.sieveBlocks(), p.Sample/abi.SieveObjects, &sieve)
	near.First, near.End = uint32(p.Apart()), uint32(p.Sample)
	device.Launch(s, l.limit[l.column.Terms], len(p.Asks), 1, &near)
}
