package generation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/service/pipeline"
	"github.com/geniemq/geniemq/service/translate"
)

// Settings are what all generations of an index have in common.
type Settings struct {
	// Engine loads them.
	Engine gpuexec.Engine
	// Metrics are told what the pipelines do.
	Metrics pipeline.Metrics
	// Changed is called when another generation is to answer.
	Changed func(Facts)
	// Log is for what happens to the index, Queries for what happens to its queries.
	Log, Queries *slog.Logger
}

// Facts are what a generation copied of its index and its searcher when it was loaded. To read them takes no file, so whoever shows
// them may do so at any time, after the generation has ended too.
type Facts struct {
	Path, Version, Kind string
	Objects             uint32
	Bytes               int64
	Example             string // a query, JSON
	Capacity            gpuexec.Capacity
}

// file is an open index. The generation that loads an index a second time shares the first one's.
type file struct {
	*index.Index
	users atomic.Int32
}

func (f *file) close() error {
	if f.users.Add(-1) > 0 {
		return nil
	}
	return f.Close()
}

// generation is one version of an index while it is served: the open file, what an engine has of it, and a pipeline of its own.
//
// It is opened, loaded and started in this order, and ended in the reverse one: its watches stop, its pipeline drains, then the
// searcher and the file are closed. Everything that reads the file does so between start and the end of the pipeline.
type generation struct {
	name       string
	settings   *Settings
	facts      Facts
	attributes []postings.Attribute // by name and type
	file       *file
	translator *translate.Translator
	searcher   gpuexec.Searcher
	pipe       *pipeline.Pipeline
	prober     *pipeline.Prober

	watch    *fileWatch
	stop     context.CancelFunc // of prober and watch
	watching sync.WaitGroup
}

// open opens a file. name is the index's; with "" it is the one in the file.
func open(path, name string, kinds index.Kinds, certifyLimit int64, effort store.Effort) (_ *generation, err error) {
	x, err := kinds.OpenWith(path, effort)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, x.Close())
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer x.Recover(x.Epoch(), &err)
	if name == "" {
		name = x.Schema().Name
	}
	g := &generation{name: name, file: &file{Index: x}, stop: func() {}}
	g.file.users.Store(1)
	if g.translator, err = translate.New(name, x, certifyLimit); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	g.facts = Facts{
		Path: path, Version: x.Version(), Kind: string(x.Schema().Kind), Objects: x.Objects(), Bytes: x.Size(),
		Example: translate.Example(x),
	}
	for _, a := range x.Attributes() {
		g.attributes = append(g.attributes, postings.Attribute{Name: strings.Clone(a.Name), Type: a.Type})
	}
	return g, nil
}

// again is a generation of the same file that is not loaded yet.
func (g *generation) again() *generation {
	g.file.users.Add(1)
	return &generation{
		name: g.name, settings: g.settings, facts: g.facts, attributes: g.attributes, file: g.file, translator: g.translator, stop: func() {},
	}
}

// load has the engine load the index, and leave room for those that come later.
func (g *generation) load(ctx context.Context, later ...gpuexec.Source) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	epoch := g.file.Epoch()
	defer g.file.Recover(epoch, &err)
	searcher, err := g.settings.Engine.Load(ctx, g.file.Index, later...)
	if err != nil {
		if changed := g.file.Unchanged(epoch); changed != nil {
			return changed
		}
		return err
	}
	g.searcher = searcher
	if err := g.file.Unchanged(epoch); err != nil { // an engine keeps what it has loaded
		return err
	}
	capacity, info := searcher.Capacity(), g.settings.Engine.Info()
	g.facts.Capacity = capacity
	g.settings.Log.Info("index is loaded", "engine", info.Kind, "device", info.Device, "form", capacity.Form,
		"parts", capacity.Parts, "bytes", capacity.IndexBytes)
	return nil
}

// probe asks the searcher a query, past the pipeline.
func (g *generation) probe(ctx context.Context) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	epoch := g.file.Epoch()
	defer g.file.Recover(epoch, &err)
	plans, answers := []gpuexec.Plan{translate.Probe(g.file.Index)}, make([]gpuexec.Answer, 1)
	if err := g.searcher.Search(ctx, plans, answers, nil); err != nil {
		return fmt.Errorf("asking it a first query: %w", err)
	}
	if err := answers[0].Err; err != nil {
		return fmt.Errorf("asking it a first query: %w", err)
	}
	return g.file.Unchanged(epoch)
}

// start starts the pipeline. probed says that the searcher has answered a query.
func (g *generation) start(opts pipeline.Options, probed bool) {
	s := g.settings
	g.pipe = pipeline.New(g.file.Index, g.translator, g.searcher, opts, s.Metrics, s.Queries)
	g.prober = pipeline.NewProber(g.pipe, probed)
	ctx, stop := context.WithCancel(context.Background())
	g.stop = stop
	g.watching.Go(func() { g.prober.Run(ctx) })
}

// watchFile begins to look at the file. hold holds back stored messages.
func (g *generation) watchFile(hold func(bool)) {
	ctx, stop := context.WithCancel(context.Background())
	before := g.stop
	g.stop = func() { before(); stop() }
	g.watch = &fileWatch{index: g.file.Index, doubts: g.pipe.Doubts(), hold: hold, log: g.settings.Log}
	g.watching.Go(func() { g.watch.run(ctx) })
}

// unwatch ends what looks at the generation: it is not the one that answers any longer.
func (g *generation) unwatch() {
	g.stop()
	g.watching.Wait()
}

// drain ends the pipeline when it has answered what it was given.
func (g *generation) drain() {
	g.unwatch()
	if g.pipe != nil {
		g.pipe.Drain()
	}
}

// close gives up what the engine has and the file.
func (g *generation) close() error {
	var err error
	if g.searcher != nil {
		err = g.searcher.Close()
	}
	return errors.Join(err, g.file.close())
}

// fault says why the generation does not answer, or nil.
func (g *generation) fault(now time.Time) error { return g.prober.Fault(now) }

// fits says why a newer file cannot take the place of this one: whoever asked this one may go on asking.
func (g *generation) fits(newer *generation) error {
	if newer.facts.Kind != g.facts.Kind {
		return refused("it holds %s, and the one that is served %s", newer.facts.Kind, g.facts.Kind)
	}
	for _, a := range g.attributes {
		i := slices.IndexFunc(newer.attributes, func(b postings.Attribute) bool { return b.Name == a.Name })
		if i < 0 {
			return refused("it has no attribute %s, which the one that is served has", a.Name)
		}
		if newer.attributes[i].Type != a.Type {
			return refused("its attribute %s is of another type than that of the one that is served", a.Name)
		}
	}
	return nil
}
