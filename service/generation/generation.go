package generation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
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
	// Followed says that a new file of the name is taken by itself (FollowName), which is nothing to warn of.
	Followed bool
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
	Recalls             []Recall
}

// Recall is what was measured of a path that may miss hits: the Share of the K nearest that is found with an effort.
type Recall struct {
	Column, Method string
	K              uint32
	Effort, Share  float64
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
// It is opened, loaded and started in this order, and ended in the reverse one: its watch stops, its pipeline drains, then the
// searcher and the file are closed. Everything that reads the file does so between start and the end of the pipeline.
type generation struct {
	name       string
	settings   *Settings
	facts      Facts
	attributes []postings.Attribute // by name and type
	columns    []heldColumn         // of records, and texts of documents by which hits are put in order
	file       *file
	translator *translate.Translator
	searcher   gpuexec.Searcher
	pipe       *pipeline.Pipeline

	watch    *fileWatch
	stop     context.CancelFunc // of the watch
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
		Path: path, Version: x.Version(), Kind: x.Schema().Kind.String(), Objects: x.Objects(), Bytes: x.Size(),
		Example: g.translator.Example(), Recalls: recallsOf(x),
	}
	for _, a := range x.Attributes() {
		g.attributes = append(g.attributes, postings.Attribute{Name: strings.Clone(a.Name), Type: a.Type})
	}
	g.columns = columnsOf(x)
	return g, nil
}

func recallsOf(x *index.Index) (all []Recall) {
	columns := x.Distances()
	if columns == nil {
		return nil
	}
	for i := range columns.Len() {
		c := columns.At(i)
		for _, r := range c.Recalls() {
			all = append(all, Recall{strings.Clone(c.Name), r.Path, r.K, r.Effort, r.Share})
		}
	}
	return all
}

// again is a generation of the same file that is not loaded yet.
func (g *generation) again() *generation {
	g.file.users.Add(1)
	return &generation{
		name: g.name, settings: g.settings, facts: g.facts, attributes: g.attributes, columns: g.columns, file: g.file, translator: g.translator, stop: func() {},
	}
}

// servedSource is an index under the name that it is served by, in place of the one in its file: engines tell people what they hold for whom, and several
// indexes may be served from files of one name, or from one file.
type servedSource struct {
	*index.Index
	name string
}

func (s servedSource) Name() string { return s.name }

// source is the index as its engine is to see it.
func (g *generation) source() gpuexec.Source { return servedSource{g.file.Index, g.name} }

// load has the engine load the index, and leave room for those that come later.
func (g *generation) load(ctx context.Context, later ...gpuexec.Source) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	epoch := g.file.Epoch()
	defer g.file.Recover(epoch, &err)
	searcher, err := g.settings.Engine.Load(ctx, g.source(), later...)
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
	opts.Answered = probed
	g.pipe = pipeline.New(g.file.Index, g.translator, g.searcher, opts, s.Metrics, s.Queries)
}

// watchFile begins to look at the file. hold holds back stored messages.
func (g *generation) watchFile(hold func(bool)) {
	ctx, stop := context.WithCancel(context.Background())
	g.stop = stop
	g.watch = &fileWatch{index: g.file.Index, doubts: g.pipe.Doubts(), hold: hold, followed: g.settings.Followed, log: g.settings.Log}
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
	for _, c := range g.columns {
		i := slices.IndexFunc(newer.columns, func(other heldColumn) bool { return other.name == c.name })
		switch {
		case i < 0 && c.kept != 0 && newer.facts.Kind == schema.Documents.String():
			return refused("it keeps nothing of column %s, and the one that is served %v, by which hits are rescored", c.name, c.kept)
		case i < 0:
			return refused("it has no column %s, which the one that is served has", c.name)
		case newer.columns[i].of != c.of:
			return refused("its column %s is of type %s, and that of the one that is served of type %s", c.name, newer.columns[i].of, c.of)
		case c.metric != "" && newer.columns[i].metric != c.metric:
			return refused("its column %s is not searched by distance %s, and that of the one that is served is", c.name, c.metric)
		case c.kept != 0 && newer.columns[i].kept != c.kept:
			return refused("it keeps %v of column %s, and the one that is served %v, by which hits are rescored or filtered", newer.columns[i].kept, c.name, c.kept)
		}
	}
	return nil
}

// heldColumn is a column of records that can be asked for: what its type makes of a condition depends on more than its attributes.
type heldColumn struct {
	name string
	of   schema.ColumnType
	kept schema.KeptForm // by which hits are compared
	// metric is that by which it is searched; "": it is not.
	metric string
}

// columnsOf are the columns of an index of records that can be asked for, and those of documents whose terms are kept: of the others the attributes say
// all.
func columnsOf(x *index.Index) []heldColumn {
	var columns []heldColumn
	for i := range x.Schema().Columns {
		c := &x.Schema().Columns[i]
		if c.Type == schema.PayloadColumn || c.Type == schema.SkipColumn {
			continue
		}
		held := heldColumn{name: strings.Clone(c.Name), of: schema.ColumnType(strings.Clone(string(c.Type)))}
		if x.Forward() != nil {
			if kept := x.Forward().Column(c.Name); kept != nil {
				held.kept = kept.Form
			}
		}
		if near := x.Distances().Column(c.Name); near != nil {
			held.metric = distance.MetricName(near.Metric)
		}
		if x.Schema().Kind.Mixed() || held.kept == schema.KeptTerms {
			columns = append(columns, held)
		}
	}
	return columns
}

const (
	// fileInterval is how often a file is looked at if no answer has done it.
	fileInterval = 500 * time.Millisecond
	// patrolBytes is how much of a file is compared with its checksums at a time: 4 MiB per second, a gigabyte in four minutes.
	patrolBytes = 2 << 20
)

// fileWatch looks at an index's file, holds the index back while that is in doubt, and lets it go on.
type fileWatch struct {
	index  *index.Index
	doubts <-chan struct{} // have it look now
	hold   func(bool)      // the stored messages
	log    *slog.Logger

	followed bool // Settings.Followed

	patrol *store.Patrol
	doubt  string // why the index is held back, ""
	name   string // what became of the file's name, ""
}

// run watches until ctx ends.
func (w *fileWatch) run(ctx context.Context) {
	w.patrol = w.index.NewPatrol()
	for {
		w.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(fileInterval):
		case <-w.doubts:
		}
	}
}

// release lets the index go on whose file was in doubt: another answers in its place. The watch has ended.
func (w *fileWatch) release() {
	if w.doubt != "" {
		w.doubt = ""
		w.hold(false)
	}
}

func (w *fileWatch) look(ctx context.Context) {
	x := w.index
	err := x.Unchanged(x.Epoch())
	if err == nil {
		err = w.patrol.Step(patrolBytes)
	}
	if err == nil && x.Unverified() {
		err = x.Reread(ctx)
	}
	if err != nil && ctx.Err() == nil {
		w.suspend(err)
		err = x.Reread(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		w.suspend(err)
	case w.doubt != "":
		w.doubt = ""
		w.log.Info("the index's file is what was opened, answering from it again", "file", x.Path())
		w.hold(false)
	}
	w.lookAtName()
}

// suspend holds the index back.
func (w *fileWatch) suspend(err error) {
	reason := err.Error()
	switch w.doubt {
	case reason:
	case "":
		w.hold(true)
		w.log.Error("not answering from an index whose file was changed in place: put the old file back, or swap the index for another "+
			"file; a new index must be renamed over the old one, never copied into it", "error", err)
	default:
		w.log.Warn("an index's file is not what it was yet", "error", err)
	}
	w.doubt = reason
}

// lookAtName tells when the file is no longer what its name stands for, which is no fault.
func (w *fileWatch) lookAtName() {
	x := w.index
	same, err := x.Named()
	was := w.name
	switch w.name = ""; {
	case errors.Is(err, fs.ErrNotExist):
		w.name = "the index's file was removed or renamed: this worker goes on with it, another cannot start"
	case err == nil && !same && !w.followed: // else the swap tells of it, and of why it fails
		w.name = "another file has the name of the index's: this worker goes on with the one it opened until SIGHUP or geniemq swap has it take the new one"
	}
	if w.name != "" && w.name != was {
		w.log.Warn(w.name, "file", x.Path())
	}
}
