package tests

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/program"
)

// geniemq bench soak watches a worker of its own, which answers rightly. What it says of so few seconds is nothing, and it may say that the worker grows.
func TestSoak(t *testing.T) {
	ofProcesses(t)
	t.Parallel()
	cmd := exec.CommandContext(within(t), program.Path(t), "bench", "soak", "--objects", "2000", "--for", "3s", "--interval", "100ms", "--json")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil && !strings.Contains(stderr.String(), "the worker grows") {
		t.Fatalf("%v: %s", err, stderr.String())
	}
	type trend struct {
		Mean    float64
		Verdict string
	}
	var r struct {
		Queries, Samples, Wrong int
		Rate                    float64 `json:"rate_qps"`
		Memory                  trend   `json:"resident_bytes"`
		Heap                    trend   `json:"heap_goal_bytes"`
		Goroutines, Descriptors trend
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if r.Queries == 0 || r.Rate <= 0 || r.Samples == 0 || r.Wrong != 0 {
		t.Errorf("%s", out)
	}
	for name, f := range map[string]trend{"resident_bytes": r.Memory, "heap_goal_bytes": r.Heap, "goroutines": r.Goroutines, "descriptors": r.Descriptors} {
		if f.Mean < 5 || f.Verdict == "" {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
