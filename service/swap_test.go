package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/open"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
	"github.com/geniemq/geniemq/service/admin"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// editionFile builds an index whose keys begin with a mark, and returns its path and version.
func editionFile(t testing.TB, mark string) (path, version string) {
	t.Helper()
	spec := "name: rows\nkind: rows\nkey: id\ncolumns: [{name: c, type: category}, {name: n, type: number, edges: exact}]\n"
	return builtFile(t, spec, []schema.AttributeSpec{{Name: "c", Type: schema.Text}, {Name: "n", Type: schema.Number, Edges: schema.Exact}},
		func(b *onebyone.Builder, i int) error {
			b.AddString(0, fmt.Sprint(i%10))
			if err := b.AddNumber(1, float64(i)); err != nil {
				return err
			}
			return b.EndObject(fmt.Sprintf("%s-%d", mark, i), nil, "")
		})
}

// builtFile builds an index of 100 objects.
func builtFile(t testing.TB, schemaText string, attributes []schema.AttributeSpec, add func(*onebyone.Builder, int) error) (path, version string) {
	t.Helper()
	spec, err := index.Builtin().ParseSchema([]byte(schemaText))
	if err != nil {
		t.Fatal(err)
	}
	b, err := onebyone.NewBuilder(spec, attributes, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if err := add(b, i); err != nil {
			t.Fatal(err)
		}
	}
	path = filepath.Join(t.TempDir(), "rows.gmq")
	if err := b.WriteFile(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	x, err := index.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	return path, x.Version()
}

// answers checks that a direct query is answered by a version, whose keys begin with a mark.
func answers(nc *nats.Conn, mark, version string) error {
	reply, err := nc.Request("genie.search.rows", []byte(`{"k":1,"row":{"c":"3"}}`), patience)
	if err != nil {
		return err
	}
	r, err := testkit.DecodeResult(wire.JSON, reply.Data)
	switch {
	case err != nil:
		return err
	case r.Err != nil:
		return r.Err
	case r.Version != version || len(r.Hits) != 1 || r.Hits[0].Key != mark+"-3":
		return fmt.Errorf("%s of version %s answers %v, want %s of %s", r.Hits[0].Key, r.Version, r.Hits, mark, version)
	}
	return nil
}

func mustAnswer(t testing.TB, nc *nats.Conn, mark, version string) {
	t.Helper()
	if err := answers(nc, mark, version); err != nil {
		t.Fatal(err)
	}
}

// swaps are the counts of geniemq_swaps_total: done, refused, failed.
func swaps(t testing.TB, s *Service) (counts [3]int) {
	t.Helper()
	families, err := s.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "geniemq_swaps_total" {
			continue
		}
		for _, m := range f.Metric {
			for _, l := range m.Label {
				if l.GetName() == "outcome" {
					counts[map[string]int{"done": 0, "refused": 1, "failed": 2}[l.GetValue()]] = int(m.Counter.GetValue())
				}
			}
		}
	}
	return counts
}

// mapped is how often this process has a file mapped.
func mapped(t testing.TB, path string) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skip("what is mapped is read from /proc")
	}
	return strings.Count(string(maps), path)
}

// picky is a real engine that is told what to think of indexes by their versions.
type picky struct {
	gpuexec.Engine
	load   func(ctx context.Context, version string) error // before the real one loads; nil: nothing
	search func(version string) error                      // before the real one searches
	shape  func(version string, c *gpuexec.Capacity)
	closed atomic.Int32
}

func (p *picky) open(kind string, opts gpuexec.Options) (gpuexec.Engine, error) {
	engine, err := open.Engine(kind, opts)
	p.Engine = engine
	return p, err
}

func (p *picky) Load(ctx context.Context, x gpuexec.Source, later ...gpuexec.Source) (gpuexec.Searcher, error) {
	version := x.Version()
	if p.load != nil {
		if err := p.load(ctx, version); err != nil {
			return nil, err
		}
	}
	s, err := p.Engine.Load(ctx, x, later...)
	if err != nil {
		return nil, err
	}
	c := s.Capacity()
	if p.shape != nil {
		p.shape(version, &c)
	}
	return &pickySearcher{s, p, version, c}, nil
}

type pickySearcher struct {
	gpuexec.Searcher
	p        *picky
	version  string
	capacity gpuexec.Capacity
}

func (s *pickySearcher) Capacity() gpuexec.Capacity { return s.capacity }

func (s *pickySearcher) Search(ctx context.Context, plans []gpuexec.Plan, answers []gpuexec.Answer, t *gpuexec.Trace) error {
	if s.p.search != nil {
		if err := s.p.search(s.version); err != nil {
			return err
		}
	}
	return s.Searcher.Search(ctx, plans, answers, t)
}

func (s *pickySearcher) Close() error {
	s.p.closed.Add(1)
	return s.Searcher.Close()
}

// TestBadFilesAreNotServed: whatever is wrong with a file that is to take the place of an index's, what is served goes on, and the answer,
// the log and a metric say what happened.
func TestBadFilesAreNotServed(t *testing.T) {
	served, version := editionFile(t, "a")
	good, goodVersion := editionFile(t, "b")
	noLoad, noLoadVersion := editionFile(t, "c")
	noAnswer, noAnswerVersion := editionFile(t, "d")
	engine := &picky{
		load: func(_ context.Context, v string) error {
			if v == noLoadVersion {
				return errors.New("no room on the device")
			}
			return nil
		},
		search: func(v string) error {
			if v == noAnswerVersion {
				return errors.New("the engine cannot count")
			}
			return nil
		},
	}
	var text logText
	s, nc, _ := startService(t, config.Config{Indexes: []config.IndexSource{{Path: served}}}, Options{
		OpenEngine: engine.open, Logger: slog.New(slog.NewTextHandler(&text, nil)),
	})
	testkit.Eventually(t, ready(s))
	content, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	written := func(change func([]byte) []byte) string {
		path := filepath.Join(t.TempDir(), "bad.gmq")
		if err := os.WriteFile(path, change(bytes.Clone(content)), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	onlyC := []schema.AttributeSpec{{Name: "c", Type: schema.Text}}
	add := func(b *onebyone.Builder, i int) error {
		b.AddString(0, fmt.Sprint(i%10))
		return b.EndObject("", nil, "")
	}
	documents, _ := builtFile(t, "name: rows\nkind: documents\ncolumns: [{name: c, type: text}]\n", onlyC, add)
	missing, _ := builtFile(t, "name: rows\nkind: rows\ncolumns: [{name: c, type: category}]\n", onlyC, add)
	retyped, _ := builtFile(t, "name: rows\nkind: rows\ncolumns: [{name: c, type: category}, {name: n, type: category}]\n",
		[]schema.AttributeSpec{{Name: "c", Type: schema.Text}, {Name: "n", Type: schema.Text}},
		func(b *onebyone.Builder, i int) error {
			b.AddString(1, "x")
			return add(b, i)
		})
	var want [3]int
	for _, bad := range []struct {
		name, path, says string
		refused          bool
	}{
		{"there is none", filepath.Join(t.TempDir(), "none.gmq"), "no such file", false},
		{"a folder", t.TempDir(), "", false},
		{"no index", written(func([]byte) []byte { return []byte("hello") }), "", false},
		{"empty", written(func([]byte) []byte { return nil }), "empty", false},
		{"truncated", written(func(b []byte) []byte { return b[:len(b)/2] }), "", false},
		{"another checksum", written(func(b []byte) []byte { b[len(b)/2] ^= 1; return b }), "", false},
		{"another kind", documents, "documents", true},
		{"an attribute less", missing, "no attribute n", true},
		{"an attribute of another type", retyped, "attribute n is of another type", true},
		{"the engine does not load it", noLoad, "no room on the device", false},
		{"the engine does not answer", noAnswer, "the engine cannot count", false},
	} {
		was, _, err := s.Swap(t.Context(), "rows", bad.path)
		if err == nil || !strings.Contains(err.Error(), bad.says) || errors.Is(err, admin.ErrRefused) != bad.refused || was != version {
			t.Errorf("%s: %v, in the place of %s", bad.name, err, was)
		}
		if want[1+map[bool]int{true: 0, false: 1}[bad.refused]]++; swaps(t, s) != want {
			t.Errorf("%s: %v swaps are counted, want %v", bad.name, swaps(t, s), want)
		}
		if !strings.Contains(text.String(), bad.path) {
			t.Errorf("%s: the log does not name the file:\n%s", bad.name, text.String())
		}
		if n := mapped(t, bad.path); n != 0 {
			t.Errorf("%s: it is still mapped", bad.name)
		}
		mustAnswer(t, nc, "a", version)
		if err := ready(s)(); err != nil {
			t.Errorf("%s: %v", bad.name, err)
		}
	}
	if _, _, err := s.Swap(t.Context(), "words", good); !errors.Is(err, admin.ErrNoSuchIndex) {
		t.Errorf("an index that is not served: %v", err)
	}
	if _, is, err := s.Swap(t.Context(), "rows", good); err != nil || is != goodVersion {
		t.Fatalf("a good file after all: %s %v", is, err)
	}
	if err := ready(s)(); err != nil {
		t.Errorf("after a swap: %v", err)
	}
	mustAnswer(t, nc, "b", goodVersion)
	if stats, err := nc.Request("$SRV.STATS.geniemq", nil, patience); err != nil || !strings.Contains(string(stats.Data), `"version":"`+goodVersion+`"`) {
		t.Errorf("STATS do not say that version %s answers: %v %s", goodVersion, err, stats.Data)
	}
	if st := s.Status(); st.Indexes[0].Version != goodVersion {
		t.Errorf("the page shows version %s, want %s", st.Indexes[0].Version, goodVersion)
	}
	testkit.Eventually(t, func() error {
		if n := mapped(t, served); n != 0 {
			return fmt.Errorf("the old file is mapped %d times", n)
		}
		return nil
	})
}

// TestSwapGivesMemoryBack: what the old version took goes back to the system when it has answered, not when the runtime gets to it.
func TestSwapGivesMemoryBack(t *testing.T) {
	first, _ := editionFile(t, "a")
	second, _ := editionFile(t, "b")
	s, _, _ := startService(t, config.Config{Indexes: []config.IndexSource{{Path: first}}}, Options{})
	forced := func() uint64 {
		sample := []metrics.Sample{{Name: "/gc/cycles/forced:gc-cycles"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	before := forced()
	if _, _, err := s.Swap(t.Context(), "rows", second); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, func() error {
		if forced() == before {
			return errors.New("no collection was asked for after the swap")
		}
		return nil
	})
}

// TestRefresh: of the files of all indexes only those are swapped that were replaced.
func TestRefresh(t *testing.T) {
	rows, version := editionFile(t, "a")
	other := testkit.RowsFile(t, "other", 10)
	s, nc, _ := startService(t, config.Config{Indexes: []config.IndexSource{{Path: rows}, {Path: other}}}, Options{})
	if err := s.Refresh(t.Context()); err != nil || swaps(t, s) != [3]int{} {
		t.Errorf("with nothing new: %v, %v swaps", err, swaps(t, s))
	}
	now := time.Now()
	if err := os.Chtimes(rows, now, now); err != nil { // it is the same file
		t.Fatal(err)
	}
	if err := s.Refresh(t.Context()); err != nil || swaps(t, s) != [3]int{} {
		t.Errorf("with a file that was touched: %v, %v swaps", err, swaps(t, s))
	}
	testkit.Eventually(t, func() error { return answers(nc, "a", version) })
	newer, newerVersion := editionFile(t, "b")
	if err := os.Rename(newer, rows); err != nil {
		t.Fatal(err)
	}
	if err := s.Refresh(t.Context()); err != nil || swaps(t, s) != [3]int{1, 0, 0} {
		t.Errorf("with a new file: %v, %v swaps", err, swaps(t, s))
	}
	mustAnswer(t, nc, "b", newerVersion)
	bad := filepath.Join(t.TempDir(), "bad.gmq")
	if err := errors.Join(os.WriteFile(bad, []byte("no index"), 0o600), os.Rename(bad, rows)); err != nil {
		t.Fatal(err)
	}
	if err := s.Refresh(t.Context()); err == nil || !strings.Contains(err.Error(), "rows") || swaps(t, s) != [3]int{1, 0, 1} {
		t.Errorf("with a bad file: %v, %v swaps", err, swaps(t, s))
	}
	mustAnswer(t, nc, "b", newerVersion)
}

// TestSwapMendsFile: an index whose file was changed in place is not answered from, and is after it was swapped for another; stored
// queries wait for that.
func TestSwapMendsFile(t *testing.T) {
	first, _ := editionFile(t, "a")
	second, secondVersion := editionFile(t, "b")
	s, nc, js := startService(t, config.Config{Indexes: []config.IndexSource{{Path: first}}}, Options{})
	testkit.Eventually(t, ready(s))
	if err := os.Truncate(first, 0); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, func() error {
		if err := ready(s)(); err == nil || !strings.Contains(err.Error(), "changed while it was open") {
			return fmt.Errorf("ready with a file that is gone: %v", err)
		}
		return nil
	})
	if _, err := js.Publish(t.Context(), "genie.query.rows", []byte(`{"k":1,"row":{"c":"3"}}`)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second / 3) // the watch has it held
	if _, _, err := s.Swap(t.Context(), "rows", second); err != nil {
		t.Fatal(err)
	}
	mustAnswer(t, nc, "b", secondVersion)
	testkit.Eventually(t, ready(s))
	results, err := js.Stream(t.Context(), "GENIE_RESULTS")
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, func() error {
		m, err := results.GetLastMsgForSubject(t.Context(), "genie.result.rows")
		if err == nil && !strings.Contains(string(m.Data), secondVersion) {
			t.Errorf("answered %s", m.Data)
		}
		return err
	})
}

// TestOldVersionAnswersWhatItTook: a query that is being searched when the index is swapped is answered by the version that took it in,
// which is closed only then; queries that come later do not wait for it.
func TestOldVersionAnswersWhatItTook(t *testing.T) {
	first, version := editionFile(t, "a")
	second, secondVersion := editionFile(t, "b")
	gate, inside := make(chan struct{}), make(chan struct{}, 10)
	var held atomic.Bool
	engine := &picky{search: func(v string) error {
		if v == version && held.Load() {
			inside <- struct{}{}
			<-gate
		}
		return nil
	}}
	s, nc, _ := startService(t, config.Config{Indexes: []config.IndexSource{{Path: first}}}, Options{OpenEngine: engine.open})
	testkit.Eventually(t, ready(s))
	held.Store(true)
	late := make(chan error, 1)
	go func() { late <- answers(nc, "a", version) }()
	<-inside
	if _, _, err := s.Swap(t.Context(), "rows", second); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		mustAnswer(t, nc, "b", secondVersion)
	}
	if n := engine.closed.Load(); n != 0 || mapped(t, first) != 1 {
		t.Errorf("%d searchers are closed and the old file is mapped %d times while a query is searched in it", n, mapped(t, first))
	}
	close(gate)
	if err := <-late; err != nil {
		t.Error(err)
	}
	testkit.Eventually(t, func() error {
		if n := engine.closed.Load(); n != 1 || mapped(t, first) != 0 {
			return fmt.Errorf("%d searchers are closed, the old file is mapped %d times", n, mapped(t, first))
		}
		return nil
	})
}

// TestPartsOutliveTheirVersion: an answer in many parts, of which the first is out when the index is swapped, goes on to its end from the
// version that searched it, which is closed only then.
func TestPartsOutliveTheirVersion(t *testing.T) {
	const queries, objects = 60, 100
	payload := func(mark string) (path, version string) {
		return builtFile(t, "name: rows\nkind: rows\ncolumns: [{name: c, type: category}]\n", []schema.AttributeSpec{{Name: "c", Type: schema.Text}},
			func(b *onebyone.Builder, i int) error {
				b.AddString(0, "same")
				return b.EndObject("", fmt.Appendf(nil, `{"p":"%s"}`, strings.Repeat(mark, 200)), "")
			})
	}
	first, version := payload("a")
	second, secondVersion := payload("b")
	s, nc, js := startService(t, config.Config{Indexes: []config.IndexSource{{Path: first}}}, Options{})
	results, err := js.Stream(t.Context(), "GENIE_RESULTS")
	if err != nil {
		t.Fatal(err)
	}
	limits := results.CachedInfo().Config
	limits.MaxMsgSize, limits.MaxMsgs = 100_000, 1
	if _, err := js.UpdateStream(t.Context(), limits); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, func() error { // the service has seen the new limit
		if n := s.watch.MaxResult(); n != 100_000 {
			return fmt.Errorf("results may have %d bytes", n)
		}
		return nil
	})
	one := fmt.Sprintf(`{"k":%d,"with_payload":true,"row":{"c":"same"}}`, objects)
	body := `{"queries":[` + strings.Repeat(one+",", queries-1) + one + `]}`
	if _, err := js.Publish(t.Context(), "genie.query.rows", []byte(body)); err != nil {
		t.Fatal(err)
	}
	count := func() uint64 {
		info, err := results.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return info.State.Msgs
	}
	testkit.Eventually(t, func() error {
		if count() != 1 {
			return errors.New("the first part is not out")
		}
		return nil
	})
	if _, _, err := s.Swap(t.Context(), "rows", second); err != nil {
		t.Fatal(err)
	}
	if r, err := nc.Request("genie.search.rows", []byte(`{"k":1,"row":{"c":"same"}}`), patience); err != nil || !strings.Contains(string(r.Data), secondVersion) {
		t.Fatalf("%v %s", err, r.Data)
	}
	if n := mapped(t, first); n != 1 {
		t.Fatalf("the first version is mapped %d times while its answer goes out", n)
	}
	limits.MaxMsgs = -1
	if _, err := js.UpdateStream(t.Context(), limits); err != nil {
		t.Fatal(err)
	}
	parts := 0
	for next := 0; next < queries; parts++ {
		var m *jetstream.RawStreamMsg
		testkit.Eventually(t, func() (err error) {
			m, err = results.GetMsg(t.Context(), uint64(parts+1))
			return err
		})
		a, err := wire.DecodeAnswer(wire.JSON, m.Data)
		if err != nil || a.First != next {
			t.Fatalf("part %d is from %d on, not %d: %v", parts, a.First, next, err)
		}
		for i := range a.Results {
			r := &a.Results[i]
			if r.Err != nil || r.Version != version || len(r.Hits) != objects || !strings.Contains(string(r.Hits[objects-1].Payload), "aaa") {
				t.Fatalf("query %d: %v, %d hits of version %s", next+i, r.Err, len(r.Hits), r.Version)
			}
		}
		next += len(a.Results)
	}
	if parts < 4 {
		t.Errorf("%d parts: the test shows nothing", parts)
	}
	testkit.Eventually(t, func() error {
		if n := mapped(t, first); n != 0 {
			return errors.New("the first version is still mapped")
		}
		return nil
	})
}
