package served_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service/config"
)

// goroutinesOfAnIdleIndex is how many it may have, for three classes of stored queries and with two workers. Decoders are 7 of them, responders 7,
// consumers 9, subscriptions 5, executors 2; the others are the dispatcher, the turns, the prober and the watch of the file.
const goroutinesOfAnIdleIndex = 34

// ours is how many goroutines there are but for those of the server.
func ours() (n int) {
	stacks := make([]byte, 64<<20)
	for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		if !strings.Contains(stack, "nats-server") {
			n++
		}
	}
	return n
}

// TestIdleIndexes: one more index that nobody asks costs no more goroutines than are stated.
func TestIdleIndexes(t *testing.T) {
	broker := testkit.StartBroker(t)
	s := start(t, broker.URL(), config.Config{Workers: 2, EngineThreads: 2, NoSweep: true})
	file := testkit.RowsFile(t, "idle", 100)
	if _, _, err := s.Add(t.Context(), "first", file); err != nil { // what is made once is made
		t.Fatal(err)
	}
	before := ours()
	const more = 5
	for i := range more {
		if _, _, err := s.Add(t.Context(), fmt.Sprint("idle-", i), file); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, func() error {
		if n := ours() - before; n > more*goroutinesOfAnIdleIndex {
			return fmt.Errorf("%d indexes have %d goroutines", more, n)
		}
		return nil
	})
}
