package tests

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// Messages of a few KB that ask for minutes or hours of comparing texts: everybody else must be answered as if they were not
// there. GENIEMQ_BINARY names another command to be measured, and GENIEMQ_HOSTILE_SECONDS for how long.
//
//	go test ./tests -run HostileWork -v

// hostileWorker is a worker under test.
type hostileWorker struct {
	*process
	nc    *nats.Conn
	js    jetstream.JetStream
	admin string
	calm  *hostileWorker // another one, of the same indexes, which nobody disturbs: what takes long there is the machine's doing. nil: there is none
}

func startHostileWorker(t *testing.T, indexes ...string) *hostileWorker {
	t.Helper()
	port, admin := freePort(t), freePort(t)
	w := &hostileWorker{admin: fmt.Sprintf("http://127.0.0.1:%d", admin)}
	args := []string{"serve", "--engine", "cpu", "--admin", strings.TrimPrefix(w.admin, "http://"),
		"--nats-listen", fmt.Sprintf("127.0.0.1:%d", port), "--data-dir", t.TempDir()}
	for _, path := range indexes {
		args = append(args, "--index", path)
	}
	t.Setenv("GENIEMQ_CERTIFY_LIMIT", "1000000000000000") // the bound that is not under test
	w.process = run(t, args...)
	w.says("NATS")
	w.nc, w.js = connect(t, fmt.Sprintf("nats://127.0.0.1:%d", port))
	testkit.Eventually(t, func() error { return w.ready() })
	return w
}

// ready is nil when the worker says so.
func (w *hostileWorker) ready() error {
	response, err := http.Get(w.admin + "/readyz")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(response.Body)
		return fmt.Errorf("readyz: %s: %s", response.Status, body)
	}
	return nil
}

// times are how long answers took.
type times []time.Duration

func (l times) at(share float64) time.Duration {
	l = slices.Clone(l)
	slices.Sort(l)
	return l[min(len(l)-1, int(share*float64(len(l))))]
}

func (l times) String() string {
	return fmt.Sprintf("%d answers, p50 %v, p99 %v, max %v", len(l), l.at(.5).Round(10*time.Microsecond), l.at(.99).Round(10*time.Microsecond), l.at(1).Round(10*time.Microsecond))
}

// ask asks a query again and again, one at a time, for so long.
func (w *hostileWorker) ask(index, query string, long time.Duration) (l times) {
	const most = 30 * time.Second // for one answer: a query that takes it has failed
	for end := time.Now().Add(long); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		start := time.Now()
		reply, err := w.nc.Request("genie.search."+index, []byte(query), most)
		l = append(l, time.Since(start))
		if err != nil || reply.Header.Get("Nats-Service-Error-Code") != "" {
			w.t.Errorf("%s: %v after %v", index, err, l[len(l)-1])
			return l
		}
	}
	return l
}

// asides are the queries of others.
type aside struct{ name, index, query string }

// beside starts another worker of the same indexes, which is not disturbed.
func (w *hostileWorker) beside(t *testing.T, indexes ...string) *hostileWorker {
	t.Helper()
	w.calm = startHostileWorker(t, indexes...)
	return w
}

// unaffected compares how long the queries of others take while disturb has a message in work with what they take alone, and at the same time beside.
func (w *hostileWorker) unaffected(t *testing.T, others []aside, disturb func()) {
	long := 4 * time.Second
	if text := os.Getenv("GENIEMQ_HOSTILE_SECONDS"); text != "" {
		long, _ = time.ParseDuration(text + "s")
	}
	alone := make([]times, len(others))
	for i, o := range others {
		w.calm.ask(o.index, o.query, long/8)
		w.ask(o.index, o.query, long/8) // warm
		alone[i] = w.ask(o.index, o.query, long)
	}
	disturb()
	var unready, watched atomic.Int64
	var why atomic.Value
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(50 * time.Millisecond):
			}
			watched.Add(1)
			if err := w.ready(); err != nil && w.calm.ready() == nil {
				unready.Add(1)
				why.Store(err)
			}
		}
	}()
	time.Sleep(time.Second)
	for i, o := range others {
		besides := make(chan times, 1)
		go func() { besides <- w.calm.ask(o.index, o.query, long) }()
		during := w.ask(o.index, o.query, long)
		calm := <-besides
		t.Logf("%s, alone:  %v", o.name, alone[i])
		t.Logf("%s, during: %v", o.name, during)
		t.Logf("%s, beside: %v", o.name, calm)
		// 3 times is what is wanted where nothing else runs. Here much else may; what fails takes seconds.
		if limit := 5*max(alone[i].at(.99), calm.at(.99)) + 50*time.Millisecond; during.at(.99) > limit {
			t.Errorf("%s: p99 %v, %v without the message, %v beside it", o.name, during.at(.99), alone[i].at(.99), calm.at(.99))
		}
	}
	// A busy machine lets a server, or a worker, stand still for a moment. What a message that takes minutes brings about, it does until its end.
	if n, looks := unready.Load(), watched.Load(); n > looks/20 {
		t.Errorf("the worker was not ready at %d of %d looks, where another one was: %v", n, looks, why.Load())
	}
}

// pendingOf is how many messages a stream holds.
func (w *hostileWorker) pendingOf(t *testing.T, stream string) int {
	t.Helper()
	s, err := w.js.Stream(within(t), stream)
	if err != nil {
		t.Fatal(err)
	}
	return int(s.CachedInfo().State.Msgs)
}

const longSchema = "name: long\nkind: sequences\ncolumns: [{name: text, type: text}]\n"

// longTexts are 4,000 strings of 200 to 2,000 characters, and one of 60,000 to compare with all of them.
func longTexts(t *testing.T) (path, first, long string) {
	rng := seeded.Rand(t)
	text := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte('a' + rng.IntN(26))
		}
		return string(b)
	}
	var all []string
	for range 4000 {
		all = append(all, text(200+rng.IntN(1801)))
	}
	return buildFile(t, t.TempDir(), "long.txt", longSchema, strings.Join(all, "\n")+"\n"), all[0], text(60_000)
}

func TestHostileWorkLongTexts(t *testing.T) {
	ofProcesses(t)
	if testing.Short() {
		t.Skip("takes minutes: not when tests are to be short")
	}
	path, first, long := longTexts(t)
	people := buildFile(t, t.TempDir(), "people.csv", peopleSchema, peopleData)
	w := startHostileWorker(t, path, people).beside(t, path, people)
	query := fmt.Sprintf(`{"k":1000,"certify":true,"text":%q}`, long)
	message := `{"queries":[` + strings.TrimSuffix(strings.Repeat(query+",", 120), ",") + `]}`
	others := []aside{
		{"another index", "people", `{"row":{"sex":"Male"},"k":2}`},
		{"the same index", "long", fmt.Sprintf(`{"k":3,"text":%q}`, first[:40])},
	}
	w.unaffected(t, others, func() {
		if _, err := w.js.Publish(within(t), "genie.query.long", []byte(message)); err != nil {
			t.Fatal(err)
		}
	})

	// The time of a query is up when it is, whatever it is about.
	start := time.Now()
	reply, err := w.nc.Request("genie.search.long", []byte(`{"timeout_ms":500,`+query[1:]), patience)
	took := time.Since(start)
	if err != nil || !strings.Contains(string(reply.Data), "deadline_exceeded") || took < 500*time.Millisecond {
		t.Fatalf("timeout_ms 500: %v %v %.100s", took, err, reply.Data)
	}
	if t.Logf("timeout_ms 500 was answered after %v", took); took > 2500*time.Millisecond {
		t.Errorf("timeout_ms 500 was answered after %v", took)
	}

	// What cannot be answered before the process ends is given back early, and is not a dead letter.
	start = time.Now()
	w.signal(syscall.SIGTERM)
	code := w.wait()
	if t.Logf("SIGTERM took %v", time.Since(start)); code != 0 || time.Since(start) > 10*time.Second {
		t.Errorf("SIGTERM: exit code %d after %v, of 20 s:\n%s", code, time.Since(start), w.stderr)
	}
}

// What is given back at SIGTERM is with the next worker at once, and is no dead letter.
func TestHostileWorkIsGivenBack(t *testing.T) {
	ofProcesses(t)
	path, _, long := longTexts(t)
	server := startServer(t)
	message := fmt.Sprintf(`{"queries":[%s]}`, strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`{"k":1000,"text":%q},`, long), 20), ","))
	args := []string{"serve", "--engine", "cpu", "--admin", "off", "--nats", server.url, "--drain-timeout", "60s", "--index", path}
	first := run(t, args...)
	first.says("NATS")
	nc, js := connect(t, server.url)
	if _, err := js.Publish(within(t), "genie.query.long", []byte(message)); err != nil {
		t.Fatal(err)
	}
	durable, err := js.Consumer(within(t), "GENIE_QUERIES", "geniemq-long")
	if err != nil {
		t.Fatal(err)
	}
	delivered := func(times uint64) {
		t.Helper()
		testkit.Eventually(t, func() error {
			info, err := durable.Info(t.Context())
			if err == nil && info.Delivered.Consumer < times {
				err = fmt.Errorf("%d deliveries, waited for %d", info.Delivered.Consumer, times)
			}
			return err
		})
	}
	delivered(1)
	if _, err := nc.Request("genie.search.long", []byte(`{"text":"abcdefgh"}`), patience); err != nil { // it is being worked on
		t.Fatal(err)
	}
	second := run(t, args...)
	second.says("NATS")
	start := time.Now()
	first.signal(syscall.SIGTERM)
	if code := first.wait(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, first.stderr)
	}
	delivered(2)
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("the next worker has the message after %v, of 60 s to drain", took)
	} else {
		t.Logf("the next worker has the message after %v", took)
	}
	for stream, want := range map[string]uint64{"GENIE_QUERIES": 1, "GENIE_DEAD": 0, "GENIE_RESULTS": 0} {
		s, err := js.Stream(within(t), stream)
		if err != nil {
			t.Fatal(err)
		}
		if n := s.CachedInfo().State.Msgs; n != want {
			t.Errorf("%s has %d messages, want %d", stream, n, want)
		}
	}
}

// One query that would take half a minute is answered all the same, and rightly, in turns with the others.
func TestHostileWorkIsAnswered(t *testing.T) {
	ofProcesses(t)
	rng := seeded.Rand(t)
	text := func(n int) string {
		return strings.Map(func(rune) rune { return rune('a' + rng.IntN(8)) }, strings.Repeat("x", n))
	}
	var all []string
	for range 300 {
		all = append(all, text(200+rng.IntN(1800)))
	}
	long := all[7] + text(20_000)
	w := startHostileWorker(t, buildFile(t, t.TempDir(), "long.txt", longSchema, strings.Join(all, "\n")+"\n"))
	queries := []string{fmt.Sprintf(`{"k":300,"certify":true,"text":%q}`, long), fmt.Sprintf(`{"k":1,"text":%q}`, all[3])}
	want := w.request(t, "long", queries[0])
	if len(want) != 300 {
		t.Fatalf("%d hits", len(want))
	}
	for i, h := range want { // no text is nearer than its length says
		if least := len(long) - len(all[h.ID]); h.Distance < float64(least) || i > 0 && h.Distance < want[i-1].Distance {
			t.Fatalf("hit %d: object %d of %d symbols at distance %v", i, h.ID, len(all[h.ID]), h.Distance)
		}
	}
	if want[0].ID != 7 && want[0].Distance > float64(len(long)-len(all[7])) {
		t.Fatalf("the nearest is %+v", want[0])
	}
	body := `{"queries":[` + strings.Join([]string{queries[0], queries[1], queries[0], queries[1]}, ",") + `]}`
	reply, err := w.nc.Request("genie.search.long", []byte(body), patience)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Results []struct{ Hits []hostileHit }
	}
	if err := json.Unmarshal(reply.Data, &answer); err != nil || len(answer.Results) != 4 {
		t.Fatalf("%v: %.200s", err, reply.Data)
	}
	for i, r := range answer.Results {
		if i%2 == 0 && !slices.Equal(r.Hits, want) || i%2 == 1 && (len(r.Hits) != 1 || r.Hits[0].ID != 3) {
			t.Errorf("result %d of a message differs from the query alone: %d hits", i, len(r.Hits))
		}
	}
}

type hostileHit struct {
	ID       uint32
	Count    uint32
	Distance float64
}

func (w *hostileWorker) request(t *testing.T, index, query string) []hostileHit {
	t.Helper()
	reply, err := w.nc.Request("genie.search."+index, []byte(query), patience)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct{ Hits []hostileHit }
	if err := json.Unmarshal(reply.Data, &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Hits
}

func TestHostileWorkManyQueries(t *testing.T) {
	ofProcesses(t)
	if testing.Short() {
		t.Skip("takes minutes: not when tests are to be short")
	}
	words := lines(t, data(t, "words", "american-english-insane.gz"))
	dir := t.TempDir()
	files := []string{buildFile(t, dir, "words.txt", wordsSchema, strings.Join(words, "\n")+"\n"), buildFile(t, dir, "people.csv", peopleSchema, peopleData)}
	w := startHostileWorker(t, files...).beside(t, files...)
	rng := seeded.Rand(t)
	var queries []string
	for range 60_000 {
		b := make([]byte, 10)
		for i := range b {
			b[i] = byte('a' + rng.IntN(26))
		}
		queries = append(queries, fmt.Sprintf(`{"certify":true,"text":"%s"}`, b))
	}
	others := []aside{
		{"the same index", "words", `{"text":"recieving"}`},
		{"the same index, certified", "words", `{"text":"recieving","certify":true,"k":3}`},
		{"another index", "people", `{"row":{"sex":"Male"},"k":2}`},
	}
	w.unaffected(t, others, func() {
		if _, err := w.js.Publish(within(t), "genie.query.words", []byte(`{"queries":[`+strings.Join(queries, ",")+`]}`)); err != nil {
			t.Fatal(err)
		}
	})
	// A stored message that comes after it is answered before it.
	if _, err := w.js.PublishMsg(within(t), message("genie.query.words", `{"text":"recieving"}`, "Genie-Reply", "genie.result.words.other")); err != nil {
		t.Fatal(err)
	}
	streamMessage(t, w.js, "GENIE_RESULTS", "genie.result.words.other", 1)
	testkit.Eventually(t, func() error { // the acknowledgement follows the answer
		if n := w.pendingOf(t, "GENIE_QUERIES"); n != 1 {
			return fmt.Errorf("%d messages wait, the large one should", n)
		}
		return nil
	})
}

// A text with certify that may take more work than an operator allows is refused, and told what would do.
func TestCertifyLimit(t *testing.T) {
	ofProcesses(t)
	t.Setenv("GENIEMQ_CERTIFY_LIMIT", "1000")
	port := freePort(t)
	p := run(t, "serve", "--engine", "cpu", "--admin", "off", "--nats-listen", fmt.Sprintf("127.0.0.1:%d", port), "--data-dir", t.TempDir(),
		"--index", buildFile(t, t.TempDir(), "words.txt", wordsSchema, wordsData))
	p.says("NATS")
	nc, _ := connect(t, fmt.Sprintf("nats://127.0.0.1:%d", port))
	bytes := len(wordsData) - strings.Count(wordsData, "\n")
	most := 1000 / bytes
	for _, c := range []struct {
		text    string
		certify bool
		refused bool
	}{
		{strings.Repeat("é", most), true, false}, {strings.Repeat("é", most+1), true, true}, {strings.Repeat("é", 1000), false, false},
	} {
		reply, err := nc.Request("genie.search.words", fmt.Appendf(nil, `{"text":%q,"certify":%v}`, c.text, c.certify), patience)
		if err != nil {
			t.Fatal(err)
		}
		refused := strings.Contains(string(reply.Data), `"too_large"`) && strings.Contains(string(reply.Data), "certify-limit") &&
			strings.Contains(string(reply.Data), fmt.Sprintf("at most %d symbols", most))
		if refused != c.refused {
			t.Errorf("%d symbols, certify %v: %s", len([]rune(c.text)), c.certify, reply.Data)
		}
	}
}
