package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/open"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// keyedFile builds an index of n objects with keys and payloads, of which object i is of category i mod 10.
func keyedFile(t testing.TB, name string, n int) (path string, content []byte) {
	t.Helper()
	spec, err := index.Builtin().ParseSchema([]byte("name: " + name + "\nkind: rows\nkey: id\ncolumns: [{name: c, type: category}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := onebyone.NewBuilder(spec, []schema.AttributeSpec{{Name: "c", Type: schema.Text}}, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		b.AddString(0, fmt.Sprint(i%10))
		if err := b.EndObject(fmt.Sprintf("key %d", i), []byte(fmt.Sprintf(`{"p":"%0100d"}`, i)), ""); err != nil {
			t.Fatal(err)
		}
	}
	path = filepath.Join(t.TempDir(), name+".gmq")
	if err := b.WriteFile(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	if content, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return path, content
}

// meddler is a real engine with someone at work at an index's file just before or after it is searched.
type meddler struct {
	gpuexec.Engine
	before, after atomic.Pointer[func()] // run once, for queries with k = 7
}

func (m *meddler) open(kind string, opts gpuexec.Options) (gpuexec.Engine, error) {
	engine, err := open.Engine(kind, opts)
	m.Engine = engine
	return m, err
}

func (m *meddler) Load(ctx context.Context, snapshot gpuexec.Source, later ...gpuexec.Source) (gpuexec.Searcher, error) {
	s, err := m.Engine.Load(ctx, snapshot, later...)
	return &meddledSearcher{s, m}, err
}

type meddledSearcher struct {
	gpuexec.Searcher
	m *meddler
}

func (s *meddledSearcher) Search(ctx context.Context, plans []gpuexec.Plan, answers []gpuexec.Answer, t *gpuexec.Trace) error {
	marked := false
	for i := range plans {
		marked = marked || plans[i].K == 7
	}
	if f := s.m.before.Load(); marked && f != nil && s.m.before.CompareAndSwap(f, nil) {
		(*f)()
	}
	err := s.Searcher.Search(ctx, plans, answers, t)
	if f := s.m.after.Load(); marked && f != nil && s.m.after.CompareAndSwap(f, nil) {
		(*f)()
	}
	return err
}

// A file that is changed while one of its queries is searched, or while the answer is made, makes no wrong answer and no failure: who asked directly
// is told to try again, a stored query waits, and when the old bytes are back it is answered.
func TestFileChangedUnderAnswer(t *testing.T) {
	const objects = 2000
	changes := map[string]func(path string, content []byte) error{
		"cut off": func(path string, _ []byte) error { return os.Truncate(path, 0) },
		"other payloads": func(path string, content []byte) error {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteAt(bytes.ReplaceAll(content, []byte(`"p":"0`), []byte(`"p":"9`)), 0)
			return errors.Join(err, f.Close())
		},
	}
	for name, change := range changes {
		for _, when := range []string{"before", "after"} {
			t.Run(name+" "+when+" the search", func(t *testing.T) {
				path, content := keyedFile(t, "keyed", objects)
				other := testkit.RowsFile(t, "rows", 100)
				m := &meddler{}
				s, nc, js := startService(t, config.Config{Indexes: []config.IndexSource{{Path: path}, {Path: other}}}, Options{OpenEngine: m.open})
				testkit.Eventually(t, ready(s))
				meddle := func() {
					if err := change(path, content); err != nil {
						t.Error(err)
					}
				}
				hook := map[string]*atomic.Pointer[func()]{"before": &m.before, "after": &m.after}[when]
				const body = `{"row":{"c":"3"},"k":7,"with_payload":true}`
				right := func(data []byte) {
					t.Helper()
					res, err := testkit.DecodeResult(wire.JSON, data)
					if err != nil || res.Err != nil || len(res.Hits) != 7 {
						t.Fatalf("%v in %s", err, data)
					}
					for i, h := range res.Hits {
						if want := 10*i + 3; h.Key != fmt.Sprintf("key %d", want) || string(h.Payload) != fmt.Sprintf(`{"p":"%0100d"}`, want) {
							t.Fatalf("hit %d is %s with %s", i, h.Key, h.Payload)
						}
					}
				}
				ask := func() []byte {
					t.Helper()
					m, err := nc.Request("genie.search.keyed", []byte(body), patience)
					if err != nil {
						t.Fatal(err)
					}
					return m.Data
				}
				right(ask())

				hook.Store(&meddle)
				res, err := testkit.DecodeResult(wire.JSON, ask())
				if err != nil || !errors.Is(res.Err, wire.Overloaded) || !strings.Contains(res.Err.Message, "changed in place") {
					t.Fatalf("asked directly while the file changes: %v %+v", err, res)
				}
				if st := s.Status(); st.Ready || len(st.NotReady) != 1 || !strings.Contains(st.NotReady[0], path) {
					t.Errorf("ready %v, because of %q", st.Ready, st.NotReady)
				}
				if m, err := nc.Request("genie.search.rows", []byte(`{"row":{"c":"3"},"k":1}`), patience); err != nil || !strings.Contains(string(m.Data), `"id":3`) {
					t.Errorf("another index answers %v, %v", m, err)
				}
				if err := os.WriteFile(path, content, 0); err != nil {
					t.Fatal(err)
				}
				testkit.Eventually(t, ready(s))
				right(ask())

				hook.Store(&meddle)
				msg := nats.NewMsg("genie.query.keyed")
				msg.Data = []byte(body)
				if _, err := js.PublishMsg(t.Context(), msg); err != nil {
					t.Fatal(err)
				}
				for start := time.Now(); hook.Load() != nil || s.Status().Ready; time.Sleep(time.Millisecond) {
					if time.Since(start) > patience {
						t.Fatal("the change is not noticed")
					}
				}
				results, err := js.Stream(t.Context(), "GENIE_RESULTS")
				if err != nil {
					t.Fatal(err)
				}
				if _, err := results.GetLastMsgForSubject(t.Context(), "genie.result.keyed"); err == nil {
					t.Error("a query was answered from a file that changed")
				}
				if err := os.WriteFile(path, content, 0); err != nil {
					t.Fatal(err)
				}
				for start := time.Now(); ; time.Sleep(5 * time.Millisecond) {
					m, err := results.GetLastMsgForSubject(t.Context(), "genie.result.keyed")
					if err == nil {
						right(m.Data)
						break
					}
					if time.Since(start) > patience {
						t.Fatal("the query is not answered")
					}
				}
				info, err := results.Info(t.Context())
				if err != nil || info.State.Msgs != 1 {
					t.Errorf("%d results, %v", info.State.Msgs, err)
				}
				testkit.Eventually(t, ready(s))
				for _, x := range s.set.Serving() {
					if n := x.Stored()[0].Consumer.Stats().Redelivered; n > 1 {
						t.Errorf("%s: %d deliveries more than one", x.Name, n)
					}
				}
				if dead, err := js.Stream(t.Context(), "GENIE_DEAD"); err != nil || dead.CachedInfo().State.Msgs > 0 {
					t.Errorf("dead letters: %+v, %v", dead, err)
				}
			})
		}
	}
}
