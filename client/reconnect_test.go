package client_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/client"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/wire"
)

// Requests wait through a restart of the server, which neither has lost queries nor answers.
func TestRequestSurvivesServerRestart(t *testing.T) {
	hold := make(chan struct{})
	f := setUp(t, 0, hold)
	c := newClient(t, f.nc, client.Options{})
	const requests = 20
	var wg sync.WaitGroup
	for i := range requests {
		wg.Go(func() {
			word := dictionary[i%len(dictionary)]
			r, err := c.Request(f.ctx, "words", client.Query{Text: word, K: 1})
			if err != nil || r.Hits[0].Key != word {
				t.Errorf("%s: %+v, %v", word, r, err)
			}
		})
	}
	testkit.Until(t, "all are stored", func() bool { return stored(t, f) == requests })
	f.broker.Stop()
	close(hold)
	time.Sleep(50 * time.Millisecond)
	f.broker.Start(t)
	wg.Wait()
}

// The answer is published and confirmed while only the client is cut off: it is in the stream, and nowhere else.
func TestRequestReadsWhatItMissed(t *testing.T) {
	hold := make(chan struct{})
	f := setUp(t, 0, hold)
	f.service.maxBody.Store(1000) // in parts
	p, err := startProxy(f.broker.URL()[len("nats://"):])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.cut)
	c := newClient(t, testkit.Connect(t, p.url()), client.Options{})
	got := make(chan []client.Result)
	go func() {
		results, err := c.RequestBatch(f.ctx, "words", wordQueries(50))
		if err != nil {
			t.Error(err)
		}
		got <- results
	}()
	testkit.Until(t, "it is stored", func() bool { return stored(t, f) == 1 })
	p.cut()
	close(hold)
	testkit.Until(t, "it is answered", func() bool { return f.service.answered.Load() == 1 })
	if err := p.restore(); err != nil {
		t.Fatal(err)
	}
	checkWords(t, <-got, 50)
}

// What the core subscription loses without a reconnect, the stream still has.
func TestRequestLooksIntoTheStream(t *testing.T) {
	hold := make(chan struct{})
	f := setUp(t, 0, hold)
	c := newClient(t, f.nc, client.Options{})
	c.LookSoon()
	got := make(chan []client.Result)
	go func() {
		results, err := c.RequestBatch(f.ctx, "words", wordQueries(5))
		if err != nil {
			t.Error(err)
		}
		got <- results
	}()
	testkit.Until(t, "it is stored", func() bool { return stored(t, f) == 1 })
	c.LoseInboxes()
	close(hold)
	checkWords(t, <-got, 5)
	if n := c.Waiting(); n != 0 {
		t.Errorf("%d requests are still registered", n)
	}
}

// A request that waits in vain tells what it has done: here nobody takes the query, and there is no stream of answers, or nothing in it.
func TestRequestTellsWhatItDid(t *testing.T) {
	f := setUpBroker(t, 0)
	names := wire.Subjects{}
	create := func(name, subjects string) {
		if _, err := f.js.CreateStream(f.ctx, jetstream.StreamConfig{Name: name, Subjects: []string{subjects}}); err != nil {
			t.Fatal(err)
		}
	}
	c := newClient(t, f.nc, client.Options{})
	c.LookSoon()
	ask := func(last string) {
		t.Helper()
		want := regexp.MustCompile(`^waiting for the answer of index words, published as GENIE_QUERIES:\d+, not a duplicate; looks into GENIE_RESULTS for genie\.result\.words\.\S+: [1-9]\d*, last: .*` + last)
		timeout := 100 * time.Millisecond // as long as it takes to be stored and to look
		testkit.Until(t, want.String(), func() bool {
			timeout *= 2
			ctx, cancel := context.WithTimeout(f.ctx, timeout)
			defer cancel()
			_, err := c.Request(ctx, "words", client.Query{Text: "x"})
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			return want.MatchString(err.Error())
		})
	}
	create(names.QueryStream(), names.Queries())
	ask("stream not found")
	create(names.ResultStream(), names.Results())
	ask("message not found")
}

// A publish that cannot be confirmed is repeated, and stored once.
func TestPublishThroughAnOutage(t *testing.T) {
	f := setUp(t, 0, make(chan struct{}))
	t.Cleanup(func() { close(f.service.hold) })
	p, err := startProxy(f.broker.URL()[len("nats://"):])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.cut)
	c := newClient(t, testkit.Connect(t, p.url()), client.Options{})
	p.cut()
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			if _, err := c.Publish(f.ctx, "words", client.Query{Text: fmt.Sprint(i)}, client.PublishOptions{}); err != nil {
				t.Error(err)
			}
		})
	}
	time.Sleep(100 * time.Millisecond)
	if err := p.restore(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if n := stored(t, f); n != 10 {
		t.Errorf("%d messages are stored, want 10", n)
	}

	p.cut()
	ctx, cancel := context.WithTimeout(f.ctx, 100*time.Millisecond)
	defer cancel()
	if _, err := c.Publish(ctx, "words", client.Query{Text: "x"}, client.PublishOptions{}); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "not confirmed; tries: ") {
		t.Errorf("while the connection is away: %v", err)
	}
}

// A subscription to results goes on after a restart of the server where it was.
func TestSubscribeSurvivesServerRestart(t *testing.T) {
	f := setUp(t, 0, nil)
	c := newClient(t, f.nc, client.Options{})
	for name, opts := range map[string]client.SubscribeOptions{"ephemeral": {}, "durable": {Durable: "d"}} {
		t.Run(name, func(t *testing.T) {
			ids := make(chan string, 100)
			sub, err := c.Subscribe(f.ctx, "words", func(a *client.Answer) error { ids <- a.Results[0].ID; return nil }, opts)
			if err != nil {
				t.Fatal(err)
			}
			defer sub.Stop()
			ask := func(id string) {
				if _, err := c.Publish(f.ctx, "words", client.Query{ID: id, Text: "x"}, client.PublishOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			// The first restart finds a subscription that has received nothing yet.
			for _, id := range []string{"first", "second"} {
				f.broker.Stop()
				f.broker.Start(t)
				ask(id)
				if got := <-ids; got != id {
					t.Fatalf("got %s, want %s", got, id)
				}
			}
		})
	}
}

// stored returns how many messages the stream of queries has got so far.
func stored(t *testing.T, f *fixture) int {
	t.Helper()
	return last(t, f, wire.Subjects{}.QueryStream())
}

// results returns how many messages the stream of results has got so far.
func results(t *testing.T, f *fixture) int {
	t.Helper()
	return last(t, f, wire.Subjects{}.ResultStream())
}

func last(t *testing.T, f *fixture, name string) int {
	t.Helper()
	stream, err := f.js.Stream(f.ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	return int(stream.CachedInfo().State.LastSeq)
}
