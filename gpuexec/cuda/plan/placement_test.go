package plan

import (
	"slices"
	"sync"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/rescoring"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestForm: what is said of an index is what lies on the device.
func TestForm(t *testing.T) {
	of := func(attributes int, layouts ...schema.Layout) *enginetest.World {
		w := &enginetest.World{Objects: make([][][]uint32, 5000)}
		for id := range w.Objects {
			for a := range attributes {
				w.Objects[id] = append(w.Objects[id], []uint32{uint32(id+a) % 7})
			}
		}
		w.Vocabulary, w.Layouts = slices.Repeat([]uint32{7}, attributes), slices.Repeat(layouts, attributes/len(layouts))
		w.Build(t)
		return w
	}
	plain, sliced := of(2, schema.LayoutPostings), of(40, schema.LayoutSliced)
	mixed := of(3, schema.LayoutSliced, schema.LayoutRare, schema.LayoutPostings)
	stays := Limits{Memory: 1 << 40}
	planes, streamed := stays, stays
	planes.PlanesOnly, streamed.PartBytes = true, 1<<30
	for _, c := range []struct {
		w      *enginetest.World
		limits Limits
		texts  bool
		want   string
	}{
		{plain, stays, false, "resident: postings"},
		{plain, stays, true, "resident: postings, texts"},
		{plain, streamed, false, "streamed: postings"},
		{sliced, stays, false, "resident: planes, decoded postings, byte codes"},
		{sliced, planes, false, "resident: planes, byte codes"},
		{sliced, streamed, false, "streamed: planes"},
		{mixed, stays, false, "resident: postings, rare lists, planes, decoded postings"},
	} {
		p := placed(t, c.w.Index, c.limits)
		if c.texts {
			p.Texts = &rescoring.Texts{}
		}
		if got := p.Description(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
		var held int64
		for _, h := range p.Holdings("x 1") {
			if held += h.Bytes; h.Bytes <= 0 || h.Owner != "x 1" || h.Needed == (h.Form == FormDecoded || h.Form == FormTexts || h.Form == FormCodes) {
				t.Errorf("%s: %+v", c.want, h)
			}
		}
		if held != p.DeviceBytes() {
			t.Errorf("%s: %d bytes are listed, %d taken: %+v", c.want, held, p.DeviceBytes(), p.Holdings("x 1"))
		}
	}
	p := placed(t, plain.Index, stays)
	p.Parts = make([]Part, 5)
	if n := p.PartsOfBatch(); n != 1 {
		t.Errorf("an index that stays has %d parts", n)
	}
	p.Streamed = true
	if n := p.PartsOfBatch(); n != 5 {
		t.Errorf("an index in 5 parts has %d", n)
	}
	p.Parts = nil
	if n := p.PartsOfBatch(); n != 1 {
		t.Errorf("an index without objects has %d parts", n)
	}
}

// A memory is that of a device in which indexes are placed.
type memory struct {
	free   int64
	limits Limits
	device *Device
}

func newMemory(free int64) *memory { return &memory{free: free, device: hostDevice()} }

// place places an index in what is free.
func (m *memory) place(own Extent, originals rescoring.Originals, later []Extent) (Placement, error) {
	limits := m.limits
	limits.Memory = m.free
	p, err := Place(m.device, own, originals, later, limits)
	if err == nil {
		m.free -= p.DeviceBytes()
	}
	return p, err
}

// bareBytes is what an index must have to stay on the device.
func bareBytes(t testing.TB, x *index.Index) int64 {
	t.Helper()
	l, err := newResident(listsOf(x), run.AllTiles(x), Limits{Memory: 1 << 40, PlanesOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	return l.DeviceBytes()
}

// TestPlaceLater: forms that only make an index faster leave room for indexes that are announced, take all where none is, and the
// budget is kept.
func TestPlaceLater(t *testing.T) {
	raced.Skip(t, raced.One)
	rng := seeded.Rand(t)
	unannounced, spared, full := 0, 0, 0
	for range 60 {
		build := func() *index.Index {
			if rng.IntN(3) == 0 {
				return enginetest.RandomWorld(t, rng, 1+rng.IntN(3000)).Index
			}
			return enginetest.NewCodedWorld(t, rng, 1+rng.IntN(3000), 40+rng.IntN(60)).Index
		}
		first, second := build(), build()
		bare := bareBytes(t, first) + bareBytes(t, second)
		alone, err := newMemory(1<<40).place(extentOf(first), rescoring.Originals{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		both := func(bytes int64, later ...Extent) (Placement, Placement, bool) {
			e := newMemory(bytes)
			a, err := e.place(extentOf(first), rescoring.Originals{}, later)
			if err != nil {
				t.Fatal(err)
			}
			b, err := e.place(extentOf(second), rescoring.Originals{}, nil)
			taken := a.DeviceBytes()
			if err == nil {
				taken += b.DeviceBytes()
			}
			if e.free < 0 || e.free != bytes-taken {
				t.Fatalf("%d of %d bytes are left beside %d", e.free, bytes, taken)
			}
			return a, b, err == nil && !b.Streamed
		}
		memory := bare + rng.Int64N(alone.DeviceBytes())
		if _, _, stays := both(memory); !stays {
			unannounced++
		}
		a, _, stays := both(memory, extentOf(second))
		if a.Streamed || !stays {
			t.Fatalf("%d bytes, two indexes need %d, and one of them does not stay", memory, bare)
		}
		if a.DeviceBytes() < alone.DeviceBytes() {
			spared++
		}
		// With room for all, an announced index takes nothing away.
		if a, _, _ := both(alone.DeviceBytes()+bareBytes(t, second), extentOf(second)); a.DeviceBytes() != alone.DeviceBytes() {
			t.Fatalf("an index has %d bytes, and %d where another one is announced for which there is room", alone.DeviceBytes(), a.DeviceBytes())
		}
		if alone.Codes != nil && alone.Decoded {
			full++
		}
	}
	if unannounced < 5 || spared < 5 || full < 5 {
		t.Errorf("%d indexes have no room if they are not announced, %d others take less for one that is, %d have all forms", unannounced, spared, full)
	}
}

// TestPlaceTexts: texts are placed where there is room, never at the cost of the index, and before its codes.
func TestPlaceTexts(t *testing.T) {
	rng := seeded.Rand(t)
	var there, left int
	for range 100 {
		x := enginetest.NewCodedWorld(t, rng, 1+rng.IntN(300), 30+rng.IntN(10)).Index
		texts := &rescoring.Texts{Tiles: run.AllTiles(x), Objects: int(x.Objects()), Units: 1 + rng.Int64N(10_000)}
		bare := bareBytes(t, x)
		memory := bare + rng.Int64N(2*texts.DeviceBytes())
		e := newMemory(memory)
		e.limits.PlanesOnly = true
		p, err := e.place(extentOf(x), rescoring.Originals{Texts: texts}, nil)
		if err != nil || p.Streamed || (p.Texts != nil) != (memory-bare >= texts.DeviceBytes()) {
			t.Fatalf("an index of %d bytes and texts of %d, in %d: %+v %v", bare, texts.DeviceBytes(), memory, p, err)
		}
		if e.free < 0 || e.free != memory-p.DeviceBytes() {
			t.Fatalf("%d of %d bytes are left beside %d", e.free, memory, p.DeviceBytes())
		}
		if p.Texts != nil {
			there++
		} else {
			left++
		}
	}
	if there == 0 || left == 0 {
		t.Errorf("%d indexes have their texts, %d have not", there, left)
	}
}

// TestPlaceLeavesRoom: an index leaves announced ones the memory without which they have no place, though it has to be streamed
// for that.
func TestPlaceLeavesRoom(t *testing.T) {
	raced.Skip(t, raced.One)
	rng := seeded.Rand(t)
	x := enginetest.SlicedWorld(t, rng, 11*store.TileObjects).Index
	first, later := Extent{Lists: listsOf(x), Tiles: run.Tiles{First: 0, End: 8}}, []Extent{{Lists: listsOf(x), Tiles: run.Tiles{First: 8, End: 10}}, {Lists: listsOf(x), Tiles: run.Tiles{First: 10, End: 11}}}
	own, others := leastBytes(first), leastBytes(later[0])+leastBytes(later[1])
	whole, err := newResident(listsOf(x), first.Tiles, Limits{Memory: 1 << 40, PlanesOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	starved := 0
	for i := range 100 {
		memory := own + others + rng.Int64N(own)
		if i%2 == 0 { // it would have room without the others
			memory = whole.DeviceBytes() + rng.Int64N(others)
		}
		all := func(announced bool) (taken int64, err error) {
			e := newMemory(memory)
			for i, x := range append([]Extent{first}, later...) {
				following := later[i:]
				if !announced {
					following = nil
				}
				p, err := e.place(x, rescoring.Originals{}, following)
				if err != nil {
					return taken, err
				}
				if i == 0 {
					taken = p.DeviceBytes()
				}
			}
			return taken, nil
		}
		taken, err := all(true)
		if err != nil {
			t.Fatalf("%d bytes, %d and %d are enough: %v", memory, own, others, err)
		}
		alone, err := all(false)
		if err != nil {
			starved++
		}
		if taken > alone {
			t.Errorf("of %d bytes an index takes %d, and %d where others are announced", memory, alone, taken)
		}
	}
	if starved == 0 {
		t.Error("no index would have been without a place")
	}
}

// TestStreamedPart: a streamed index takes no more memory than it has use for, and always enough for a tile.
func TestStreamedPart(t *testing.T) {
	const streamedBytes = 256 << 20
	const tile = streamedBytes / abi.UnitBytes
	for _, c := range []struct {
		tiles        []int64
		memory, want int64
	}{
		{nil, 1 << 40, streamedBytes},
		{[]int64{5, tile / 3, 7}, 1 << 40, streamedBytes},
		{[]int64{5, 3 * tile, 7}, 1 << 40, 3 * streamedBytes},
		{[]int64{5, 3 * tile, 7}, 4 * streamedBytes, 2 * streamedBytes},
		{[]int64{5}, streamedBytes, streamedBytes / 2},
	} {
		if got := streamedPart(c.tiles, c.memory, streamedBytes); got != c.want {
			t.Errorf("tiles of %v units, %d bytes: parts of %d, want %d", c.tiles, c.memory, got, c.want)
		}
	}
}

func extentOf(x *index.Index) Extent { return Extent{Lists: listsOf(x), Tiles: run.AllTiles(x)} }

// TestPlaceAtOnce: of two indexes that are placed in a budget at the same time, in the memory of one and a bit, one is streamed, and
// the budget says by owner and form who has what.
func TestPlaceAtOnce(t *testing.T) {
	rng := seeded.Rand(t)
	x := enginetest.SlicedWorld(t, rng, 4*store.TileObjects).Index
	d := hostDevice()
	d.BoundColumns = 0
	own := extentOf(x)
	bytes := bareBytes(t, x) + leastBytes(own)
	for range 500 {
		budget := run.NewBudget(3, bytes)
		var placed [2]Placement
		var release [2]func()
		var errs [2]error
		var placing sync.WaitGroup
		start := make(chan struct{})
		for i := range placed {
			placing.Go(func() {
				<-start
				release[i], errs[i] = budget.Place(func(free int64) (_ []gpuexec.Holding, err error) {
					if placed[i], err = Place(d, own, rescoring.Originals{}, nil, Limits{Memory: free, PlanesOnly: true}); err != nil {
						return nil, err
					}
					return placed[i].Holdings([]string{"a 1", "b 1"}[i]), nil
				})
			})
		}
		close(start)
		placing.Wait()
		if errs[0] != nil || errs[1] != nil {
			t.Fatalf("%d bytes: %v, %v", bytes, errs[0], errs[1])
		}
		if placed[0].Streamed == placed[1].Streamed || enginetest.Free(budget) != bytes-placed[0].DeviceBytes()-placed[1].DeviceBytes() {
			t.Fatalf("streamed: %v, %v; %d bytes of %d are left", placed[0].Streamed, placed[1].Streamed, enginetest.Free(budget), bytes)
		}
		held := map[string]int64{}
		for _, h := range budget.Holdings() {
			held[h.Owner] += h.Bytes
			if h.Device != 3 || h.Bytes <= 0 || !h.Needed || h.Form == "" {
				t.Fatalf("%+v", h)
			}
		}
		if held["a 1"] != placed[0].DeviceBytes() || held["b 1"] != placed[1].DeviceBytes() {
			t.Fatalf("%v, taken are %d and %d", held, placed[0].DeviceBytes(), placed[1].DeviceBytes())
		}
		release[0]()
		release[1]()
		if enginetest.Free(budget) != bytes {
			t.Fatalf("%d bytes of %d are back", enginetest.Free(budget), bytes)
		}
	}
}
