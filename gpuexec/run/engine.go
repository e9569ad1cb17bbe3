package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/lsh"
	"github.com/geniemq/geniemq/index/metric"
)

// Host is what an engine gives its loaders and matchers.
type Host struct {
	Crew   *Crew
	Budget *Budget
	Device any      // what else the engine's own loaders need; no other looks at it
	Kept   sync.Map // what loaders keep as long as the engine is there, by keys of types of their own
}

// Loader makes the structures of one family resident on one engine.
type Loader struct {
	// Load makes the structure of the own source resident, or what of it belongs to its tiles; ids are those of the source. There is
	// at least one tile, unless the source has none. later will be loaded afterwards (gpuexec.Engine.Load).
	Load func(ctx context.Context, h *Host, own Extent, later []Extent) (Matcher, error)
	// Weigh estimates what queries cost in each tile of a source, as CutTiles wants it. nil: in all the same.
	Weigh func(x gpuexec.Source) []uint64
	// Last: it is loaded after the families that are not, and takes what memory these have left.
	Last bool
}

// Loaders are the families that an engine can search, by name. They are a value: who wants another family adds it to a copy.
type Loaders map[string]Loader

// Engine is a device and the loaders of what it can search: every engine of one device is one. A source's structures of other
// families are left alone.
type Engine struct {
	About    gpuexec.Info
	Host     *Host
	Loaders  Loaders
	Capacity gpuexec.Capacity // but for what depends on the index
	Release  func() error     // of the device; may be nil
	// Hashes lays hash functions out on the device. nil: it does not hash.
	Hashes func(f *lsh.Functions) (lsh.Hasher, error)
	// Finds lays a space of vectors out on the device. nil: it finds nothing there.
	Finds func(ctx context.Context, space *metric.Vectors) (metric.Finder, error)
}

func (e *Engine) Info() gpuexec.Info { return e.About }

func (e *Engine) Memory() []gpuexec.Holding { return e.Host.Budget.Holdings() }

// Hasher implements lsh.Engine.
func (e *Engine) Hasher(f *lsh.Functions) (lsh.Hasher, error) {
	if e.Hashes == nil {
		return nil, nil
	}
	return e.Hashes(f)
}

// Finder implements metric.Engine.
func (e *Engine) Finder(ctx context.Context, space *metric.Vectors) (metric.Finder, error) {
	if e.Finds == nil {
		return nil, nil
	}
	return e.Finds(ctx, space)
}

func (e *Engine) Close() error {
	if e.Release == nil {
		return nil
	}
	return e.Release()
}

func (e *Engine) Load(ctx context.Context, x gpuexec.Source, later ...gpuexec.Source) (gpuexec.Searcher, error) {
	if err := CheckSources(x, later...); err != nil {
		return nil, err
	}
	var following []Extent
	for _, next := range later {
		following = append(following, Whole(next))
	}
	s, err := e.LoadTiles(ctx, Whole(x), following)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// CheckSources refuses sources that are none.
func CheckSources(x gpuexec.Source, later ...gpuexec.Source) error {
	if x == nil || slices.Contains(later, nil) {
		return errors.New("loading an index: there is none")
	}
	return nil
}

// LoadTiles is Load of some tiles only.
func (e *Engine) LoadTiles(ctx context.Context, own Extent, later []Extent) (*Searcher, error) {
	matchers, err := e.load(ctx, own, later)
	if err != nil {
		return nil, err
	}
	return NewSearcher(own.Source, e.Host.Crew, matchers, e.Capacity), nil
}

// inOrder are the names of families as they are loaded.
func (l Loaders) inOrder() []string {
	first := func(name string) int {
		if l[name].Last {
			return 1
		}
		return 0
	}
	return slices.SortedFunc(maps.Keys(l), func(a, b string) int { return cmp.Or(cmp.Compare(first(a), first(b)), cmp.Compare(a, b)) })
}

func (e *Engine) load(ctx context.Context, own Extent, later []Extent) (map[string]Matcher, error) {
	matchers := make(map[string]Matcher)
	for _, family := range e.Loaders.inOrder() {
		if own.Source.Structure(family) == nil {
			continue
		}
		m, err := e.Loaders[family].Load(ctx, e.Host, own, later)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("loading %s of index %s: %w", family, own.Source.Name(), err), CloseAll(maps.Values(matchers)))
		}
		matchers[family] = m
	}
	if len(matchers) == 0 {
		return nil, fmt.Errorf("loading index %s: this engine can search no structure that it has (engine %s: %v)", own.Source.Name(),
			e.About.Kind, slices.Sorted(maps.Keys(e.Loaders)))
	}
	return matchers, nil
}

// Weigh estimates what queries cost in each tile of a source, over all its families.
func (e *Engine) Weigh(x gpuexec.Source) []uint64 {
	work := make([]uint64, AllTiles(x).Len())
	for family, l := range e.Loaders {
		if x.Structure(family) == nil {
			continue
		}
		if l.Weigh == nil {
			for i := range work {
				work[i]++
			}
			continue
		}
		for i, w := range l.Weigh(x) {
			work[i] += w
		}
	}
	return work
}
