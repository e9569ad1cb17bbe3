package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// drainTimeout is how long removals of these tests have, all of which have to use it up.
const drainTimeout = 300 * time.Millisecond

// neverAgain is an AckWait that is longer than tests wait: what comes again was given back.
const neverAgain = 10 * patience

// guests publishes queries to the index guest, and returns when the worker has pulled all.
func guests(t *testing.T, s *Service, js jetstream.JetStream, queries int) {
	t.Helper()
	for i := range queries {
		m := &nats.Msg{Subject: "genie.query.guest", Data: []byte(`{"k":1,"row":{"c":"3"}}`), Header: nats.Header{wire.HeaderMsgID: {fmt.Sprint("guest-", i)}}}
		if _, err := js.PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, func() error {
		if n := s.set.Find("guest").Pending(); n == 0 || n > int64(queries) {
			return fmt.Errorf("%d are pending", n)
		}
		if n := s.set.Find("guest").Stored()[0].Consumer.Progress().Outstanding; n == 0 {
			return errors.New("none is pulled")
		}
		return nil
	})
}

// removed removes the index guest, which cannot be drained, and checks what is promised of that: it ends when its time is over, says what it gave back, and
// nothing of the index is left.
func removed(t *testing.T, s *Service, nc *nats.Conn, version string) {
	t.Helper()
	start := time.Now()
	is, note, err := s.Remove(t.Context(), "guest")
	if err != nil || is != version {
		t.Fatalf("%s is removed: %v", is, err)
	}
	if took := time.Since(start); took < drainTimeout {
		t.Errorf("it took %v: there was time to drain, so the test shows nothing", took)
	}
	if note == nil || !strings.Contains(note.Error(), "given back") {
		t.Errorf("it says nothing of what it gave back, but %v", note)
	}
	if s.set.Find("guest") != nil || len(s.Status().Indexes) != 1 {
		t.Errorf("what is left of it: %+v", s.Status().Indexes)
	}
	if _, err := nc.Request("genie.search.guest", []byte(`{"row":{"c":"3"}}`), patience); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("a removed index is asked: %v", err)
	}
}

// answeredOnce waits until each query of guests has its answer, and fails if one has two.
func answeredOnce(t *testing.T, js jetstream.JetStream, queries int) {
	t.Helper()
	results, err := js.Stream(t.Context(), "GENIE_RESULTS")
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, func() error {
		info, err := results.Info(t.Context())
		if err != nil || info.State.Msgs < uint64(queries) {
			return fmt.Errorf("%d of %d answers: %w", info.State.Msgs, queries, err)
		}
		return nil
	})
	seen := make(map[string]int)
	info, err := results.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for sequence := info.State.FirstSeq; sequence <= info.State.LastSeq; sequence++ {
		m, err := results.GetMsg(t.Context(), sequence)
		if err != nil {
			t.Fatal(err)
		}
		r, err := testkit.DecodeResult(wire.JSON, m.Data)
		if err != nil || r.Err != nil || len(r.Hits) != 1 {
			t.Fatalf("%v in %s", err, m.Data)
		}
		seen[r.ID]++
	}
	if len(seen) != queries || info.State.Msgs != uint64(queries) {
		t.Errorf("%d queries have %d answers", len(seen), info.State.Msgs)
	}
}

// TestRemovalWhileResultsDoNotGetOut: with a result stream that is full, an index is removed all the same; other indexes are asked meanwhile. What it had is given
// back, and answered once when the index is there again and results get out.
func TestRemovalWhileResultsDoNotGetOut(t *testing.T) {
	first, version := editionFile(t, "a")
	s, nc, js := startService(t, config.Config{BatchSize: 8, DrainTimeout: drainTimeout, AckWait: neverAgain, Indexes: []config.IndexSource{{Path: first}}}, Options{})
	if _, _, err := s.Add(t.Context(), "guest", first); err != nil {
		t.Fatal(err)
	}
	const queries = 100
	open := fullResults(t, js, 10)
	guests(t, s, js, queries)
	testkit.Eventually(t, func() error {
		if err := ready(s)(); err == nil || !strings.Contains(err.Error(), "results do not get out") {
			return fmt.Errorf("ready, although results do not get out: %v", err)
		}
		return nil
	})
	removed(t, s, nc, version)
	mustAnswer(t, nc, "a", version)
	open()
	if _, _, err := s.Add(t.Context(), "guest", first); err != nil {
		t.Fatal(err)
	}
	answeredOnce(t, js, queries)
}

// TestRemovalWhileTheEngineStandsStill: what the engine does not answer in time is given back, and a direct question is told that it has no answer.
func TestRemovalWhileTheEngineStandsStill(t *testing.T) {
	first, version := editionFile(t, "a")
	engine := &gated{gate: make(chan struct{})}
	s, nc, js := startService(t, config.Config{BatchSize: 8, DrainTimeout: drainTimeout, AckWait: neverAgain, Indexes: []config.IndexSource{{Path: first}, {Name: "guest", Path: first}}}, Options{OpenEngine: engine.open})
	const queries = 20
	guests(t, s, js, queries)
	inbox, err := nc.SubscribeSync(nc.NewInbox())
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.PublishRequest("genie.search.guest", inbox.Subject, []byte(`{"row":{"c":"3"}}`)); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, func() error {
		if s.set.Find("guest").Direct.Waiting() == 0 {
			return errors.New("the direct question is not there yet")
		}
		return nil
	})
	removed(t, s, nc, version)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	m, err := inbox.NextMsgWithContext(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := testkit.DecodeResult(wire.JSON, m.Data); err != nil || r.Err == nil || r.Err.Code != wire.Overloaded {
		t.Errorf("a direct question without an answer is told %s, %v", m.Data, err)
	}
	close(engine.gate)
	if _, _, err := s.Add(t.Context(), "guest", first); err != nil {
		t.Fatal(err)
	}
	answeredOnce(t, js, queries)
}
