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

// descents go down the trees of columns whose rows or texts are on the device (kernels/descent.cuh), for the queries of the method tree.
type descents struct {
	scan    *scan // whose columns they are, and whose Gate
	kernels map[nearest.Terms]descentKernels
	rounds  []device.Function // what a round is made of beside what a space has: choose, admit, place, group
	trees   []*descentTree    // by position; nil: there is none
	held
}

// descentKernels are those of a space; texts have none that go depth first.
type descentKernels struct{ seed, seeds, expand, leaves, depth device.Function }

// descentTree is a tree on the device.
type descentTree struct {
	*nearest.Tree
	column *column
	at     abi.Pointer // of its abi.DescentTree
	bytes  int64
}

const (
	formTree  = "tree"
	goingDown = "going down a tree"
	// gridBlocks is how many blocks a multiprocessor gets of a kernel that goes through as much as there is.
	gridBlocks = 8
	// laterRounds is how many rounds are launched before the host asks again whether a batch is done.
	laterRounds  = 32
	descentWarps = 4 // of a block
	depthWarps   = 4 // of one that goes depth first
)

// loadDescents lays out the trees of the columns of a scan, and of texts; these may be nil. It is nil where there are none.
func loadDescents(e *device.Engine, r *room.Room, s *scan, texts *textscan.Path) (*descents, error) {
	d := &descents{scan: s, kernels: make(map[nearest.Terms]descentKernels)}
	any := false
	for i, c := range s.columns {
		d.trees = append(d.trees, nil)
		var starts []uint32
		if c == nil && texts != nil {
			c, starts = descended(texts, i)
		}
		if c == nil {
			continue
		}
		space, _ := s.host.Column(i)
		_, ids, err := c.Of.Dense(space)
		if err != nil {
			return nil, errors.Join(err, d.Close())
		}
		t := nearest.NewTree(c.Column, ids)
		if t == nil || !d.on(t, starts != nil) {
			continue
		}
		if d.trees[i], err = d.load(e, r, t, c, starts); err != nil {
			return nil, errors.Join(err, d.Close())
		}
		any = any || d.trees[i] != nil
	}
	if !any {
		return nil, nil
	}
	if err := d.find(e); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// find finds the kernels.
func (d *descents) find(e *device.Engine) error {
	const shared = "descent"
	l := lookup{engine: e}
	threads, block := l.number(shared, "descent_threads"), l.number(shared, "descent_block")
	kernel := func(module, name string, threads int) device.Function {
		return l.kernel(module, "descent_"+name, threads, 0)
	}
	d.rounds = []device.Function{kernel(shared, "choose", block), kernel(shared, "admit", threads), kernel(shared, "place", block), kernel(shared, "group", threads)}
	for module, terms := range map[string][]nearest.Terms{shared: nearest.AllTerms(), "descent_texts": nearest.TextTerms()} {
		for _, of := range terms {
			own := func(what string) device.Function { return kernel(module, what+"_"+string(of), threads) }
			d.kernels[of] = descentKernels{seed: own("seed"), seeds: own("seeds"), expand: own("expand"), leaves: own("leaves")}
		}
	}
	for _, of := range nearest.AllTerms() {
		k := d.kernels[of]
		k.depth = kernel("descent_depth", "depth_"+string(of), depthWarps*abi.WarpLanes)
		d.kernels[of] = k
	}
	return l.err()
}

// load lays a tree out; nil where it has no room. starts: where texts begin, by object.
func (d *descents) load(e *device.Engine, r *room.Room, t *nearest.Tree, c *column, starts []uint32) (*descentTree, error) {
	own := &descentTree{Tree: t, column: c}
	arrays := [][]byte{
		abi.Bytes(t.First), abi.Bytes(t.Begin), abi.Bytes(t.Count), abi.Bytes(t.Parent), abi.Bytes(t.Pivots), abi.Bytes(t.Lo), abi.Bytes(t.Hi),
		abi.Bytes(t.Boxes), t.Path, abi.Bytes(t.Objects), abi.Bytes(starts),
	}
	own.bytes = abi.Align(abi.DescentTreeBytes)
	var offsets []int64
	for _, array := range arrays {
		offsets = append(offsets, own.bytes)
		own.bytes += abi.Align(int64(len(array)))
	}
	ok, err := d.take(e, r, formTree+" of "+c.Of.Name, own.bytes, func(m *device.Memory) (err error) {
		if own.at, err = m.Allocate("a tree", own.bytes); err != nil {
			return err
		}
		at := func(i int) abi.Pointer {
			if len(arrays[i]) == 0 {
				return 0
			}
			return own.at + abi.Pointer(offsets[i])
		}
		head := []abi.DescentTree{{
			First: at(0), Begin: at(1), Count: at(2), Parent: at(3), Pivots: at(4), Lo: at(5), Hi: at(6), Boxes: at(7), Path: at(8), Objects: at(9), Starts: at(10),
			Share: t.Share, Lost: t.Lost, Ulps: t.Ulps, Square: t.Square,
			Nodes: uint32(len(t.Begin)), Height: uint32(t.Height), Positions: uint32(len(t.Order)), Measure: t.Measure,
			Symbols: uint32(c.Symbols()),
		}}
		return m.Upload(own.at, func(write func([]byte)) {
			for _, array := range append([][]byte{abi.Bytes(head)}, arrays...) {
				write(array)
				write(make([]byte, abi.Align(int64(len(array)))-int64(len(array))))
			}
		})
	})
	if !ok {
		return nil, err
	}
	return own, nil
}

func (d *descents) tree(q *distance.Query) *descentTree { return ofColumn(d.scan.host, d.trees, q) }

// on says whether some queries go down a tree by what is on: by itself, or because nobody minds that it was not measured.
func (d *descents) on(t *nearest.Tree, texts bool) bool {
	on := d.scan.engine.Device().Profile.Paths
	switch {
	case d.scan.engine.Untried():
		return true
	case texts:
		return on.TextTrees
	}
	return on.Trees || on.Depth && len(t.Boxes) > 0
}

// depth says whether a query goes down depth first. Else it goes by rounds, if that is on.
func (d *descents) depth(t *descentTree, q *distance.Query) bool {
	return t.Depth(q) && (d.scan.engine.Untried() || d.scan.engine.Device().Profile.Paths.Depth)
}

// Takes implements nearest.Path.
func (d *descents) Takes(b *hosted.Batch, job int) bool {
	q := b.Job(job).Query.(*distance.Query)
	t := d.tree(q)
	return t != nil && b.Method(job) == "tree" && d.takes(t, q, b.Len())
}

// takes says whether a query goes down a tree here that is one of so many.
func (d *descents) takes(t *descentTree, q *distance.Query, jobs int) bool {
	if d.depth(t, q) {
		return (d.scan.engine.Untried() || jobs >= d.scan.waves.DeepLeast) && t.DepthFits(q, d.scan.engine.Room())
	}
	on, texts := d.scan.engine.Device().Profile.Paths, t.column.Of.Of == distance.Texts
	return (d.scan.engine.Untried() || texts || on.Trees) && t.Fits(q, d.scan.engine.Room(), d.scan.waves)
}

// Cost implements nearest.Path.
func (d *descents) Cost(p *gpuexec.Plan) int64 {
	q, ok := p.Query.(*distance.Query)
	if !ok || q == nil {
		return 0
	}
	switch t := d.tree(q); {
	case t == nil:
		return 0
	case d.depth(t, q):
		return t.DepthCost(q)
	default:
		return t.Cost(q)
	}
}

// Price implements nearest.Path. What rounds take nobody knows before: the host's model is that of a core. Of few queries, which are the host's, it is the host's as well.
func (d *descents) Price(q *distance.Query, method string, queries int) time.Duration {
	if t := d.tree(q); t != nil && method == "tree" && d.depth(t, q) && d.takes(t, q, queries) {
		return t.DepthPrice(q, queries, d.scan.engine.Device().Processors, d.scan.waves)
	}
	return 0
}

// Residence implements nearest.Path.
func (d *descents) Residence() run.Residence {
	var forms []string
	bytes := int64(0)
	for _, t := range d.trees {
		if t != nil {
			forms, bytes = append(forms, formTree+" of "+t.column.Of.Name), bytes+t.bytes
		}
	}
	return resident(forms, bytes)
}

// Close implements nearest.Path.
func (d *descents) Close() error {
	d.trees = nil
	return d.free()
}

// Match implements nearest.Path: tree after tree, in pieces that fit, first those that go depth first.
func (d *descents) Match(ctx context.Context, b *hosted.Batch, jobs []int, t *gpuexec.Trace) (left []int, err error) {
	for _, own := range d.trees {
		if own == nil {
			continue
		}
		deep := asksOf(b, jobs, func(q *distance.Query) bool { return d.tree(q) == own && d.depth(own, q) })
		others := asksOf(b, jobs, func(q *distance.Query) bool { return d.tree(q) == own && !d.depth(own, q) })
		if len(deep)+len(others) == 0 {
			continue
		}
		if err := d.scan.engine.OnLane(ctx, func(l *device.Lane) error {
			s := descent{d, own, l, b, t}
			if err := inPieces(ctx, b, deep, goingDown, s.depthFirst); err != nil {
				return err
			}
			return inPieces(ctx, b, nearest.Spare(others, d.scan.waves.Places), goingDown, s.byRounds)
		}); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// A descent is asks of a batch that go down a tree on a lane.
type descent struct {
	*descents
	own  *descentTree
	lane *device.Lane
	b    *hosted.Batch
	t    *gpuexec.Trace
}

// told hands an ask what was found.
func (s descent) told(a *nearest.Ask, hits []metric.Hit, did *distance.Answer, passed uint64) {
	s.b.Job(a.Job).Candidates += passed
	s.b.Answer(a.Job, hits, did)
}

// used counts the memory of a piece.
func (s descent) used(bytes int64, asks int) {
	if s.t != nil {
		s.t.Work.Used(bytes, asks)
	}
}

// byRounds executes a piece of the first asks.
func (s descent) byRounds(ctx context.Context, asks []nearest.Ask) (int, []nearest.Ask, error) {
	p := s.own.Plan(asks, s.scan.engine.Room(), s.scan.waves)
	if len(p.Asks) == 0 {
		return 0, nil, nil
	}
	s.used(p.Used, len(p.Asks))
	out, err := s.run(ctx, s.lane, s.own, p, s.t)
	if err != nil {
		return 0, nil, err
	}
	again, err := p.DecodeDone(out, cores(ctx, s.scan.engine), s.told)
	return len(p.Asks), again, err
}

// depthFirst executes a piece of the first asks, in one launch.
func (s descent) depthFirst(ctx context.Context, asks []nearest.Ask) (int, []nearest.Ask, error) {
	p := s.own.PlanDepth(asks, s.scan.engine.Room(), s.scan.waves)
	n := len(p.Asks)
	if n == 0 {
		return 0, nil, nil
	}
	s.used(p.Used, n)
	out, err := s.lane.Execute(goingDown, s.t, p.InBytes(), func(in []byte) { p.Encode(in, cores(ctx, s.scan.engine)) }, func(steps *device.Steps, arena abi.Pointer) {
		own := launcher{s.scan.kernels, s.own.column, &p.Piece, s.scan.engine.Device()}
		own.derived(steps, arena)
		device.Launch(steps, s.kernels[s.own.column.Terms].depth, (n+depthWarps-1)/depthWarps, 1, &abi.DescentDepth{
			Near: own.near(arena), Tree: s.own.at, Stacks: arena + abi.Pointer(p.Stacks), StackRoom: uint32(s.own.StackRoom()),
		})
	}, p.States, p.OutBytes())
	if err != nil {
		return 0, nil, err
	}
	again, err := p.Decode(out, cores(ctx, s.scan.engine), s.told)
	return n, again, err
}

// run executes rounds of a piece until it is done. Between them the caller is asked whether it still waits.
func (d *descents) run(ctx context.Context, l *device.Lane, own *descentTree, p *nearest.DescentPiece, t *gpuexec.Trace) ([]byte, error) {
	for rounds := 0; ; rounds = laterRounds {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		var pinned []byte
		in, begins := int64(0), rounds == 0
		if begins {
			in, rounds = p.InBytes(), 2*own.Height+6
		}
		out, err := l.Execute(goingDown, t, in, func(in []byte) { pinned = in }, func(s *device.Steps, arena abi.Pointer) {
			if begins {
				p.EncodeAt(pinned, arena) // it is copied when the steps are executed
			}
			d.record(s, own, p, arena, begins, rounds)
		}, p.Progress, p.OutBytes())
		if err != nil || p.Done(out) {
			return out, err
		}
	}
}

// record records rounds, of a piece that begins after its seeds.
func (d *descents) record(s *device.Steps, own *descentTree, p *nearest.DescentPiece, arena abi.Pointer, begins bool, rounds int) {
	c, n := own.column, len(p.Asks)
	at := func(offset int64) abi.Pointer { return arena + abi.Pointer(offset) }
	v := abi.Descent{
		Near: launcher{d.scan.kernels, c, &p.Piece, d.scan.engine.Device()}.near(arena),
		Tree: own.at, Levels: at(p.Levels), State: at(p.Progress), Work: at(p.Work),
	}
	k, grid := d.kernels[c.Terms], gridBlocks*d.scan.engine.Device().Processors
	few := min(grid, max(1, (p.ListRoom+descentWarps-1)/descentWarps))
	compact := func() { device.Launch(s, d.scan.kernels.compact, n, 1, &v.Near) }
	if begins {
		launcher{d.scan.kernels, c, &p.Piece, d.scan.engine.Device()}.derived(s, arena)
		device.Launch(s, k.seed, (n+descentWarps-1)/descentWarps, 1, &v)
		for first := 0; first < abi.DescentSeeds; first += p.Leaves {
			v.FirstSeed, v.Seeds = uint32(first), uint32(min(p.Leaves, abi.DescentSeeds-first))
			device.Launch(s, k.seeds, min(grid, (n*int(v.Seeds)+descentWarps-1)/descentWarps), 1, &v)
			compact()
		}
	}
	for range rounds {
		device.Launch(s, d.rounds[0], 1, 1, &v)
		device.Launch(s, k.expand, few, 1, &v)
		device.Launch(s, d.rounds[1], few, 1, &v)
		device.Launch(s, d.rounds[2], 1, 1, &v)
		device.Launch(s, d.rounds[3], few, 1, &v)
		device.Launch(s, k.leaves, few, 1, &v)
		compact()
	}
	device.Launch(s, d.scan.kernels.answer, n, 1, &v.Near)
}
