package tests

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/bodystore"
	"github.com/geniemq/geniemq/client"
	"github.com/geniemq/geniemq/consumer/letters"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// Workers that die while they fetch, when they have fetched, when the engine is done, when the answer is stored, and before they remove the object: every query
// is answered once, and the sweep finds all that is left.
func TestKilledWithObjects(t *testing.T) {
	ofProcesses(t)
	server := smallServer(t, `
authorization { users = [
  {user: root, password: s}
  {user: noget, password: s, permissions: {publish: {deny: ["$JS.API.STREAM.MSG.GET.OBJ_GENIE_OBJECTS"]}}}
  {user: noack, password: s, permissions: {publish: {deny: ["$JS.ACK.>"]}}}
  {user: noremove, password: s, permissions: {publish: {deny: ["$JS.API.STREAM.PURGE.OBJ_GENIE_OBJECTS"]}}}
]}`)
	as := func(user string) string { return strings.Replace(server.url, "//", "//"+user+":s@", 1) }
	file := buildFile(t, t.TempDir(), "people.csv", peopleSchema, peopleData)
	rng := seeded.Rand(t)
	_, js := connect(t, as("root"))
	c := newClient(t, as("root"), client.Options{})
	serve := func(user string) *process {
		p := startMortal(t, "--nats", as(user), "--admin", "off", "--engine", "cpu", "--index", file, "--ack-wait", "1s")
		p.says("admin")
		return p
	}
	maker := serve("root") // of streams, durables and the bucket
	maker.signal(syscall.SIGTERM)
	maker.wait()
	left := func() int {
		stream, err := js.Stream(within(t), "GENIE_QUERIES")
		if err != nil {
			t.Fatal(err)
		}
		return int(stream.CachedInfo().State.Msgs)
	}
	for _, stage := range []struct {
		name, user string
		mark       int               // the k that ends the worker
		reached    func(string) bool // or what is seen from outside when it is there
	}{
		{"fetching", "noget", 0, func(string) bool { return pending(t, js) > 0 }},
		{"fetched", "root", markDecode, nil},
		{"executing", "root", markKill, nil},
		{"executed", "root", markEncode, nil},
		{"published", "noack", 0, func(reply string) bool { return answers(t, js, reply) > 0 }},
		{"before the object is removed", "noremove", 0, func(string) bool { return left() == 0 }},
	} {
		queries, want := manyAges(rng, 3*smallPayload)
		if stage.mark > 0 {
			queries[rng.IntN(len(queries))].K = stage.mark
		}
		first := serve(stage.user)
		id := strings.ReplaceAll(stage.name, " ", "-")
		reply := "genie.result.people." + id
		if _, err := c.PublishBatch(within(t), "people", queries, client.PublishOptions{MsgID: id, Reply: reply}); err != nil {
			t.Fatal(err)
		}
		if stage.mark > 0 {
			<-first.done // it died of it
		} else {
			testkit.Until(t, stage.name, func() bool { return stage.reached(reply) })
			first.signal(syscall.SIGKILL)
			<-first.done
		}
		if n := inBucket(t, js, "GENIE_OBJECTS"); n == 0 {
			t.Errorf("%s: the object is gone already", stage.name)
		}
		second := run(t, "serve", "--nats", as("root"), "--admin", "off", "--engine", "cpu", "--index", file, "--ack-wait", "1s")
		second.says("NATS")
		testkit.Until(t, stage.name+": all is answered", func() bool { return left() == 0 })
		answeredAs(t, stage.name, storedResults(t, js, reply, len(want)), want)
		second.signal(syscall.SIGTERM)
		if code := second.wait(); code != 0 {
			t.Errorf("%s: the second worker ended with %d\n%s", stage.name, code, second.stderr)
		}
	}
	if n := inBucket(t, js, "GENIE_OBJECTS"); n == 0 {
		t.Error("no object is left of the worker that could not remove it")
	}
	swept, err := bodystore.Of(js, wire.Subjects{}).Sweep(within(t), bodystore.Sweep{Age: time.Millisecond, Letters: letters.Of(js, wire.Subjects{}).Objects})
	if err != nil || swept != 1 || inBucket(t, js, "GENIE_OBJECTS") != 0 {
		t.Errorf("%d orphans were swept, %d messages are left in the bucket, %v", swept, inBucket(t, js, "GENIE_OBJECTS"), err)
	}
}

// A query in the object store that workers do not survive is given up as any other: it runs alone, and its object stays with its dead letter. Its neighbours are answered.
func TestKillersWithObjects(t *testing.T) {
	t.Parallel()
	server := smallServer(t)
	nc, js := connect(t, server.url)
	workers := supervise(t, mortalArgs(t, server.url)...)
	r := &running{t: t, nc: nc, js: js}
	testkit.Eventually(t, func() error { _, err := js.KeyValue(t.Context(), "genie-suspects"); return err })
	testkit.Eventually(t, func() error { _, err := js.Stream(t.Context(), "OBJ_GENIE_OBJECTS"); return err })
	b := storeBody(t, js, "", marked(markKill)+strings.Repeat(" ", 2*smallPayload))
	stays := inBucket(t, js, "GENIE_OBJECTS")
	r.publish("people", "", "Nats-Msg-Id", "poison", wire.HeaderQueryObject, b.String())
	for i := range 10 {
		neighbour := storeBody(t, js, "", danQuery+strings.Repeat(" ", 2*smallPayload))
		r.publish("people", "", "Nats-Msg-Id", fmt.Sprint(i), wire.HeaderQueryObject, neighbour.String())
	}
	emptied(t, js, 2*patience)
	if got := deadLetters(t, js); len(got) != 1 || got[0] != "worker_lost poison" {
		t.Errorf("dead letters %q", got)
	}
	answers := resultsByID(t, js)
	if got := answers["poison"]; len(got) != 1 || !strings.HasPrefix(got[0], "internal: ") {
		t.Errorf("the sender was told %q", got)
	}
	for i := range 10 {
		if got := answers[fmt.Sprint(i)]; len(got) != 1 || got[0] != "dan:1" {
			t.Errorf("message %d: %q", i, got)
		}
	}
	if _, err := bodystore.Of(js, wire.Subjects{}).Fetch(within(t), "", b, nil); err != nil {
		t.Errorf("the object of the dead letter: %v", err)
	}
	workers.stop()
	// A worker may have died of it just when it was to remove another one's object.
	if _, err := bodystore.Of(js, wire.Subjects{}).Sweep(within(t), bodystore.Sweep{Age: time.Millisecond, Letters: letters.Of(js, wire.Subjects{}).Objects}); err != nil {
		t.Error(err)
	}
	if n := inBucket(t, js, "GENIE_OBJECTS"); n != stays {
		t.Errorf("%d messages are in the bucket, %d of what stays", n, stays)
	}
}

// pending is how many messages a worker has taken and not answered.
func pending(t testing.TB, js jetstream.JetStream) int {
	t.Helper()
	durable, err := js.Consumer(within(t), "GENIE_QUERIES", "geniemq-people")
	if err != nil {
		t.Fatal(err)
	}
	return durable.CachedInfo().NumAckPending
}

func answers(t testing.TB, js jetstream.JetStream, subject string) int {
	t.Helper()
	stream, err := js.Stream(within(t), "GENIE_RESULTS")
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(within(t), jetstream.WithSubjectFilter(subject))
	if err != nil {
		t.Fatal(err)
	}
	return int(info.State.Subjects[subject])
}

// A server that is killed and restarted again and again while bodies are fetched costs no query.
func TestServerRestartsDuringFetches(t *testing.T) {
	t.Parallel()
	server := smallServer(t)
	r := start(t, config.Config{NATS: server.url, AckWait: 2 * time.Second}, service.Options{})
	rng := seeded.Rand(t)
	c := newClient(t, server.url, client.Options{Timeout: -1})
	const requests = 6
	var asking sync.WaitGroup
	for range requests {
		queries, want := manyAges(rng, 3*smallPayload)
		asking.Go(func() {
			results, err := c.RequestBatch(t.Context(), "people", queries)
			if err != nil {
				t.Errorf("a request: %v", err)
				return
			}
			answersAs(t, results, want)
		})
	}
	for range 3 {
		testkit.Until(t, "something is in the bucket, or all is over", func() bool {
			return inBucket(t, r.js, "GENIE_OBJECTS") > 0 || r.count("GENIE_RESULTS", "genie.result.>") > 0
		})
		server.kill()
		server.start()
	}
	asking.Wait()
	r.settled()
	// What clients could not finish storing is swept.
	box := letters.Of(r.js, wire.Subjects{})
	testkit.Eventually(t, func() error {
		if _, err := bodystore.Of(r.js, wire.Subjects{}).Sweep(within(t), bodystore.Sweep{Age: time.Millisecond, Letters: box.Objects}); err != nil {
			return err
		}
		if n := inBucket(t, r.js, "GENIE_OBJECTS"); n > 0 {
			return fmt.Errorf("%d messages are left in the bucket", n)
		}
		return nil
	})
	r.works()
}

func answersAs(t testing.TB, results []wire.Result, want []string) {
	for i := range want {
		if i >= len(results) || keys(&results[i]) != want[i] {
			t.Errorf("query %d of %d is not answered %q", i, len(results), want[i])
			return
		}
	}
}

// However many large bodies are asked for at once, and though no answer gets out, a worker holds as many as its budget says.
func TestMemoryOfObjectsIsBounded(t *testing.T) {
	ofProcesses(t)
	const budget = 128 // MiB
	const most = 2*budget + 100
	server := smallServer(t)
	file := buildFile(t, t.TempDir(), "people.csv", peopleSchema, peopleData)
	makeStreams(t, server.url, []config.IndexSource{{Path: file}})
	_, js := connect(t, server.url)
	limit := func(messages int64) {
		t.Helper()
		stream, err := js.Stream(within(t), "GENIE_RESULTS")
		if err != nil {
			t.Fatal(err)
		}
		changed := stream.CachedInfo().Config
		changed.MaxMsgs = messages
		if _, err := js.UpdateStream(within(t), changed); err != nil {
			t.Fatal(err)
		}
	}
	limit(1)
	if _, err := js.Publish(within(t), "genie.result.people.full", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	blank := `{"k":1,"row":{"age":52}` + strings.Repeat(" ", 8<<20-len(`{"k":1,"row":{"age":52}}`)) + `}`
	const messages = 64 // of which all would be more than there may be
	for i := range messages {
		m := message("genie.query.people", "", wire.HeaderQueryObject, storeBody(t, js, "", blank).String(), wire.HeaderReply, fmt.Sprint("genie.result.people.", i))
		if _, err := js.PublishMsg(within(t), m); err != nil {
			t.Fatal(err)
		}
	}
	worker := run(t, "serve", "--nats", server.url, "--admin", "127.0.0.1:0", "--engine", "cpu", "--memory", fmt.Sprint(budget, "MiB"), "--index", file)
	memory := watchMemory(t, worker)
	admin := worker.says("admin")
	const held = "8.388608e+06" // one body: of an eighth of the budget one who waits leaves room for others
	testkit.Until(t, "bodies wait for memory, and answers for room", func() bool {
		page := scrapeOf(t, admin)
		return strings.Contains(page, `geniemq_memory_used_bytes{account="objects"} `+held) && !strings.Contains(page, `geniemq_memory_waiting{account="objects"} 0`)
	})
	limit(-1)
	for i := range messages {
		if got := keys(result(t, streamMessage(t, js, "GENIE_RESULTS", fmt.Sprint("genie.result.people.", i), 1).Data)); got != "dan:1" {
			t.Fatalf("message %d is answered %s", i, got)
		}
	}
	noObjects(t, js, "GENIE_OBJECTS")
	_, peak := memory.state()
	t.Logf("%d bodies of 8 MiB took a worker with a budget of %d MiB to %d MiB", messages, budget, peak)
	if peak > most {
		t.Errorf("the worker took %d MiB, of a budget of %d", peak, budget)
	}
}

// scrapeOf is what a worker's /metrics says.
func scrapeOf(t testing.TB, admin string) string {
	t.Helper()
	resp, err := http.Get(admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
