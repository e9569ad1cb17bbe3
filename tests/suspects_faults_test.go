package tests

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/geniemq/geniemq/internal/testkit"
)

// What others do does not fall back on a message that is run alone: queries asked directly, which nobody puts on record, kill
// the worker again and again while innocent suspects are run.
func TestNeighboursKill(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes: not when tests are to be short")
	}
	t.Parallel()
	for name, mark := range map[string]int{"decoding": markDecode, "engine": markKill, "encoding": markEncode} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startServer(t)
			r, args := prepared(t, mortalArgs(t, server.url), server.url)
			const innocent = 12
			r.publishAll(innocent, func(int) string { return marked(markSlow) })
			suspected(t, r.js, innocent)
			workers := supervise(t, args...)
			for kills := 1; kills <= 8; kills++ {
				testkit.Eventually(t, func() error { // whenever there is a worker, and suspects are run nearly all the time
					if workers.died() >= kills {
						return nil
					}
					if workers.running() {
						r.nc.PublishRequest("genie.search.people", r.nc.NewInbox(), []byte(marked(mark)))
						time.Sleep(20 * time.Millisecond)
					}
					return errors.New("the worker lives")
				})
				if left := records(t, r.js); len(left) > 0 {
					t.Errorf("after %d kills these are blamed: %v", kills, left)
				}
			}
			emptied(t, r.js, 2*patience)
			if got := deadLetters(t, r.js); len(got) != 0 {
				t.Errorf("dead letters %q", got)
			}
			answers := resultsByID(t, r.js)
			for i := range innocent {
				if got := answers[fmt.Sprintf("m%d", i)]; len(got) != 1 || got[0] != "ann:1" {
					t.Errorf("m%d is answered %q", i, got)
				}
			}
		})
	}
}

// While a message of many slow queries is run alone, those who ask directly get their turns.
func TestLoneRunTakesTurns(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	r, args := prepared(t, mortalArgs(t, server.url), server.url)
	const slow = 12
	r.publish("people", `{"queries":[`+strings.Repeat(marked(markSlow)+",", slow-1)+marked(markSlow)+`]}`, "Nats-Msg-Id", "slow")
	suspected(t, r.js, 1)
	startMortal(t, args...).says("slow query")
	asked := 0
	for r.count("GENIE_QUERIES", "genie.query.people") > 0 {
		r.works()
		asked++
	}
	if asked < slow/2 { // a turn after each slow query, three for an answer: decode, run, encode; and more of them as turns last
		t.Errorf("only %d direct queries were answered while %d slow ones were run", asked, slow)
	}
	if got := resultsByID(t, r.js)["slow"]; len(got) != 1 || strings.Count(got[0], "ann:1") != slow {
		t.Errorf("answered %q", got)
	}
}

// The bucket can be gone, and so can the server: suspects wait for them, and none is lost, blamed or answered twice.
func TestBucketGone(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes: not when tests are to be short")
	}
	t.Parallel()
	for name, interfere := range map[string]func(t *testing.T, server *external, r *running){
		"bucket deleted": func(t *testing.T, _ *external, r *running) {
			if err := r.js.DeleteKeyValue(within(t), "genie-suspects"); err != nil {
				t.Error(err)
			}
		},
		"server killed": func(t *testing.T, server *external, r *running) {
			server.kill()
			time.Sleep(100 * time.Millisecond)
			server.start()
		},
		"server stopped": func(t *testing.T, server *external, r *running) {
			server.cmd.Process.Signal(syscall.SIGSTOP)
			time.Sleep(5 * time.Second) // longer than a request may take
			server.cmd.Process.Signal(syscall.SIGCONT)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startServer(t)
			r, args := prepared(t, mortalArgs(t, server.url, "--ack-wait", "20s"), server.url)
			const messages = 300
			r.publishAll(messages, func(i int) string {
				if i%100 == 50 {
					return marked(markSlow)
				}
				return `{"row":{"age":52}}`
			})
			suspected(t, r.js, messages)
			worker := startMortal(t, args...)
			worker.says("slow query")
			interfere(t, server, r)
			testkit.Eventually(t, func() error {
				if n := r.count("GENIE_QUERIES", "genie.query.people"); n > 0 {
					return fmt.Errorf("%d messages are left, the worker said\n%s", n, worker.stderr)
				}
				return nil
			})
			if got := deadLetters(t, r.js); len(got) != 0 {
				t.Errorf("dead letters %q", got)
			}
			answers := resultsByID(t, r.js)
			for i := range messages {
				if got := answers[fmt.Sprintf("m%d", i)]; len(got) != 1 || !strings.HasSuffix(got[0], ":1") {
					t.Errorf("m%d is answered %q", i, got)
				}
			}
			testkit.Eventually(t, func() error { // what could not be taken away is tried again
				if left := records(t, r.js); len(left) > 0 {
					return fmt.Errorf("records are left: %v", left)
				}
				return nil
			})
		})
	}
}

// Where no record can be kept, suspects run alone all the same, nothing is given up, and the log says once what to allow.
func TestNoRecords(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes: not when tests are to be short")
	}
	t.Parallel()
	users := func(deny string) string {
		return fmt.Sprintf(`authorization { users: [ {user: admin, password: admin},
			{user: worker, password: worker, permissions: {publish: {allow: [">"], deny: [%s]}}} ] }`, deny)
	}
	for name, c := range map[string]struct{ conf, advice string }{
		"writing is denied": {users(`"$KV.genie-suspects.>"`), "allow the worker to publish"},
		"making is denied":  {users(`"$JS.API.STREAM.CREATE.KV_genie-suspects"`), "allow the worker to publish"},
		"no room": {`accounts { A { jetstream: {max_streams: 5}, users: [ {user: admin, password: admin}, {user: worker, password: worker} ] } }`,
			"give JetStream room"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startServer(t, c.conf)
			as := func(user string) string { return strings.Replace(server.url, "//", "//"+user+":"+user+"@", 1) }
			r, args := prepared(t, mortalArgs(t, as("worker")), as("admin"))
			const messages = 30
			r.publishAll(messages, func(i int) string {
				if i == 0 {
					return marked(markKill)
				}
				return `{"row":{"age":52}}`
			})
			suspected(t, r.js, messages)
			life(t, args)
			workers := supervise(t, args...)
			down(t, r.js, 1, 4*patience) // the one that kills does not come first every time
			testkit.Eventually(t, func() error {
				if n := workers.died(); n < 4 {
					return fmt.Errorf("workers died %d times", n)
				}
				return nil
			})
			if got := deadLetters(t, r.js); len(got) != 0 {
				t.Errorf("dead letters %q", got)
			}
			for _, p := range workers.lives()[:3] {
				if said := p.stderr.String(); strings.Count(said, c.advice) != 1 {
					t.Errorf("the log should say once %q:\n%s", c.advice, said)
				}
			}
		})
	}
}

// The answer to a suspect may have several parts. All of them are encoded in its lone run.
func TestLoneRunInParts(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	r, args := prepared(t, mortalArgs(t, server.url), server.url)
	results, err := r.js.Stream(t.Context(), "GENIE_RESULTS")
	if err != nil {
		t.Fatal(err)
	}
	cfg := results.CachedInfo().Config
	cfg.MaxMsgSize = 4 << 10
	if _, err := r.js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	const queries = 100
	for _, id := range []string{"first", "second"} { // one behind the other
		r.publish("people", `{"queries":[`+strings.Repeat(`{"row":{"age":52}},`, queries-1)+`{"row":{"age":52}}]}`, "Nats-Msg-Id", id)
	}
	suspected(t, r.js, 2)
	startMortal(t, args...)
	emptied(t, r.js, patience)
	parts, answered := 0, 0
	for _, bodies := range resultsByID(t, r.js) {
		for _, body := range bodies {
			parts++
			answered += strings.Count(body, "dan:1")
		}
	}
	if answered != 2*queries || parts < 4 {
		t.Errorf("%d results in %d messages, want %d in several", answered, parts, 2*queries)
	}
	if left := records(t, r.js); len(left) > 0 {
		t.Errorf("records are left: %v", left)
	}
}
