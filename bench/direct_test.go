package bench

import (
	"testing"
	"time"

	"github.com/geniemq/geniemq/bench/workload"
	"github.com/geniemq/geniemq/service/config"
)

// Callers of one query each are answered by the service and by the echo with as many bytes, and what is compared is right.
func TestDirect(t *testing.T) {
	ctx := t.Context()
	w, err := workload.New(ctx, "w3", workload.Options{Objects: 2_000, Queries: 40, K: 5})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	cfg := config.Config{Engine: "cpu", EngineThreads: 1}
	cfg.EnsureDefaults()
	r, err := Direct(ctx, w, DirectOptions{Progress: silent, Config: cfg, Callers: 6, Connections: 2, Rounds: 2, Time: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if r.Wrong != 0 || r.Rate <= 0 || r.EchoRate <= 0 || r.EchoShare <= 0 || r.AnswerBytes < 50 || r.Latency.Messages < 2*6 || r.EchoLatency.Messages < 2*6 || r.StageUs.Total <= 0 {
		t.Errorf("%+v", r)
	}
}
