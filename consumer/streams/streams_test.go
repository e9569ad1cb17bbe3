package streams_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/consumer/streams"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/wire"
)

// core are the streams that every worker needs.
func core() []jetstream.StreamConfig {
	var s streams.Settings
	return s.Configs(wire.Subjects{}, streams.Queries, streams.Results, streams.Dead)
}

func ensure(t *testing.T, js jetstream.JetStream) []string {
	t.Helper()
	found, err := streams.Ensure(t.Context(), js, core())
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, d := range found {
		lines = append(lines, d.String())
	}
	return lines
}

func config(t *testing.T, js jetstream.JetStream, name string) jetstream.StreamConfig {
	t.Helper()
	s, err := js.Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().Config
}

func TestEnsureMakesThem(t *testing.T) {
	b := testkit.StartBroker(t)
	js := testkit.JetStream(t, b.URL())
	for range 2 { // the second time they are there
		if d := ensure(t, js); len(d) != 0 {
			t.Errorf("differences %q", d)
		}
	}
	q, r, d := config(t, js, "GENIE_QUERIES"), config(t, js, "GENIE_RESULTS"), config(t, js, "GENIE_DEAD")
	if q.Retention != jetstream.WorkQueuePolicy || q.Storage != jetstream.FileStorage || q.Duplicates != 2*time.Minute ||
		q.MaxBytes != 4<<30 || q.MaxMsgsPerSubject != 1_000_000 || q.Discard != jetstream.DiscardNew || !q.DiscardNewPerSubject ||
		strings.Join(q.Subjects, " ") != "genie.query.*" {
		t.Errorf("queries: %+v", q)
	}
	if r.Retention != jetstream.LimitsPolicy || r.Duplicates != 10*time.Minute || r.MaxAge != time.Hour ||
		r.MaxBytes != 4<<30 || r.Discard != jetstream.DiscardNew || strings.Join(r.Subjects, " ") != "genie.result.>" {
		t.Errorf("results: %+v", r)
	}
	if d.MaxAge != 7*24*time.Hour || d.MaxBytes != 1<<30 || d.Discard != jetstream.DiscardOld || strings.Join(d.Subjects, " ") != "genie.dead.*" {
		t.Errorf("dead: %+v", d)
	}
}

func TestEnsureAdoptsWhatIsThere(t *testing.T) {
	b := testkit.StartBroker(t)
	js := testkit.JetStream(t, b.URL())
	theirs := jetstream.StreamConfig{
		Name: "GENIE_RESULTS", Subjects: []string{"genie.result.>", "more"}, MaxBytes: 1 << 20, Storage: jetstream.MemoryStorage,
	}
	if _, err := js.CreateStream(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	before := config(t, js, "GENIE_RESULTS")
	got := strings.Join(ensure(t, js), "\n")
	want := []string{
		"stream GENIE_RESULTS: subjects is genie.result.> more instead of genie.result.>",
		"stream GENIE_RESULTS: storage is Memory instead of File",
		"stream GENIE_RESULTS: max_age is 0s instead of 1h0m0s",
		"stream GENIE_RESULTS: max_bytes is 1MiB instead of 4GiB",
		"stream GENIE_RESULTS: discard is DiscardOld instead of DiscardNew",
		"stream GENIE_RESULTS: duplicate_window is 2m0s instead of 10m0s",
	}
	if got != strings.Join(want, "\n") {
		t.Errorf("differences:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
	if after := config(t, js, "GENIE_RESULTS"); after.MaxBytes != before.MaxBytes || len(after.Subjects) != 2 {
		t.Errorf("the existing stream was changed: %+v", after)
	}
	if q := config(t, js, "GENIE_QUERIES"); q.Retention != jetstream.WorkQueuePolicy {
		t.Errorf("the missing stream was not made: %+v", q)
	}
}

func TestEnsureShareASmallStore(t *testing.T) {
	const store = 1 << 30
	b := testkit.StartBroker(t, func(o *server.Options) { o.JetStreamMaxStore = store })
	js := testkit.JetStream(t, b.URL())
	if d := ensure(t, js); len(d) != 3 {
		t.Errorf("differences %q, want one for each stream", d)
	}
	q, r, d := config(t, js, "GENIE_QUERIES"), config(t, js, "GENIE_RESULTS"), config(t, js, "GENIE_DEAD")
	sum := q.MaxBytes + r.MaxBytes + d.MaxBytes
	if sum > store || sum < store/2 || q.MaxBytes != r.MaxBytes || q.MaxBytes != 4*d.MaxBytes {
		t.Errorf("shares of %d: %d, %d, %d", store, q.MaxBytes, r.MaxBytes, d.MaxBytes)
	}
}

func TestEnsureInATinyStore(t *testing.T) {
	b := testkit.StartBroker(t, func(o *server.Options) { o.JetStreamMaxStore = 1 << 20 })
	_, err := streams.Ensure(t.Context(), testkit.JetStream(t, b.URL()), core())
	if err == nil || !strings.Contains(err.Error(), "give JetStream more room") {
		t.Errorf("got %v", err)
	}
}

func TestEnsureNamesAnOverlap(t *testing.T) {
	b := testkit.StartBroker(t)
	js := testkit.JetStream(t, b.URL())
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "ALL", Subjects: []string{"genie.>"}}); err != nil {
		t.Fatal(err)
	}
	_, err := streams.Ensure(t.Context(), js, core())
	if err == nil || !strings.Contains(err.Error(), "delete the other stream") {
		t.Errorf("got %v", err)
	}
}

func TestEnsureAtTheSameTime(t *testing.T) {
	b := testkit.StartBroker(t)
	errs := make(chan error)
	for range 4 {
		js := testkit.JetStream(t, b.URL())
		go func() {
			_, err := streams.Ensure(t.Context(), js, core())
			errs <- err
		}()
	}
	for range 4 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
