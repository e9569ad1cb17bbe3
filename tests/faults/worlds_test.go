package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/geniemq/geniemq/tests/faults/judge"
)

// The report adds up what worlds did, and shows each with how it ended.
func TestReport(t *testing.T) {
	name := faults[0].name
	r := Report{Took: time.Hour, Missing: map[string]error{faults[1].name: errors.New("not root")}, Outcomes: []*Outcome{
		{World: 1, Seed: 7, Took: time.Hour, Faults: 100, Recovery: map[string][]time.Duration{name: {time.Second, 3 * time.Second}}, Verdict: judge.Verdict{Accepted: 10, Answered: 9, Withdrawn: 1}},
		{World: 2, Seed: 8, Took: time.Minute, Faults: 3, Recovery: map[string][]time.Duration{name: {2 * time.Second}}, ByHand: 1,
			Verdict: judge.Verdict{Accepted: 5, Answered: 4, Lost: 1, Examples: []string{"8-3 has no answer"}}, Err: errors.New("after swap: 8-3 has no answer\nand more")},
	}}
	var text bytes.Buffer
	r.Print(&text)
	for _, want := range []string{"103 faults in 1h1m0s of 2 worlds, which took 1h0m0s", "accepted 15, answered 13, withdrawn 1", "lost 1, doubled 0, wrong 0", "1 durables deleted by hand",
		"not injected: " + faults[1].name + ": not root", "8-3 has no answer\n", "time was up", "after swap: 8-3 has no answer\n", "2s   3s"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the report does not say %q:\n%s", want, text.String())
		}
	}
}

// What worlds log at the same time stays in lines, each with its world.
func TestLogOfWorlds(t *testing.T) {
	const worlds, lines = 8, 200
	var text bytes.Buffer
	shared := &sharedLog{to: &text}
	var all sync.WaitGroup
	for world := range worlds {
		log := shared.of(world+1, worlds)
		all.Go(func() {
			for i := range lines {
				fmt.Fprintf(log, "line %d\n", i)
			}
		})
	}
	all.Wait()
	for world := range worlds {
		for i := range lines {
			if line := fmt.Sprintf("world %d: line %d\n", world+1, i); strings.Count(text.String(), line) != 1 {
				t.Fatalf("%q is there %d times", line, strings.Count(text.String(), line))
			}
		}
	}
}

// Addresses of a run are given once, though nobody listens at them yet.
func TestPortsAreGivenOnce(t *testing.T) {
	var p ports
	given := make(map[string]bool)
	for range 200 {
		address, err := p.free()
		if err != nil {
			t.Fatal(err)
		}
		if given[address] {
			t.Fatalf("%s is given twice", address)
		}
		given[address] = true
	}
}
