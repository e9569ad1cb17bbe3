package service

import (
	"bytes"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/gpuexec/open"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service/config"
)

// Two indexes of one name are refused with what to do.
func TestIndexNames(t *testing.T) {
	cfg := config.Config{
		Indexes: []config.IndexSource{{Path: testkit.RowsFile(t, "same", 1)}, {Path: testkit.RowsFile(t, "same", 2)}}, NATSListen: "127.0.0.1:0",
		DataDir: t.TempDir(), Admin: config.Off,
	}
	if _, err := Start(t.Context(), cfg, Options{}); err == nil || !strings.Contains(err.Error(), "--index other=") {
		t.Errorf("two indexes of one name: %v", err)
	}
}

// listing is a real engine that remembers what was loaded, and what was said to follow.
type listing struct {
	gpuexec.Engine
	loads []string
}

func (l *listing) open(kind string, opts gpuexec.Options) (gpuexec.Engine, error) {
	engine, err := open.Engine(kind, opts)
	l.Engine = engine
	return l, err
}

func (l *listing) Load(ctx context.Context, snapshot gpuexec.Source, later ...gpuexec.Source) (gpuexec.Searcher, error) {
	var names []string
	for _, s := range append([]gpuexec.Source{snapshot}, later...) {
		names = append(names, s.Name())
	}
	l.loads = append(l.loads, strings.Join(names, " "))
	return l.Engine.Load(ctx, snapshot, later...)
}

// Indexes are loaded in the order in which they are given, and each leaves room for those after it. The metrics and the page say
// who has the engine's memory.
func TestIndexesLeaveRoom(t *testing.T) {
	engine := &listing{}
	var indexes []config.IndexSource
	for _, name := range []string{"b", "a", "c"} {
		indexes = append(indexes, config.IndexSource{Path: testkit.RowsFile(t, name, 1)})
	}
	s, _, _ := startService(t, config.Config{Indexes: indexes, Engine: gpuexec.CPU}, Options{OpenEngine: engine.open})
	if want := []string{"b a c", "a c", "c"}; !slices.Equal(engine.loads, want) {
		t.Errorf("loaded, with what follows: %q, want %q", engine.loads, want)
	}
	families, err := s.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var want, got int64
	owners := make(map[string]bool)
	for _, h := range s.engine.Memory() {
		want += h.Bytes
		owners[h.Owner] = true
	}
	for _, h := range s.Status().Memory {
		if delete(owners, h.Owner); h.Where() != "host" {
			t.Errorf("the CPU engine has memory elsewhere: %+v", h)
		}
	}
	if len(owners) > 0 {
		t.Errorf("the page does not show what %v have", slices.Sorted(maps.Keys(owners)))
	}
	for _, f := range families {
		if f.GetName() == "geniemq_device_memory_bytes" {
			for _, m := range f.Metric {
				got += int64(m.Gauge.GetValue())
			}
		}
	}
	if got != want || want == 0 {
		t.Errorf("the metric has %d bytes, the engine %d", got, want)
	}
}

// What is held for an index is shown under the name that it is served by, whatever names its file has for it: of files of one name, and of one file that is
// served twice.
func TestMemoryByServedName(t *testing.T) {
	people, other := testkit.RowsFile(t, "people", 1000), testkit.RowsFile(t, "people", 2000)
	s, _, _ := startService(t, config.Config{Engine: gpuexec.CPU, Indexes: []config.IndexSource{
		{Path: people}, {Name: "small", Path: other}, {Name: "again", Path: other},
	}}, Options{})
	want := map[string]bool{"": true} // the engine's own
	for _, x := range s.set.Serving() {
		want[x.Name+" "+x.Index.Facts().Version] = true
	}
	got := make(map[string]bool)
	for _, h := range s.Status().Memory {
		if h.Index == "" {
			got[""] = true
		} else if got[h.Owner] = true; !strings.HasPrefix(h.Owner, h.Index+" ") {
			t.Errorf("%q has what is index %q's", h.Owner, h.Index)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("memory is shown of %q, want %q", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

// shaped is a real engine whose searchers say that their index lies elsewhere.
type shaped struct{ gpuexec.Engine }

func (e shaped) Info() gpuexec.Info {
	return gpuexec.Info{Kind: "cuda", Device: "NVIDIA H200", Note: "of the best"}
}

func (e shaped) Load(ctx context.Context, snapshot gpuexec.Source, later ...gpuexec.Source) (gpuexec.Searcher, error) {
	s, err := e.Engine.Load(ctx, snapshot, later...)
	return shapedSearcher{s}, err
}

type shapedSearcher struct{ gpuexec.Searcher }

func (s shapedSearcher) Capacity() gpuexec.Capacity {
	c := s.Searcher.Capacity()
	c.Form, c.Parts, c.IndexBytes = "streamed: planes", 7, 12345
	return c
}

// The log says of every index on what it is searched, and in which form it lies there.
func TestLoadedIndexIsLogged(t *testing.T) {
	var text bytes.Buffer
	s, err := Start(t.Context(), config.Config{
		Indexes:    []config.IndexSource{{Path: testkit.RowsFile(t, "a", 10)}, {Name: "other", Path: testkit.RowsFile(t, "b", 10)}},
		NATSListen: "127.0.0.1:0", DataDir: t.TempDir(), Admin: config.Off,
	}, Options{Logger: slog.New(slog.NewTextHandler(&text, nil)), OpenEngine: func(_ string, opts gpuexec.Options) (gpuexec.Engine, error) {
		return shaped{cpu.New(opts.CPU)}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if st := s.Status(); st.Engine != "cuda on NVIDIA H200" || st.EngineNote != "of the best" {
		t.Errorf("status: %s, %s", st.Engine, st.EngineNote)
	}
	shutdown(t, s)
	for _, name := range []string{"a", "other"} {
		want := `msg="index is loaded" index=` + name + ` engine=cuda device="NVIDIA H200" form="streamed: planes" parts=7 bytes=12345`
		if strings.Count(text.String(), want) != 1 {
			t.Errorf("%q is not in the log once:\n%s", want, text.String())
		}
	}
}
