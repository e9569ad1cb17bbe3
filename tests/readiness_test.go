package tests

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// promptly is how long a service may go on saying that it is ready when it is not: 2 s are promised, and these tests allow five
// times that, because machines that run tests are busy.
const promptly = 10 * time.Second

// turnsUnready waits until the service says that it is not ready, for a reason with this word.
func turnsUnready(t testing.TB, r *running, word string) {
	t.Helper()
	start := time.Now()
	for {
		err := unready(r, word)
		took := time.Since(start)
		if err == nil {
			t.Logf("unready after %v: %v", took.Round(time.Millisecond), r.ready())
			return
		}
		if took > promptly {
			t.Fatalf("after %v: %v", took, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// What is taken away from a service shows in its readiness at once, with the reason, also when nothing is asked; and it is ready
// again by itself when it is put right.
func TestReadiness(t *testing.T) {
	t.Parallel()
	prepare := func(t *testing.T) *running {
		t.Parallel()
		r := start(t, config.Config{Indexes: []config.IndexSource{{Path: buildFile(t, t.TempDir(), "people.csv", peopleSchema, peopleData)}}},
			service.Options{})
		testkit.Eventually(t, r.ready)
		return r
	}
	answers := func(t *testing.T, r *running) {
		t.Helper()
		testkit.Eventually(t, r.ready)
		inbox, err := r.nc.SubscribeSync(r.nc.NewInbox())
		if err != nil {
			t.Fatal(err)
		}
		r.publish("people", `{"row":{"age":52}}`, "Genie-Reply", inbox.Subject)
		msg, err := inbox.NextMsg(patience)
		if err != nil {
			t.Fatal(err)
		}
		if got := keys(result(t, msg.Data)); got != "dan:1" {
			t.Errorf("got %s", got)
		}
		r.settled()
	}
	config := func(t *testing.T, r *running, name string) jetstream.StreamConfig {
		t.Helper()
		s, err := r.js.Stream(within(t), name)
		if err != nil {
			t.Fatal(err)
		}
		return s.CachedInfo().Config
	}
	for _, name := range []string{"GENIE_RESULTS", "GENIE_QUERIES"} {
		t.Run(name+" is deleted", func(t *testing.T) {
			r := prepare(t)
			cfg := config(t, r, name)
			if err := r.js.DeleteStream(within(t), name); err != nil {
				t.Fatal(err)
			}
			turnsUnready(t, r, name+" does not exist")
			if _, err := r.js.CreateStream(within(t), cfg); err != nil {
				t.Fatal(err)
			}
			answers(t, r)
		})
	}
	t.Run("the result stream does not take results", func(t *testing.T) {
		r := prepare(t)
		cfg := config(t, r, "GENIE_RESULTS")
		other := cfg
		other.Subjects = []string{"genie.result.others.>"}
		if _, err := r.js.UpdateStream(within(t), other); err != nil {
			t.Fatal(err)
		}
		turnsUnready(t, r, "GENIE_RESULTS does not take genie.result.people")
		if _, err := r.js.UpdateStream(within(t), cfg); err != nil {
			t.Fatal(err)
		}
		answers(t, r)
	})
	t.Run("the durable is paused", func(t *testing.T) {
		r := prepare(t)
		if _, err := r.js.PauseConsumer(within(t), "GENIE_QUERIES", "geniemq-people", time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		r.publish("people", `{"row":{"age":30}}`)
		turnsUnready(t, r, "the durable geniemq-people is paused")
		if _, err := r.js.ResumeConsumer(within(t), "GENIE_QUERIES", "geniemq-people"); err != nil {
			t.Fatal(err)
		}
		answers(t, r)
	})
	// A durable that is deleted is made again, unless something is in its place.
	t.Run("the durable is deleted", func(t *testing.T) {
		r := prepare(t)
		s, err := r.js.Stream(within(t), "GENIE_QUERIES")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.DeleteConsumer(within(t), "geniemq-people"); err != nil {
			t.Fatal(err)
		}
		answers(t, r)
		var made error
		testkit.Eventually(t, func() error { // the service is fast
			if err := s.DeleteConsumer(within(t), "geniemq-people"); err != nil {
				return err
			}
			_, made = s.CreateConsumer(within(t), jetstream.ConsumerConfig{Durable: "all", AckPolicy: jetstream.AckExplicitPolicy})
			return made
		})
		turnsUnready(t, r, "another consumer of the work queue")
		if err := s.DeleteConsumer(within(t), "all"); err != nil {
			t.Fatal(err)
		}
		answers(t, r)
	})
	t.Run("results must be smaller", func(t *testing.T) {
		r := prepare(t)
		cfg := config(t, r, "GENIE_RESULTS")
		small := cfg
		small.MaxMsgSize = 800
		if _, err := r.js.UpdateStream(within(t), small); err != nil {
			t.Fatal(err)
		}
		turnsUnready(t, r, "max_msg_size of stream GENIE_RESULTS was lowered to 800")
		// From now on the size of an answer is decided before it is published: all of it arrives, in parts, and whoever listens
		// sees each part once.
		seen := watchAnswers(t, r)
		r.publish("people", `{"queries":[`+strings.Repeat(`{"row":{"sex":"Female"}},`, 9)+`{"row":{"sex":"Male"}}]}`)
		r.settled()
		results := 0
		for n := 1; results < 10; n++ {
			a, err := wire.DecodeAnswer(wire.JSON, r.stored("genie.result.people", n).Data)
			if err != nil {
				t.Fatal(err)
			}
			for i := range a.Results {
				if want := map[bool]string{false: "ann:1 cyd:1 eve:1", true: "bob:1 dan:1"}[results == 9]; keys(&a.Results[i]) != want {
					t.Errorf("result %d: %s", results, keys(&a.Results[i]))
				}
				results++
			}
		}
		seen.once(t)
		if _, err := r.js.UpdateStream(within(t), cfg); err != nil {
			t.Fatal(err)
		}
		answers(t, r)
	})
}

// watcher counts how often a plain subscriber of results sees each.
type watcher struct {
	mu   sync.Mutex
	seen map[string]int
}

func watchAnswers(t testing.TB, r *running) *watcher {
	t.Helper()
	w := &watcher{seen: make(map[string]int)}
	if _, err := r.nc.Subscribe("genie.result.>", func(m *nats.Msg) {
		w.mu.Lock()
		w.seen[m.Header.Get("Nats-Msg-Id")]++
		w.mu.Unlock()
	}); err != nil {
		t.Fatal(err)
	}
	if err := r.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *watcher) total() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, times := range w.seen {
		n += times
	}
	return n
}

// once checks that nothing was seen twice.
func (w *watcher) once(t testing.TB) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, times := range w.seen {
		if times != 1 {
			t.Errorf("%s was seen %d times", id, times)
		}
	}
}

// However long the result stream is full, whoever has subscribed sees an answer twice at most: once more than it is stored, if it
// was on its way when the stream became full.
func TestFullResultStreamSeenLive(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{Indexes: []config.IndexSource{{Path: buildFile(t, t.TempDir(), "people.csv", peopleSchema, peopleData)}}},
		service.Options{})
	s, err := r.js.Stream(within(t), "GENIE_RESULTS")
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	small := cfg
	small.MaxBytes = 1 << 10
	if _, err = r.js.UpdateStream(within(t), small); err != nil {
		t.Fatal(err)
	}
	seen := watchAnswers(t, r)
	const queries = 20
	for i := range queries {
		r.publish("people", `{"row":{"age":30}}`, "Nats-Msg-Id", fmt.Sprint(i))
	}
	turnsUnready(t, r, "results do not get out")
	// Eight seconds are four of the longest pauses between attempts.
	time.Sleep(8 * time.Second)
	if n := seen.total(); n > queries {
		t.Errorf("%d live answers to %d queries while nothing is stored", n, queries)
	}
	if _, err := r.js.UpdateStream(within(t), cfg); err != nil {
		t.Fatal(err)
	}
	r.settled()
	testkit.Eventually(t, r.ready)
	if n := r.count("GENIE_RESULTS", "genie.result.people"); n != queries {
		t.Errorf("%d answers are stored", n)
	}
	testkit.Eventually(t, func() error { // what has come may still wait for the subscriber
		seen.mu.Lock()
		defer seen.mu.Unlock()
		if n := len(seen.seen); n != queries {
			return fmt.Errorf("%d answers were seen", n)
		}
		return nil
	})
	t.Logf("%d live answers to %d queries", seen.total(), queries)
	seen.mu.Lock()
	defer seen.mu.Unlock()
	for id, times := range seen.seen {
		if times > 2 {
			t.Errorf("%s was seen %d times", id, times)
		}
	}
}
