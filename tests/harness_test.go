package tests

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/load"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// patience bounds every wait of these tests. It says nothing about how fast anything is; a test that comes near it
// has failed.
const patience = time.Minute

// The indexes that most tests serve.
const (
	peopleSchema = `
name: people
kind: rows
key: id
columns:
  - {name: id, type: skip}
  - {name: age, type: number, edges: exact}
  - {name: sex, type: category}
  - {name: state, type: category}
  - {name: note, type: payload}
`
	peopleData = `id,age,sex,state,note
ann,30,Female,WA,first
bob,35,Male,OR,second
cyd,35,Female,OR,third
dan,52,Male,WA,fourth
eve,,Female,CA,fifth
`
	wordsSchema = "name: words\nkind: sequences\ncolumns: [{name: word, type: text}]\n"
	wordsData   = "apple\napply\nample\nmaple\nstaple\nbanana\nbandana\n"

	papersSchema = "name: papers\nkind: documents\ncolumns: [{name: title, type: text, store: true}]\n"
	papersData   = "A generic inverted index on the GPU\nInverted files for text search engines\nQuery processing on GPUs\nThe index of everything\n"
)

// buildFile builds an index from text and returns its path. The extension of name tells the format.
func buildFile(t testing.TB, dir, name, schemaText, data string) string {
	t.Helper()
	spec, err := index.Builtin().ParseSchema([]byte(schemaText))
	if err != nil {
		t.Fatal(err)
	}
	reader, err := load.NewReader(strings.NewReader(data), name, spec, load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return buildFrom(t, dir, spec, reader)
}

func buildFrom(t testing.TB, dir string, spec *schema.Schema, readers ...*load.Reader) string {
	t.Helper()
	next, err := index.Builtin().Learn(spec, func(rec *schema.Record) error {
		for {
			if len(readers) == 0 {
				return io.EOF
			}
			if err := readers[0].Next(rec); err != io.EOF {
				return err
			}
			readers = readers[1:]
		}
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := index.NewObjects(spec, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := objects.AddAll(t.Context(), index.Source{Next: next}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, spec.Name+".gmq")
	if err := objects.WriteFile(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	return path
}

// buildAll builds the three indexes.
func buildAll(t testing.TB, dir string) []config.IndexSource {
	return []config.IndexSource{
		{Path: buildFile(t, dir, "people.csv", peopleSchema, peopleData)},
		{Path: buildFile(t, dir, "words.txt", wordsSchema, wordsData)},
		{Path: buildFile(t, dir, "papers.txt", papersSchema, papersData)},
	}
}

// running is a service under test and a plain connection to its server.
type running struct {
	t   testing.TB
	srv *service.Service
	nc  *nats.Conn
	js  jetstream.JetStream
}

// start starts a service on an embedded server, or on cfg.NATS, and stops both at the end of the test.
func start(t testing.TB, cfg config.Config, opts service.Options) *running {
	t.Helper()
	if len(cfg.Indexes) == 0 {
		cfg.Indexes = buildAll(t, t.TempDir())
	}
	if cfg.Embedded() {
		cfg.NATSListen = "127.0.0.1:0"
		if cfg.DataDir == "" {
			cfg.DataDir = t.TempDir()
		}
	}
	if cfg.Admin == "" {
		cfg.Admin = config.Off
	}
	if opts.Logger == nil {
		opts.Logger = testLogger(t)
	}
	srv, err := service.Start(t.Context(), cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := srv.Shutdown(ctx); err != nil {
			t.Errorf("shutting down: %v", err)
		}
	})
	r := &running{t: t, srv: srv}
	url := cfg.NATS // which, unlike NATSURL, has the password
	if url == "" {
		url = srv.NATSURL()
	}
	r.nc, r.js = connect(t, url)
	return r
}

func connect(t testing.TB, url string) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return nc, js
}

// testLogger writes the service's log to the test's, which shows it when the test fails.
func testLogger(t testing.TB) *slog.Logger { return textLogger(testWriter{t}) }

func textLogger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelInfo}))
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// within gives a context that ends when patience does.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// publish stores a message in the query stream and returns its sequence.
func (r *running) publish(index string, body string, headers ...string) uint64 {
	r.t.Helper()
	ack, err := r.js.PublishMsg(within(r.t), message("genie.query."+index, body, headers...))
	if err != nil {
		r.t.Fatal(err)
	}
	return ack.Sequence
}

// message makes a message; headers are names and values in turn.
func message(subject, body string, headers ...string) *nats.Msg {
	m := nats.NewMsg(subject)
	m.Data = []byte(body)
	for i := 0; i < len(headers); i += 2 {
		m.Header[headers[i]] = []string{headers[i+1]}
	}
	return m
}

// stored reads the n-th message (from 1) that the result stream has on a subject, waiting for it.
func (r *running) stored(subject string, n int) *jetstream.RawStreamMsg {
	r.t.Helper()
	return streamMessage(r.t, r.js, "GENIE_RESULTS", subject, n)
}

func streamMessage(t testing.TB, js jetstream.JetStream, stream, subject string, n int) *jetstream.RawStreamMsg {
	t.Helper()
	ctx := within(t)
	s, err := js.Stream(ctx, stream)
	if err != nil {
		t.Fatal(err)
	}
	next := uint64(1)
	for found := 0; ; {
		m, err := s.GetMsg(ctx, next, jetstream.WithGetMsgSubject(subject))
		if err == nil {
			if found++; found == n {
				return m
			}
			next = m.Sequence + 1
			continue
		}
		if ctx.Err() != nil {
			t.Fatalf("%s has %d messages on %s, waited for %d", stream, found, subject, n)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// count is how many messages a stream has on a subject.
func (r *running) count(stream, subject string) int {
	r.t.Helper()
	n := 0
	insist(r.t, func(ctx context.Context) error {
		s, err := r.js.Stream(ctx, stream)
		if err != nil {
			return err
		}
		info, err := s.Info(ctx, jetstream.WithSubjectFilter(subject))
		if err != nil {
			return err
		}
		n = 0
		for _, messages := range info.State.Subjects {
			n += int(messages)
		}
		return nil
	})
	return n
}

// insist asks a server something again where nothing comes back: a server that goes down takes what it was asked along, and nobody is told.
func insist(t testing.TB, ask func(context.Context) error) {
	t.Helper()
	testkit.Eventually(t, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return ask(ctx)
	})
}

// settled waits until no message of the query stream is left.
func (r *running) settled() {
	r.t.Helper()
	testkit.Eventually(r.t, func() error {
		if n := r.count("GENIE_QUERIES", "genie.query.>"); n > 0 {
			return fmt.Errorf("%d messages are left in the query stream", n)
		}
		return nil
	})
}

// result decodes a JSON result.
func result(t testing.TB, body []byte) *wire.Result {
	t.Helper()
	res, err := testkit.DecodeResult(wire.JSON, body)
	if err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return res
}

// keys are the keys and counts of hits, "ann:3 cyd:2".
func keys(res *wire.Result) string {
	if res.Err != nil {
		return res.Err.Error()
	}
	var parts []string
	for _, h := range res.Hits {
		parts = append(parts, fmt.Sprintf("%s:%d", h.Key, h.Count))
	}
	return strings.Join(parts, " ")
}

// works checks that the service answers as if nothing had happened.
func (r *running) works() {
	r.t.Helper()
	reply, err := r.nc.Request("genie.search.people", []byte(`{"row":{"sex":"Male","state":"WA"},"k":2}`), patience)
	if err != nil {
		r.t.Fatalf("the service does not answer any more: %v", err)
	}
	if got := keys(result(r.t, reply.Data)); got != "dan:2 ann:1" {
		r.t.Fatalf("the service answers %s", got)
	}
}
