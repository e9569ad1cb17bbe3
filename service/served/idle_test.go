package served_test

import (
	"fmt"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service/config"
)

// goroutinesOfAnIdleIndex is how many it may have, for three classes of stored queries and with any number of workers. Each class has two: its consumer
// and the subscription to which messages are delivered. The others are the subscriptions of two endpoints, the dispatcher and the watch of the file.
// Decoders, executors, turns, responders, deliveries and what keeps messages alive begin when something comes and end when it is done.
const goroutinesOfAnIdleIndex = 10

var created = regexp.MustCompile(`created by (\S+) in`)

// ours is how many goroutines there are but for those of the server, by who started them.
func ours() map[string]int {
	by := make(map[string]int)
	stacks := make([]byte, 64<<20)
	for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		if place := created.FindStringSubmatch(stack); place != nil && !strings.Contains(stack, "nats-server") {
			by[place[1]]++
		}
	}
	return by
}

// TestIdleIndexes: one more index that nobody asks costs no more goroutines than are stated, before it was asked and afterwards.
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
	idle := func() error {
		sum, list := 0, ""
		after := ours()
		for _, place := range slices.Sorted(maps.Keys(after)) {
			if n := after[place] - before[place]; n != 0 {
				sum += n
				list += fmt.Sprintf("\n%4d %s", n, place)
			}
		}
		if sum > more*goroutinesOfAnIdleIndex {
			return fmt.Errorf("%d indexes have %d goroutines:%s", more, sum, list)
		}
		return nil
	}
	testkit.Eventually(t, idle)
}
