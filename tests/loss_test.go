package tests

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/client"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/wire"
)

// crowd is a random table and what any query of a certain form must find in it.
type crowd struct {
	rows []crowdRow
}

type crowdRow struct {
	age  int
	city string
	tags []string
}

func newCrowd(rng *rand.Rand, n int) *crowd {
	c := &crowd{rows: make([]crowdRow, n)}
	for i := range c.rows {
		r := &c.rows[i]
		r.age, r.city = rng.IntN(100), fmt.Sprintf("city%d", rng.IntN(40))
		for range rng.IntN(4) {
			r.tags = append(r.tags, fmt.Sprintf("tag%d", rng.IntN(20)))
		}
	}
	return c
}

const crowdSchema = `
name: crowd
kind: rows
columns:
  - {name: age, type: number, edges: exact}
  - {name: city, type: category}
  - {name: tags, type: category, split: "|"}
`

func (c *crowd) csv() string {
	var b strings.Builder
	b.WriteString("age,city,tags\n")
	for _, r := range c.rows {
		fmt.Fprintf(&b, "%d,%s,%s\n", r.age, r.city, strings.Join(r.tags, "|"))
	}
	return b.String()
}

// crowdQuery is a query and its answer by brute force, "id:count" in order.
type crowdQuery struct {
	query wire.Query
	want  string
}

func (c *crowd) query(rng *rand.Rand, id string) crowdQuery {
	lo := rng.IntN(100)
	hi, city, tag := lo+rng.IntN(20), fmt.Sprintf("city%d", rng.IntN(40)), fmt.Sprintf("tag%d", rng.IntN(20))
	k, weight := 1+rng.IntN(20), 1+rng.IntN(3)
	type hit struct{ id, count int }
	var hits []hit
	for i, r := range c.rows {
		count := 0
		if lo <= r.age && r.age <= hi {
			count++
		}
		if r.city == city {
			count += weight
		}
		for _, t := range r.tags { // repeats count each
			if t == tag {
				count++
			}
		}
		if count > 0 {
			hits = append(hits, hit{i, count})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return b.count - a.count })
	var want []string
	for _, h := range hits[:min(k, len(hits))] {
		want = append(want, fmt.Sprintf("%d:%d", h.id, h.count))
	}
	q := wire.Query{ID: id, K: k, Row: client.Conditions(client.Between("age", lo, hi),
		client.Weighted(uint32(weight), client.Equal("city", city)), client.Equal("tags", tag))}
	return crowdQuery{q, strings.Join(want, " ")}
}

// Nothing is lost and nothing is doubled when the worker is killed again and again: every query whose publish was
// acknowledged is answered in the result stream exactly once, and correctly. In one form the worker's embedded server
// dies with it, in the other the server is a process of its own.
func TestKilledWorker(t *testing.T) {
	ofProcesses(t)
	t.Parallel()
	t.Run("embedded server", func(t *testing.T) {
		t.Parallel()
		port := freePort(t)
		killedWorker(t, fmt.Sprintf("nats://127.0.0.1:%d", port),
			"--nats-listen", fmt.Sprintf("127.0.0.1:%d", port), "--data-dir", t.TempDir())
	})
	t.Run("external server", func(t *testing.T) {
		t.Parallel()
		server := startServer(t)
		killedWorker(t, server.url, "--nats", server.url)
	})
}

func killedWorker(t *testing.T, url string, args ...string) {
	const kills, perKill = 20, 95
	const total = 2000
	rng := seeded.Rand(t)
	table := newCrowd(rng, 3000)
	args = append([]string{"serve", "--index", buildFile(t, t.TempDir(), "crowd.csv", crowdSchema, table.csv()),
		"--admin", "off", "--ack-wait", "1s", "--batch-size", "16"}, args...)
	queries := make([]crowdQuery, total)
	for i := range queries {
		queries[i] = table.query(rng, fmt.Sprintf("q%d", i))
	}

	worker := run(t, args...)
	worker.says("NATS")
	_, js := connect(t, url)
	// The publisher goes on whatever happens to the server: it repeats a publish until it is acknowledged.
	release := make(chan int, kills+1)
	published := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	go func() {
		next := 0
		for upTo := range release {
			for ; next < upTo; next++ {
				if err := publishUntilAcked(ctx, js, queries[next]); err != nil {
					published <- err
					return
				}
			}
		}
		published <- nil
	}()
	for kill := range kills {
		release <- (kill + 1) * perKill
		time.Sleep(time.Duration(rng.IntN(150)) * time.Millisecond)
		worker.signal(syscall.SIGKILL)
		worker.wait()
		worker = run(t, args...)
		worker.says("NATS")
	}
	release <- total
	close(release)
	if err := <-published; err != nil {
		t.Fatal(err)
	}
	checkAnswers(t, js, "crowd", queries)

	worker.signal(syscall.SIGTERM)
	if code := worker.wait(); code != 0 {
		t.Errorf("exit code %d after SIGTERM; it said:\n%s", code, worker.stderr)
	}
}

func publishUntilAcked(ctx context.Context, js jetstream.JetStream, q crowdQuery) error {
	msg := message("genie.query.crowd", string(wire.AppendQuery(nil, wire.JSON, &q.query)), "Nats-Msg-Id", q.query.ID)
	for {
		attempt, cancel := context.WithTimeout(ctx, time.Second)
		_, err := js.PublishMsg(attempt, msg)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("publishing %s: %w", q.query.ID, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// checkAnswers waits until every query has left the stream and compares the result stream with what must be in it.
func checkAnswers(t *testing.T, js jetstream.JetStream, index string, queries []crowdQuery) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	waiting, err := js.Stream(ctx, "GENIE_QUERIES")
	if err != nil {
		t.Fatal(err)
	}
	for {
		info, err := waiting.Info(ctx)
		if err != nil {
			t.Fatalf("%v; the queries were not all answered", err)
		}
		if info.State.Msgs == 0 {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	results, err := js.Stream(ctx, "GENIE_RESULTS")
	if err != nil {
		t.Fatal(err)
	}
	answers := make(map[string]int)
	for next := uint64(1); ; {
		m, err := results.GetMsg(ctx, next, jetstream.WithGetMsgSubject("genie.result."+index))
		if err != nil {
			break
		}
		next = m.Sequence + 1
		id := m.Header.Get("Genie-Query-Id")
		answers[id]++
		var n int
		if _, err := fmt.Sscanf(id, "q%d", &n); err != nil || n >= len(queries) {
			t.Errorf("an answer to %q, which nobody asked", id)
			continue
		}
		res := result(t, m.Data)
		if got := keys(res); got != queries[n].want {
			query, _ := json.Marshal(queries[n].query)
			t.Errorf("%s: %s\n got %s\nwant %s", id, query, got, queries[n].want)
		}
	}
	for i := range queries {
		if n := answers[queries[i].query.ID]; n != 1 {
			t.Errorf("%s was answered %d times", queries[i].query.ID, n)
		}
	}
}

// SIGTERM under load: the worker answers what it has pulled or gives it back, ends with 0, and loses nothing.
func TestDrain(t *testing.T) {
	ofProcesses(t)
	t.Parallel()
	server := startServer(t)
	rng := seeded.Rand(t)
	table := newCrowd(rng, 3000)
	args := []string{"serve", "--index", buildFile(t, t.TempDir(), "crowd.csv", crowdSchema, table.csv()), "--nats", server.url,
		"--admin", "off", "--batch-size", "8", "--ack-wait", "10h"}
	queries := make([]crowdQuery, 1500)
	worker := run(t, args...)
	worker.says("NATS")
	_, js := connect(t, server.url)
	for i := range queries {
		queries[i] = table.query(rng, fmt.Sprintf("q%d", i))
		if err := publishUntilAcked(t.Context(), js, queries[i]); err != nil {
			t.Fatal(err)
		}
		if i%300 == 299 { // the next worker takes over while the first is shutting down
			worker.signal(syscall.SIGTERM)
			old := worker
			worker = run(t, args...)
			worker.says("NATS")
			if code := old.wait(); code != 0 {
				t.Errorf("exit code %d; it said:\n%s", code, old.stderr)
			}
		}
	}
	checkAnswers(t, js, "crowd", queries)
	// What is given back or answered by a worker that shuts down is not left to time out, which would take ten hours.
	testkit.Until(t, "no message is with a worker that has ended", func() bool {
		durable, err := js.Consumer(context.WithoutCancel(t.Context()), "GENIE_QUERIES", "geniemq-crowd")
		if err != nil {
			t.Fatal(err)
		}
		return durable.CachedInfo().NumAckPending == 0
	})
}

// A second signal ends the worker at once, whatever it is doing. One that asks for messages waits for a server that stands still. What it has asked for may just have ended: then it is done
// before the signal comes, and another one is tried.
func TestSecondSignal(t *testing.T) {
	ofProcesses(t)
	t.Parallel()
	server := startServer(t)
	_, js := connect(t, server.url)
	file := buildFile(t, t.TempDir(), "people.csv", peopleSchema, peopleData)
	const graceful, atOnce, tries = 0, 1, 20
	for range tries {
		worker := run(t, "serve", "--index", file, "--nats", server.url, "--admin", "off", "--drain-timeout", "10m")
		worker.says("NATS")
		testkit.Until(t, "it asks for messages", func() bool {
			durable, err := js.Consumer(within(t), "GENIE_QUERIES", "geniemq-people")
			return err == nil && durable.CachedInfo().NumWaiting > 0
		})
		server.cmd.Process.Signal(syscall.SIGSTOP)
		worker.signal(syscall.SIGTERM)
		worker.says("stopping")
		worker.signal(syscall.SIGTERM)
		code := worker.wait()
		server.cmd.Process.Signal(syscall.SIGCONT)
		if code == atOnce {
			return
		}
		if code != graceful {
			t.Fatalf("exit code %d", code)
		}
	}
	t.Errorf("none of %d workers ended by a second signal", tries)
}
