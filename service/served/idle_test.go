package served_test

import (
	"fmt"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service/config"
)

// goroutinesOfAnIdleIndex is how many it may have, for three classes of stored queries and with any number of workers. Each class has two: its consumer
// and the subscription to which messages are delivered. The others are the subscriptions of two endpoints, the dispatcher and the watch of the file.
// Decoders, executors, turns, responders, deliveries and what keeps messages alive begin when something comes and end when it is done.
const goroutinesOfAnIdleIndex = 10

// started is the outermost function of a goroutine that is ours or a library's, in its stack.
var started = regexp.MustCompile(`(?m)^(github\.com/\S+)\(`)

// ours is how many goroutines there are but for those of the server, by the functions that they run.
func ours() map[string]int {
	by := make(map[string]int)
	stacks := make([]byte, 64<<20)
	for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		if strings.Contains(stack, "nats-server") {
			continue
		}
		run := "others"
		if all := started.FindAllStringSubmatch(stack, -1); all != nil {
			run = all[len(all)-1][1]
		}
		by[run]++
	}
	return by
}

// TestIdleIndexes: one more index that nobody asks costs no more goroutines than are stated, before it is asked for the first time and after the last.
func TestIdleIndexes(t *testing.T) {
	broker := testkit.StartBroker(t)
	s := start(t, broker.URL(), config.Config{Workers: 2, EngineThreads: 2, NoSweep: true, AckWait: time.Second})
	file := testkit.RowsFile(t, "idle", 100)
	nc, js := testkit.Connect(t, broker.URL()), testkit.JetStream(t, broker.URL())
	answers, err := nc.SubscribeSync("genie.result.>")
	if err != nil {
		t.Fatal(err)
	}
	l := &ledger{asked: make(map[string]int)}
	add := func(index string) {
		if _, _, err := s.Add(t.Context(), index, file); err != nil {
			t.Fatal(err)
		}
	}
	query := func(index string) {
		const queries = 20
		for n := range queries {
			if _, err := ask(nc, index, n); err != nil {
				t.Fatal(err)
			}
			l.publish(t, js, index, fmt.Sprint(index, n), n)
		}
		for range queries {
			if _, err := answers.NextMsgWithContext(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	add("first") // what is made once is made
	query("first")
	before := ours()
	const more = 5
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
	for i := range more {
		add(fmt.Sprint("idle-", i))
	}
	testkit.Eventually(t, idle)
	for i := range more {
		query(fmt.Sprint("idle-", i))
	}
	testkit.Eventually(t, idle)
}
