package bench

import (
	"context"
	"testing"
	"time"

	"github.com/geniemq/geniemq/bench/workload"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/service/config"
)

// silent is a Progress that nobody reads.
func silent(string, ...any) {}

// The interactive user is measured alone and beside bulk that is there for as long, and every answer that is compared is right.
func TestBeside(t *testing.T) {
	ctx := context.Background()
	w, err := workload.New(ctx, "w3", workload.Options{Objects: 2_000, Queries: 40, K: 5})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	cfg := config.Config{Engine: "cpu", EngineThreads: 1}
	cfg.EnsureDefaults()
	const message, rounds = 8, 2
	bulk := raced.Of(20_000, 4_000)
	r, err := Beside(ctx, w, BesideOptions{Config: cfg, Progress: silent, Bulk: bulk, BulkMessage: message, Rate: 100, Rounds: rounds, Time: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if r.Wrong != 0 || r.Bulk != bulk || r.BulkRate <= 0 || r.Cores <= 0 || r.Alone.Messages != rounds*5 || r.Beside.Messages < rounds*5 || r.P50Ratio <= 0 || r.P99Ratio <= 0 {
		t.Errorf("%+v", r)
	}
	_, err = Beside(ctx, w, BesideOptions{Config: cfg, Progress: silent, Bulk: message, BulkMessage: message, Rate: 100, Rounds: 1, Time: time.Second})
	if err == nil {
		t.Error("bulk that is done at once is measured beside")
	}
}
