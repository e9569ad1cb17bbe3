package client_test

import (
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/client"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/wire"
)

func TestSubscribe(t *testing.T) {
	t.Parallel()
	f := setUpReal(t, smallPayload)
	c := newClient(t, f.nc, client.Options{})
	publish := func(t *testing.T, reply, id string) client.Receipt {
		t.Helper()
		r, err := c.Publish(f.ctx, "words", client.Query{ID: id, Text: "recipe"}, client.PublishOptions{Reply: reply})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	publish(t, "", "old")
	testkit.Until(t, "the answer is stored", func() bool { return results(t, f) == 1 })

	subscribe := func(t *testing.T, subject string, opts client.SubscribeOptions) (<-chan *client.Answer, *client.Subscription) {
		t.Helper()
		answers := make(chan *client.Answer, 100)
		sub, err := c.Subscribe(f.ctx, subject, func(a *client.Answer) error { answers <- a; return nil }, opts)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(sub.Stop)
		return answers, sub
	}

	t.Run("new results of an index", func(t *testing.T) {
		answers, _ := subscribe(t, "words", client.SubscribeOptions{})
		receipt := publish(t, "", "new")
		a := <-answers
		if a.QueryID != "new" || a.QuerySeq != receipt.Sequence || a.Subject != "genie.result.words" || a.Batch || a.Queries != 1 {
			t.Errorf("got %+v", a)
		}
	})
	t.Run("all results of an index", func(t *testing.T) {
		answers, _ := subscribe(t, "words", client.SubscribeOptions{All: true})
		if a := <-answers; a.QueryID != "old" {
			t.Errorf("got %+v", a)
		}
	})
	t.Run("wildcard", func(t *testing.T) {
		answers, _ := subscribe(t, "genie.result.words.>", client.SubscribeOptions{})
		publish(t, "", "elsewhere")
		publish(t, "genie.result.words.mine.1", "mine")
		if a := <-answers; a.QueryID != "mine" || a.Subject != "genie.result.words.mine.1" {
			t.Errorf("got %+v", a)
		}
	})
	t.Run("inbox", func(t *testing.T) {
		inbox := nats.NewInbox()
		answers, sub := subscribe(t, inbox, client.SubscribeOptions{})
		if err := f.nc.Flush(); err != nil {
			t.Fatal(err)
		}
		publish(t, inbox, "inbox")
		if a := <-answers; a.QueryID != "inbox" {
			t.Errorf("got %+v", a)
		}
		sub.Stop()
		sub.Stop()
	})
	t.Run("parts", func(t *testing.T) {
		answers, _ := subscribe(t, "genie.result.words.parts", client.SubscribeOptions{})
		if _, err := c.PublishBatch(f.ctx, "words", wordQueries(manyQueries), client.PublishOptions{Reply: "genie.result.words.parts"}); err != nil {
			t.Fatal(err)
		}
		var results []client.Result
		for len(results) < manyQueries {
			a := <-answers
			if !a.Batch || a.First != len(results) || len(a.Results) == manyQueries || a.Queries != manyQueries {
				t.Fatalf("after %d results: got %d from %d on, of %d", len(results), len(a.Results), a.First, a.Queries)
			}
			results = append(results, a.Results...)
		}
		checkWords(t, results, manyQueries)
	})
	t.Run("durable", func(t *testing.T) {
		failed := errors.New("not now")
		errs := make(chan error, 10)
		got := make(chan string, 10)
		first := true
		opts := client.SubscribeOptions{Durable: "d1", OnError: func(err error) { errs <- err }}
		sub, err := c.Subscribe(f.ctx, "genie.result.words.durable", func(a *client.Answer) error {
			if first {
				first = false
				return failed
			}
			got <- a.QueryID
			return nil
		}, opts)
		if err != nil {
			t.Fatal(err)
		}
		publish(t, "genie.result.words.durable", "d")
		if err := <-errs; !errors.Is(err, failed) {
			t.Errorf("got %v", err)
		}
		if id := <-got; id != "d" { // again
			t.Errorf("got %s", id)
		}
		sub.Stop()
		publish(t, "genie.result.words.durable", "while away")
		again, _ := subscribe(t, "genie.result.words.durable", opts)
		if a := <-again; a.QueryID != "while away" {
			t.Errorf("got %+v", a)
		}
		if _, err := c.Subscribe(f.ctx, "words", func(*client.Answer) error { return nil }, opts); err == nil {
			t.Error("the durable of another subject was taken over")
		}
	})
	t.Run("what is no answer", func(t *testing.T) {
		errs := make(chan error, 10)
		answers, _ := subscribe(t, "genie.result.words.odd", client.SubscribeOptions{Durable: "odd", OnError: func(err error) { errs <- err }})
		if _, err := f.js.Publish(f.ctx, "genie.result.words.odd", []byte("hello")); err != nil {
			t.Fatal(err)
		}
		if err := <-errs; !errors.Is(err, wire.BadRequest) {
			t.Errorf("got %v", err)
		}
		publish(t, "genie.result.words.odd", "good")
		if a := <-answers; a.QueryID != "good" {
			t.Errorf("got %+v", a)
		}
	})
	t.Run("refused", func(t *testing.T) {
		for subject, opts := range map[string]client.SubscribeOptions{"a..b": {}, "_INBOX.x": {Durable: "x"}, "": {}} {
			if _, err := c.Subscribe(f.ctx, subject, func(*client.Answer) error { return nil }, opts); err == nil {
				t.Errorf("%q was accepted", subject)
			}
		}
	})
	t.Run("closed connection", func(t *testing.T) {
		nc := testkit.Connect(t, f.broker.URL())
		c := newClient(t, nc, client.Options{})
		for _, subject := range []string{"words", "_INBOX.x"} {
			sub, err := c.Subscribe(f.ctx, subject, func(*client.Answer) error { return nil }, client.SubscribeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer sub.Stop()
		}
		nc.Close()
	})
}

// slowly is a connection that takes 64 KiB a millisecond from the server.
type slowly struct{ net.Conn }

func (c slowly) Read(b []byte) (int, error) {
	time.Sleep(time.Millisecond)
	return c.Conn.Read(b[:min(len(b), 64<<10)])
}

type slowDialer struct{}

func (slowDialer) Dial(network, address string) (net.Conn, error) {
	conn, err := net.Dial(network, address)
	return slowly{conn}, err
}

// Answers that were stored meanwhile, more than a server keeps for a client, come once and without the connection being cut off.
func TestSubscribeToABacklog(t *testing.T) {
	t.Parallel()
	f := setUpBroker(t, 0)
	if _, err := f.js.CreateStream(f.ctx, jetstream.StreamConfig{Name: "GENIE_RESULTS", Subjects: []string{"genie.result.>"}}); err != nil {
		t.Fatal(err)
	}
	body := wire.AppendResult(nil, wire.JSON, &wire.Result{Err: wire.Errorf(wire.BadRequest, "%s", strings.Repeat("x", 1<<20-200))})
	const answers = 80
	for range answers {
		if _, err := f.js.Publish(f.ctx, "genie.result.words", body); err != nil {
			t.Fatal(err)
		}
	}
	nc, err := nats.Connect(f.broker.URL(), nats.SetCustomDialer(slowDialer{}))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	c := newClient(t, nc, client.Options{})
	var got atomic.Int64
	sub, err := c.Subscribe(f.ctx, "words", func(*client.Answer) error {
		got.Add(1)
		return nil
	}, client.SubscribeOptions{All: true, Durable: "reader", OnError: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Stop()
	testkit.Until(t, "all answers are here", func() bool { return got.Load() >= answers })
	if n := f.broker.Server().NumSlowConsumers(); n != 0 || got.Load() != answers {
		t.Errorf("cut off %d times, %d answers of %d", n, got.Load(), answers)
	}
}
