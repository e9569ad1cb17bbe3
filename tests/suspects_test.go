package tests

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/wire"
)

// mortals is a supervisor: it keeps one worker running, whatever ends it, until stop.
type mortals struct {
	t    *testing.T
	args []string

	mu      sync.Mutex
	current *process
	all     []*process
	stopped bool
	ended   chan struct{}
}

// supervise starts a worker that dies of marked queries, and starts it again whenever it ends.
func supervise(t *testing.T, args ...string) *mortals {
	t.Helper()
	m := &mortals{t: t, args: args, ended: make(chan struct{})}
	m.start()
	go func() {
		defer close(m.ended)
		for {
			m.mu.Lock()
			p := m.current
			m.mu.Unlock()
			<-p.done
			m.mu.Lock()
			stopped := m.stopped
			m.mu.Unlock()
			if stopped {
				return
			}
			m.start()
		}
	}()
	t.Cleanup(m.stop)
	return m
}

func (m *mortals) start() {
	p := startMortal(m.t, m.args...)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current, m.all = p, append(m.all, p)
	if m.stopped {
		p.signal(syscall.SIGKILL)
	}
}

func (m *mortals) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current.signal(syscall.SIGKILL)
}

// lives are all workers that there were.
func (m *mortals) lives() []*process {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.all)
}

// running says whether there is a worker.
func (m *mortals) running() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.current.running()
}

// stop ends the worker, and waits for that.
func (m *mortals) stop() {
	m.mu.Lock()
	m.stopped = true
	m.current.signal(syscall.SIGTERM)
	m.mu.Unlock()
	<-m.ended
	if m.said("DATA RACE") { // where the tests are built to find them
		m.t.Error("a worker had a data race")
	}
}

// died is how often a worker has died of a marked query.
func (m *mortals) died() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, p := range m.all {
		if _, ok := p.stderr.find("dying"); ok || strings.Contains(p.stderr.String(), "SIGSEGV") {
			n++
		}
	}
	return n
}

func (m *mortals) said(text string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.all {
		if strings.Contains(p.stderr.String(), text) {
			return true
		}
	}
	return false
}

// scrape reads the metrics of the worker that runs.
func (m *mortals) scrape() scraped {
	m.t.Helper()
	m.mu.Lock()
	p := m.current
	m.mu.Unlock()
	resp, err := http.Get(p.says("admin") + "/metrics")
	if err != nil {
		m.t.Fatal(err)
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		m.t.Fatal(err)
	}
	return scraped{m.t, families}
}

func mortalArgs(t *testing.T, url string, more ...string) []string {
	return append([]string{"--index", buildFile(t, t.TempDir(), "people.csv", peopleSchema, peopleData), "--nats", url,
		"--admin", "127.0.0.1:0", "--ack-wait", "1s", "--batch-size", "64"}, more...)
}

// records are the keys of the bucket, with their values.
func records(t *testing.T, js jetstream.JetStream) map[string]string {
	t.Helper()
	ctx := within(t)
	kv, err := js.KeyValue(ctx, "genie-suspects")
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	keys, err := kv.Keys(ctx)
	if errors.Is(err, jetstream.ErrNoKeysFound) {
		return found
	} else if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if entry, err := kv.Get(ctx, key); err == nil {
			found[key] = string(entry.Value())
		}
	}
	return found
}

// deadLetters are the reasons and message ids of all dead letters.
func deadLetters(t *testing.T, js jetstream.JetStream) (found []string) {
	t.Helper()
	ctx := within(t)
	s, err := js.Stream(ctx, "GENIE_DEAD")
	if err != nil {
		t.Fatal(err)
	}
	info, err := s.Info(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for seq := max(1, info.State.FirstSeq); seq <= info.State.LastSeq; seq++ {
		m, err := s.GetMsg(ctx, seq)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, m.Header.Get("Genie-Dead-Reason")+" "+m.Header.Get("Genie-Dead-Msg-Id"))
	}
	return found
}

// resultsByID are the answers of the result stream, by the message id of the query.
func resultsByID(t *testing.T, js jetstream.JetStream) map[string][]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	s, err := js.Stream(ctx, "GENIE_RESULTS")
	if err != nil {
		t.Fatal(err)
	}
	info, err := s.Info(ctx)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string][]string)
	for seq := max(1, info.State.FirstSeq); seq <= info.State.LastSeq; seq++ {
		m, err := s.GetMsg(ctx, seq)
		if err != nil {
			t.Fatal(err)
		}
		id := strings.TrimSuffix(strings.TrimPrefix(m.Header.Get("Nats-Msg-Id"), "people."), ".1")
		a, err := wire.DecodeAnswer(wire.JSON, m.Data)
		if err != nil {
			t.Fatalf("%v in %s", err, m.Data)
		}
		var all []string
		for i := range a.Results {
			all = append(all, keys(&a.Results[i]))
		}
		found[id] = append(found[id], strings.Join(all, "; "))
	}
	return found
}

// emptied waits until the query stream is empty.
func emptied(t *testing.T, js jetstream.JetStream, patience time.Duration) {
	t.Helper()
	down(t, js, 0, patience)
}

// down waits until the query stream has no more than so many messages.
func down(t *testing.T, js jetstream.JetStream, most uint64, patience time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		s, err := js.Stream(ctx, "GENIE_QUERIES")
		if err == nil && s.CachedInfo().State.Msgs <= most {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("queries are left: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// suspected has all n messages of the stream delivered so often that the next delivery makes them suspects, as they are after
// workers were lost that had them.
func suspected(t *testing.T, js jetstream.JetStream, n int) {
	t.Helper()
	ctx := within(t)
	durable, err := js.Consumer(ctx, "GENIE_QUERIES", "geniemq-people")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		for got := 0; got < n; {
			batch, err := durable.Fetch(min(n-got, 1000), jetstream.FetchMaxWait(time.Second))
			if err != nil {
				t.Fatal(err)
			}
			for m := range batch.Messages() {
				got++
				if err := m.NakWithDelay(2 * time.Second); err != nil { // after all had their turn
					t.Fatal(err)
				}
			}
			if ctx.Err() != nil {
				t.Fatalf("%d of %d messages were delivered, %v", got, n, batch.Error())
			}
		}
	}
}

// prepared has the streams and the durable made by a worker that has ended.
func prepared(t *testing.T, args []string, url string) (*running, []string) {
	t.Helper()
	worker := startMortal(t, args...)
	nc, js := connect(t, url)
	testkit.Eventually(t, func() error { _, err := js.Consumer(t.Context(), "GENIE_QUERIES", "geniemq-people"); return err })
	worker.says("NATS")
	worker.signal(syscall.SIGTERM)
	worker.wait()
	return &running{t: t, nc: nc, js: js}, args
}

// publishAll publishes messages with the ids m0, m1, ...
func (r *running) publishAll(n int, body func(i int) string) {
	r.t.Helper()
	for first := 0; first < n; first += 1000 {
		var acks []jetstream.PubAckFuture
		for i := first; i < min(n, first+1000); i++ {
			ack, err := r.js.PublishMsgAsync(message("genie.query.people", body(i), "Nats-Msg-Id", fmt.Sprintf("m%d", i)))
			if err != nil {
				r.t.Fatal(err)
			}
			acks = append(acks, ack)
		}
		for _, ack := range acks {
			select {
			case <-ack.Ok():
			case err := <-ack.Err():
				r.t.Fatal(err)
			case <-within(r.t).Done():
				r.t.Fatal("a publish is not acknowledged")
			}
		}
	}
}

// One message among thousands of suspects kills its worker whenever it is run, and the worker is killed besides, ten times. The
// message is given up, and it alone; all others are answered, once and rightly.
func TestKillersAmongThousands(t *testing.T) {
	t.Parallel()
	messages := 8192
	if testing.Short() {
		messages = 1000
	}
	rng := seeded.Rand(t)
	server := startServer(t)
	r, args := prepared(t, mortalArgs(t, server.url), server.url)
	poison := rng.IntN(messages)
	r.publishAll(messages, func(i int) string {
		if i == poison {
			return marked(markKill)
		}
		return `{"row":{"age":52}}`
	})
	suspected(t, r.js, messages)
	begin := time.Now()
	workers := supervise(t, args...)
	for kill := range 10 { // each while suspects are run, as long as there are any
		left := messages - (kill+1)*messages/12 - rng.IntN(messages/12)
		testkit.Eventually(t, func() error {
			if n := r.count("GENIE_QUERIES", "genie.query.people"); n > left {
				return fmt.Errorf("%d messages are left", n)
			}
			return nil
		})
		workers.kill()
	}
	emptied(t, r.js, 4*patience)
	t.Logf("%d suspects took %v, with %d workers", messages, time.Since(begin), len(workers.lives()))
	if got, want := deadLetters(t, r.js), fmt.Sprintf("worker_lost m%d", poison); len(got) != 1 || got[0] != want {
		t.Errorf("dead letters %q, want only %s", got, want)
	}
	answers := resultsByID(t, r.js)
	for i := range messages {
		got := answers[fmt.Sprintf("m%d", i)]
		switch {
		case len(got) != 1:
			t.Errorf("m%d has %d answers", i, len(got))
		case i == poison && !strings.HasPrefix(got[0], "internal: "), i != poison && got[0] != "dan:1":
			t.Errorf("m%d is answered %s", i, got[0])
		}
	}
	if n := workers.died(); n < 1 {
		t.Error("no worker died of the message: the test shows nothing")
	}
	testkit.Eventually(t, func() error {
		if left := records(t, r.js); len(left) > 0 {
			return fmt.Errorf("records are left: %v", left)
		}
		return nil
	})
	r.works()
}

// Wherever a message kills its worker, and however many queries it has, it is given up after two lone runs.
func TestKillers(t *testing.T) {
	t.Parallel()
	batch := func(k int) string {
		queries := make([]string, 100)
		for i := range queries {
			queries[i] = `{"row":{"age":52}}`
		}
		queries[70] = marked(k)
		return `{"queries":[` + strings.Join(queries, ",") + `]}`
	}
	for name, body := range map[string]string{
		"decoding": marked(markDecode), "engine": marked(markKill), "encoding": marked(markEncode),
		"batch on the engine": batch(markKill), "batch while encoding": batch(markEncode), "lost device": marked(markGone),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startServer(t)
			nc, js := connect(t, server.url)
			workers := supervise(t, mortalArgs(t, server.url)...)
			r := &running{t: t, nc: nc, js: js}
			testkit.Eventually(t, func() error { _, err := js.KeyValue(t.Context(), "genie-suspects"); return err })
			live, err := nc.SubscribeSync("genie.result.people")
			if err != nil {
				t.Fatal(err)
			}
			nc.Flush()
			r.publish("people", body, "Nats-Msg-Id", "poison")
			for i := range 20 {
				r.publish("people", `{"row":{"age":52}}`, "Nats-Msg-Id", fmt.Sprint(i))
			}
			emptied(t, js, 2*patience)
			if got := deadLetters(t, js); len(got) != 1 || got[0] != "worker_lost poison" {
				t.Errorf("dead letters %q", got)
			}
			answers := resultsByID(t, js)
			if got := answers["poison"]; len(got) != 1 || !strings.HasPrefix(got[0], "internal: ") {
				t.Errorf("the sender was told %q", got)
			}
			for i := range 20 {
				if got := answers[fmt.Sprint(i)]; len(got) != 1 || got[0] != "dan:1" {
					t.Errorf("message %d: %q", i, got)
				}
			}
			heard := make(map[string]bool)
			for len(heard) < 21 {
				msg, err := live.NextMsgWithContext(within(t))
				if err != nil {
					t.Fatalf("a subscriber got %d of 21 answers: %v", len(heard), err)
				}
				heard[msg.Header.Get("Genie-Query-Seq")] = true
			}
			if name != "lost device" {
				if n := workers.died(); n < 5 || n > 6 { // thrice beside others, twice alone; 6: killed before it counted
					t.Errorf("workers died %d times", n)
				}
			}
			testkit.Eventually(t, func() error {
				if left := records(t, js); len(left) > 0 {
					return fmt.Errorf("records are left: %v", left)
				}
				return nil
			})
			r.works()
			if n := workers.scrape().value("geniemq_dead_total", "reason", "worker_lost"); n != 1 {
				t.Errorf("geniemq_dead_total is %v", n)
			}
		})
	}
}

// life runs a worker until it has died of a message.
func life(t *testing.T, args []string) {
	t.Helper()
	worker := startMortal(t, args...)
	worker.wait()
	if said := worker.stderr.String(); !strings.Contains(said, "dying") {
		t.Fatalf("the worker did not die of the message but said\n%s", said)
	}
}

// The records of lone runs outlive the durable, with which the broker forgets how often it delivered a message.
func TestDurableMadeAnew(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	r, args := prepared(t, mortalArgs(t, server.url), server.url)
	r.publish("people", marked(markKill), "Nats-Msg-Id", "poison")
	for lives := range 8 { // thrice beside others and once alone, of each durable
		life(t, args)
		runs := 0
		for _, value := range records(t, r.js) {
			if _, err := fmt.Sscanf(value, `{"runs":%d`, &runs); err != nil {
				t.Fatalf("%v in %s", err, value)
			}
		}
		if want := (lives + 1) / 4; runs != want {
			t.Fatalf("after %d lives %d lone runs are on record, want %d", lives+1, runs, want)
		}
		if lives == 3 {
			if err := r.js.DeleteConsumer(t.Context(), "GENIE_QUERIES", "geniemq-people"); err != nil {
				t.Fatal(err)
			}
		}
	}
	startMortal(t, args...)
	emptied(t, r.js, patience)
	if got := deadLetters(t, r.js); len(got) != 1 || got[0] != "worker_lost poison" {
		t.Errorf("dead letters %q", got)
	}
	r.works()
}

// A stream that is made anew counts from 1 again. What is on record of the old one's messages says nothing of the new one's.
func TestStreamMadeAnewWithRecords(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	r, args := prepared(t, mortalArgs(t, server.url), server.url)
	r.publish("people", marked(markKill), "Nats-Msg-Id", "poison")
	for range 5 {
		life(t, args)
	}
	if err := r.js.DeleteStream(t.Context(), "GENIE_QUERIES"); err != nil {
		t.Fatal(err)
	}
	r, args = prepared(t, args, server.url)
	if seq := r.publish("people", `{"row":{"age":52}}`, "Nats-Msg-Id", "innocent"); seq != 1 {
		t.Fatalf("the new stream begins with %d", seq)
	}
	suspected(t, r.js, 1)
	startMortal(t, args...)
	emptied(t, r.js, patience)
	if got := deadLetters(t, r.js); len(got) != 0 {
		t.Errorf("dead letters %q", got)
	}
	if got := resultsByID(t, r.js)["innocent"]; len(got) != 1 || got[0] != "dan:1" {
		t.Errorf("answered %q", got)
	}
}

// A worker that is killed during the lone run of an innocent message takes nothing with it: two such runs count only when
// none came to an end in between, and a shutdown is an end.
func TestKilledDuringLoneRun(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	r, args := prepared(t, mortalArgs(t, server.url), server.url)
	r.publish("people", marked(markSlow), "Nats-Msg-Id", "slow")
	suspected(t, r.js, 1)
	onRecord := func(want int) {
		t.Helper()
		left := records(t, r.js)
		for _, value := range left {
			if !strings.HasPrefix(value, fmt.Sprintf(`{"runs":%d`, want)) {
				t.Errorf("on record is %s, want %d runs", value, want)
			}
		}
		if len(left) != min(1, want) {
			t.Errorf("%d records, want %d", len(left), min(1, want))
		}
	}
	for _, end := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL} {
		worker := startMortal(t, append(args, "--drain-timeout", "1ms")...)
		worker.says("slow query")
		onRecord(1 + map[bool]int{true: 1}[end == syscall.SIGTERM]) // the second run of a row of two
		worker.signal(end)
		worker.wait()
		onRecord(map[syscall.Signal]int{syscall.SIGKILL: 1, syscall.SIGTERM: 0}[end])
	}
	startMortal(t, args...)
	emptied(t, r.js, patience)
	if got := deadLetters(t, r.js); len(got) != 0 {
		t.Errorf("dead letters %q", got)
	}
	if got := resultsByID(t, r.js)["slow"]; len(got) != 1 || got[0] != "ann:1" {
		t.Errorf("answered %q", got)
	}
	onRecord(0)
}

// A worker that stands still for longer than AckWait is not lost. The message runs on another one meanwhile, and neither spoils
// the other's record.
func TestStoppedDuringLoneRun(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	r, args := prepared(t, mortalArgs(t, server.url), server.url)
	r.publish("people", marked(markSlow), "Nats-Msg-Id", "slow")
	suspected(t, r.js, 1)
	first := startMortal(t, args...)
	first.says("slow query")
	first.signal(syscall.SIGSTOP)
	startMortal(t, args...).says("slow query")
	first.signal(syscall.SIGCONT) // both are at it now
	emptied(t, r.js, patience)
	testkit.Eventually(t, func() error {
		if left := records(t, r.js); len(left) > 0 {
			return fmt.Errorf("records are left: %v", left)
		}
		return nil
	})
	if got := deadLetters(t, r.js); len(got) != 0 {
		t.Errorf("dead letters %q", got)
	}
	if got := resultsByID(t, r.js)["slow"]; len(got) != 1 || got[0] != "ann:1" {
		t.Errorf("answered %q", got)
	}
}
