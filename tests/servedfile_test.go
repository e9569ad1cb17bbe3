package tests

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// servedKind is a kind of index in three versions, and queries with their answers by version.
type servedKind struct {
	name    string
	schema  string
	data    func(version int) string
	queries []string

	files [3]string // pristine: 0 is served; 1 has the same size, 2 another
	// want is what a query is answered by a version that nobody touched: by version and query id.
	want map[string]map[string]string
}

const servedObjects = 20_000

// servedKinds makes indexes whose second version is the first one's objects in another order, which takes as many bytes.
func servedKinds(rng *rand.Rand) []*servedKind {
	lines := func(header string, n int, line func(i int) string) func(int) string {
		first, more := make([]string, n), make([]string, n/2)
		for i := range first {
			first[i] = line(i)
		}
		for i := range more {
			more[i] = line(n + i)
		}
		return func(version int) string {
			all := slices.Clone(first)
			if version == 1 {
				rand.New(rand.NewPCG(1, 1)).Shuffle(n, func(i, j int) { all[i], all[j] = all[j], all[i] })
			} else if version == 2 {
				all = append(more, all...)
			}
			return header + strings.Join(all, "\n") + "\n"
		}
	}
	word := func(letters, least, more int) string {
		var b strings.Builder
		for range least + rng.IntN(more) {
			b.WriteByte(byte('a' + rng.IntN(letters)))
		}
		return b.String()
	}
	rows := &servedKind{name: "rows", schema: `
name: rows
kind: rows
key: id
columns:
  - {name: id, type: skip}
  - {name: city, type: category}
  - {name: shop, type: category}
  - {name: age, type: number, edges: exact}
  - {name: note, type: payload}
`}
	rows.data = lines("id,city,shop,age,note\n", servedObjects, func(i int) string {
		return fmt.Sprintf("key%06d,city%02d,shop%03d,%d,%s", i, rng.IntN(50), rng.IntN(300), rng.IntN(90), word(26, 60, 1))
	})
	texts := &servedKind{name: "texts", schema: "name: texts\nkind: sequences\ncolumns: [{name: word, type: text}]\n"}
	texts.data = lines("", servedObjects, func(int) string { return word(9, 6, 7) })
	papers := &servedKind{name: "papers", schema: "name: papers\nkind: documents\ncolumns: [{name: title, type: text, store: true}]\n"}
	vocabulary := make([]string, 3000)
	for i := range vocabulary {
		vocabulary[i] = word(20, 4, 6)
	}
	title := func(n int) string {
		var words []string
		for range n {
			words = append(words, vocabulary[rng.IntN(len(vocabulary))])
		}
		return strings.Join(words, " ")
	}
	papers.data = lines("", servedObjects/2, func(int) string { return title(7) })
	for i := range 40 {
		rows.queries = append(rows.queries, fmt.Sprintf(
			`{"id":"q%d","k":%d,"with_payload":true,"row":{"city":"city%02d","shop":"shop%03d","age":{"min":%d,"max":%d}}}`,
			i, 1+rng.IntN(30), rng.IntN(50), rng.IntN(300), i, i+3))
		texts.queries = append(texts.queries, fmt.Sprintf(`{"id":"q%d","k":5,"with_payload":true,"certify":%v,"text":%q}`, i, i%4 == 0, word(9, 6, 7)))
		papers.queries = append(papers.queries, fmt.Sprintf(`{"id":"q%d","k":10,"with_payload":true,"text":%q}`, i, title(5)))
	}
	return []*servedKind{rows, texts, papers}
}

// build makes the files and the answers of a service in this process whose files are left alone.
func (k *servedKind) build(t *testing.T) {
	extension := ".txt"
	if k.name == "rows" {
		extension = ".csv"
	}
	k.want = make(map[string]map[string]string)
	for version := range k.files {
		k.files[version] = buildFile(t, t.TempDir(), k.name+extension, k.schema, k.data(version))
		r := start(t, config.Config{Indexes: []config.IndexSource{{Path: k.files[version]}}}, service.Options{})
		answers := make(map[string]string)
		name := ""
		for _, q := range k.queries {
			reply, err := r.nc.Request("genie.search."+k.name, []byte(q), patience)
			if err != nil {
				t.Fatal(err)
			}
			id, version, text := comparable(t, reply.Data)
			answers[id], name = text, version
		}
		k.want[name] = answers
	}
	if len(k.want) != len(k.files) {
		t.Fatal("versions are the same")
	}
	sizes := make([]int64, len(k.files))
	for i, path := range k.files {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		sizes[i] = info.Size()
	}
	if sizes[0] != sizes[1] || sizes[0] == sizes[2] {
		t.Fatalf("versions have %d bytes", sizes)
	}
}

// comparable is a result without what differs each time.
func comparable(t *testing.T, data []byte) (id, version, text string) {
	t.Helper()
	var res map[string]json.RawMessage
	if err := json.Unmarshal(data, &res); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	if res["error"] != nil || res["hits"] == nil {
		t.Fatalf("no answer: %s", data)
	}
	delete(res, "took_us")
	whole, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Trim(string(res["id"]), `"`), strings.Trim(string(res["version"]), `"`), string(whole)
}

// servedLoad asks a worker all the time, directly and through the stream, and checks what comes directly.
type servedLoad struct {
	t    *testing.T
	kind *servedKind
	nc   *nats.Conn
	js   jetstream.JetStream

	mu        sync.Mutex
	published map[string]string // message id -> query id

	answered, refused, wrong atomic.Int64 // direct
	others                   atomic.Int64 // of the other index
}

func (l *servedLoad) fault(format string, args ...any) {
	if l.wrong.Add(1) <= 5 {
		l.t.Errorf(format, args...)
	}
}

// ask asks the index directly until ctx ends. Whatever is answered is right for the version that it names; else it is said that there
// is no answer.
func (l *servedLoad) ask(ctx context.Context, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for ctx.Err() == nil {
		time.Sleep(time.Duration(rng.IntN(4)) * time.Millisecond)
		m, err := l.nc.RequestWithContext(ctx, "genie.search."+l.kind.name, []byte(l.kind.queries[rng.IntN(len(l.kind.queries))]))
		switch {
		case err != nil: // between two workers nobody listens
		case m.Header.Get(wire.HeaderServiceErrorCode) == string(wire.Overloaded):
			l.refused.Add(1)
		case m.Header.Get(wire.HeaderServiceErrorCode) != "":
			l.fault("answered by an error: %s", m.Data)
		default:
			l.answered.Add(1)
			id, version, text := comparable(l.t, m.Data)
			if want := l.kind.want[version][id]; text != want {
				l.fault("version %s answers %s\n got %s\nwant %s", version, id, text, want)
			}
		}
	}
}

// askOther asks another index of the same worker, which is to answer whatever happens to the first.
func (l *servedLoad) askOther(ctx context.Context) {
	for ctx.Err() == nil {
		time.Sleep(3 * time.Millisecond)
		m, err := l.nc.RequestWithContext(ctx, "genie.search.people", []byte(`{"row":{"sex":"Male","state":"WA"},"k":2}`))
		if errors.Is(err, nats.ErrNoResponders) || err != nil && ctx.Err() != nil {
			continue // between two workers
		}
		if err != nil {
			l.fault("the other index: %v", err)
			continue
		}
		if got := keys(result(l.t, m.Data)); strings.Contains(got, "shutting down") || strings.Contains(got, "does not answer from its index any longer") {
			continue // of a worker that ends
		} else if got != "dan:2 ann:1" {
			l.fault("the other index answers %s", got)
		}
		l.others.Add(1)
	}
}

// publish stores queries until ctx ends.
func (l *servedLoad) publish(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		time.Sleep(8 * time.Millisecond)
		i := n % len(l.kind.queries)
		id := fmt.Sprintf("m%d", n)
		if _, err := l.js.PublishMsg(context.WithoutCancel(ctx), message("genie.query."+l.kind.name, l.kind.queries[i], "Nats-Msg-Id", id)); err != nil {
			l.fault("publishing: %v", err)
			return
		}
		l.mu.Lock()
		l.published[id] = fmt.Sprintf("q%d", i)
		l.mu.Unlock()
	}
}

// check compares the result stream with what was published.
func (l *servedLoad) check(r *running) {
	l.t.Helper()
	r.settled()
	results, err := l.js.Stream(within(l.t), "GENIE_RESULTS")
	if err != nil {
		l.t.Fatal(err)
	}
	seen := make(map[string]int)
	for next := uint64(1); ; {
		m, err := results.GetMsg(within(l.t), next, jetstream.WithGetMsgSubject("genie.result."+l.kind.name))
		if err != nil {
			break
		}
		next = m.Sequence + 1
		part := strings.Split(m.Header.Get("Nats-Msg-Id"), ".") // index, id, part
		id, version, text := comparable(l.t, m.Data)
		if len(part) != 3 || l.published[part[1]] != id {
			l.fault("a stored answer to %s with the id %s", id, m.Header.Get("Nats-Msg-Id"))
			continue
		}
		seen[part[1]]++
		if want := l.kind.want[version][id]; text != want {
			l.fault("version %s answers %s\n got %s\nwant %s", version, id, text, want)
		}
	}
	for id := range l.published {
		if seen[id] != 1 {
			l.fault("%s was answered %d times", id, seen[id])
		}
	}
	if n := r.count("GENIE_DEAD", "genie.dead.>"); n != 0 {
		l.t.Errorf("%d dead letters", n)
	}
	l.t.Logf("%d direct answers and %d refusals, %d stored ones, %d of the other index", l.answered.Load(), l.refused.Load(),
		len(l.published), l.others.Load())
	if l.answered.Load() == 0 || l.refused.Load() == 0 || l.others.Load() == 0 || len(l.published) == 0 {
		l.t.Error("there was nothing to check")
	}
}

// Nothing that is done to an index file while it is served makes a wrong answer or ends the worker: what changes its bytes makes its
// index unready, with a reason, until the old bytes are back; other indexes go on; and every stored query is answered
// exactly once in the end.
func TestServedFileChanges(t *testing.T) {
	ofProcesses(t)
	t.Parallel()
	rng := seeded.Rand(t)
	kinds := servedKinds(rng)
	if os.Getenv("GENIEMQ_FULL") == "" { // what happens to a file does not depend on its kind: one, by the seed
		at := rng.IntN(len(kinds))
		kinds = kinds[at : at+1]
	}
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			kind.build(t)
			servedFileChanges(t, kind)
		})
	}
}

func servedFileChanges(t *testing.T, kind *servedKind) {
	server := startServer(t)
	dir := t.TempDir()
	served := filepath.Join(dir, "served.gmq")
	pristine, same, other := kind.files[0], kind.files[1], kind.files[2]
	sh := func(script string) {
		t.Helper()
		cmd := exec.Command("sh", "-e", "-c", script)
		cmd.Env = append(os.Environ(), "SERVED="+served, "OLD="+pristine, "SAME="+same, "OTHER="+other)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
	}
	sh(`cp "$OLD" "$SERVED"`)
	people := buildFile(t, dir, "people.csv", peopleSchema, peopleData)
	args := []string{"serve", "--index", kind.name + "=" + served, "--index", people, "--nats", server.url, "--admin", "127.0.0.1:0"}
	worker := run(t, args...)
	worker.says("NATS")
	admin := worker.says("admin")
	ready := func() (string, bool) {
		resp, err := http.Get(admin + "/readyz")
		if err != nil {
			t.Fatalf("%v; the worker said:\n%s", err, worker.stderr)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return string(body), resp.StatusCode == http.StatusOK
	}
	isReady := func() {
		t.Helper()
		testkit.Eventually(t, func() error {
			if why, ok := ready(); !ok {
				return fmt.Errorf("not ready: %s", why)
			}
			return nil
		})
	}
	isReady()

	load := &servedLoad{t: t, kind: kind, published: make(map[string]string)}
	load.nc, load.js = connect(t, server.url)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var asking sync.WaitGroup
	for i := range 3 {
		asking.Go(func() { load.ask(ctx, uint64(i)) })
	}
	asking.Go(func() { load.askOther(ctx) })
	asking.Go(func() { load.publish(ctx) })
	answersOn := func() { // of the index and of the other one
		t.Helper()
		answered, others := load.answered.Load(), load.others.Load()
		testkit.Eventually(t, func() error {
			if load.answered.Load() < answered+20 || load.others.Load() < others+20 {
				return errors.New("no answers come")
			}
			return nil
		})
	}
	answersOn()

	for _, change := range []struct{ name, script string }{
		{"another of the same size", `cp "$SAME" "$SERVED"`},
		{"the same, without truncation", `dd if="$SAME" of="$SERVED" conv=notrunc status=none`},
		{"another of another size", `cp "$OTHER" "$SERVED"`},
		{"emptied", `truncate -s 0 "$SERVED"`},
		{"cut off", `truncate -s $(( $(stat -c %s "$SERVED") / 2 )) "$SERVED"`},
		{"a piece in the middle", `dd if=/dev/urandom of="$SERVED" bs=4096 count=16 seek=$(( $(stat -c %s "$SERVED") / 8192 - 8 )) conv=notrunc status=none`},
		{"another of the same size and time", `cp "$SAME" "$SERVED"; touch -r "$OLD" "$SERVED"`},
	} {
		start := time.Now()
		sh(change.script)
		var why string
		testkit.Eventually(t, func() error {
			var ok bool
			if why, ok = ready(); ok {
				return fmt.Errorf("%s: the worker says that it is ready", change.name)
			}
			return nil
		})
		t.Logf("%s: unready after %v: %s", change.name, time.Since(start).Round(time.Millisecond), strings.TrimSpace(why))
		if !strings.Contains(why, served) || strings.Contains(why, "people") || strings.Count(strings.TrimSpace(why), "\n") != 0 {
			t.Errorf("%s: the reason is %s", change.name, why)
		}
		others := load.others.Load()
		time.Sleep(time.Second) // some queries come meanwhile
		if load.others.Load() == others {
			t.Errorf("%s: the other index does not answer", change.name)
		}
		if change.name == "emptied" {
			// What the server had been asked for has come by now, and was given back. It comes to nobody again.
			time.Sleep(2 * time.Second)
			before := redeliveries(t, admin, kind.name)
			time.Sleep(3 * time.Second)
			if after := redeliveries(t, admin, kind.name); after != before {
				t.Errorf("%v deliveries were spent while nothing could be answered", after-before)
			}
		}
		if _, ok := ready(); ok {
			t.Errorf("%s: the worker says that it is ready", change.name)
		}
		sh(`cp "$OLD" "$SERVED"; touch -r "$OLD" "$SERVED"`)
		isReady()
		answersOn()
	}
	for _, change := range []struct{ name, script, said string }{
		{"touch", `touch "$SERVED"`, ""},
		{"the same bytes", `cp "$OLD" "$SERVED"`, ""},
		{"chmod", `chmod 400 "$SERVED"; chmod 600 "$SERVED"`, ""},
		{"another renamed over it", `cp "$SAME" "$SERVED.new"; mv "$SERVED.new" "$SERVED"`, "another file has the name"},
		{"removed", `rm "$SERVED"`, "was removed"},
	} {
		sh(change.script)
		isReady()
		answersOn()
		testkit.Eventually(t, func() error {
			if said := worker.stderr.String(); !strings.Contains(said, change.said) {
				return fmt.Errorf("%s: nothing is said of it:\n%s", change.name, said)
			}
			return nil
		})
		t.Logf("%s: goes on", change.name)
	}

	// Stored queries wait for a worker with a sound file.
	sh(`cp "$OLD" "$SERVED"`)
	worker.signal(syscall.SIGTERM)
	if code := worker.wait(); code != 0 {
		t.Errorf("exit code %d; it said:\n%s", code, worker.stderr)
	}
	worker = run(t, args...)
	worker.says("NATS")
	admin = worker.says("admin")
	isReady()
	answersOn()
	sh(`truncate -s 4096 "$SERVED"`)
	time.Sleep(time.Second)
	stop()
	asking.Wait()
	select {
	case <-worker.done:
		t.Fatalf("the worker has ended and said:\n%s", worker.stderr)
	default:
	}
	worker.signal(syscall.SIGTERM)
	if code := worker.wait(); code != 0 {
		t.Errorf("exit code %d; it said:\n%s", code, worker.stderr)
	}
	sh(`cp "$OTHER" "$SERVED.new"; mv "$SERVED.new" "$SERVED"`)
	worker = run(t, args...)
	worker.says("NATS")
	load.check(&running{t: t, nc: load.nc, js: load.js})
}

// redeliveries is a worker's counter of them.
func redeliveries(t *testing.T, admin, index string) float64 {
	t.Helper()
	resp, err := http.Get(admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(body) {
		var n float64
		if _, err := fmt.Sscanf(string(line), `geniemq_redelivered_total{index="`+index+`"} %g`, &n); err == nil {
			return n
		}
	}
	t.Fatal("there is no geniemq_redelivered_total")
	return 0
}
