package tests

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/wire"
)

// TestRefusedDirectQueriesDoNotWait: what is refused after it has been decoded waits no longer, whatever the reason is, so that who comes later is answered.
func TestRefusedDirectQueriesDoNotWait(t *testing.T) {
	ofProcesses(t)
	worker := run(t, "serve", "--engine", "cpu", "--admin", "127.0.0.1:0", "--nats-listen", "127.0.0.1:0", "--data-dir", t.TempDir(), "--memory", "128MiB", "--direct-queue", "6000",
		"--index", buildFile(t, t.TempDir(), "people.csv", peopleSchema, peopleData))
	nc, _ := connect(t, worker.says("NATS"))
	admin := worker.says("admin")
	many := func(n int, query string) []byte {
		return []byte(`{"queries":[` + strings.TrimSuffix(strings.Repeat(query+",", n), ",") + `]}`)
	}
	ask := func(body []byte) string {
		m, err := nc.Request("genie.search.people", body, time.Minute)
		if err != nil {
			t.Error(err)
			return ""
		}
		return m.Header.Get(wire.HeaderServiceErrorCode) + " " + string(m.Data[:min(300, len(m.Data))])
	}
	// What is told of so many queries has no room in memory.
	for range 3 {
		if said := ask(many(5000, `{"explain":true,"k":1,"row":{"sex":"Male"}}`)); !strings.Contains(said, "too_large") {
			t.Fatalf("5,000 queries that are to be explained are answered %s", said)
		}
	}
	// Many at a time have more in flight than there may be: some are refused.
	var asking sync.WaitGroup
	for range 32 {
		asking.Go(func() {
			for range 4 {
				ask(many(100, `{"k":2,"row":{"age":{"min":1}},"matched":true}`))
			}
		})
	}
	asking.Wait()
	testkit.Eventually(t, func() error {
		for line := range strings.Lines(scrapeOf(t, admin)) {
			if strings.HasPrefix(line, "geniemq_queries_pending{") && strings.Contains(line, `"direct"`) && !strings.HasSuffix(strings.TrimSpace(line), " 0") {
				return fmt.Errorf("nothing is asked, and %s", line)
			}
		}
		return nil
	})
	if said := ask([]byte(`{"row":{"sex":"Male"},"k":1}`)); strings.Contains(said, "error") {
		t.Errorf("one query after them is answered %s", said)
	}
}
