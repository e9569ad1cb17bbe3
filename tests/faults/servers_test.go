package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// The judge takes servers' clocks into account as the conductor has set them, and no further: what they do not explain is a fault as ever.
func TestJudgeKnowsTheClocks(t *testing.T) {
	seed := seeded.Seed(t)
	own, now := newCrowd(seed), time.Now().Add(-3*time.Hour)
	const n = timedEvery - 1 // has a timeout
	_, asked := question(seed, n)
	id, right := questionID(seed, n), own.answer(asked)
	ask := accepted{id, now, now.Add(time.Second)}.line()
	start := turn{now.Add(-time.Hour), "n1", started, 0}
	set := func(at time.Duration, ahead time.Duration) turn { return turn{now.Add(at), "n1", clockSet, ahead} }
	answer := func(sequence uint64, stored, read time.Duration, text string) string {
		return answered{"1", sequence, now.Add(stored), now.Add(read), id, "v0", text}.line()
	}
	twice := answer(1, 2*time.Second, 2*time.Second, right) + answer(2, 20*time.Second, 20*time.Second, right)
	for _, c := range []struct {
		name                           string
		turns                          []turn
		answers                        string
		doubled, wrong, expired, again int
	}{
		{"no clock was set", nil, twice, 1, 0, 0, 0},
		{"set forward by less than the window", []turn{set(5*time.Second, 5*time.Minute), set(10*time.Second, 0)}, twice, 1, 0, 0, 0},
		{"set forward by more, between the two", []turn{set(5*time.Second, time.Hour), set(10*time.Second, 0)}, twice, 0, 0, 0, 1},
		{"set forward by more, before the query", []turn{set(-50*time.Second, time.Hour), set(-40*time.Second, 0)}, twice, 1, 0, 0, 0},
		{"set forward by more, after both", []turn{set(50*time.Second, time.Hour), set(60*time.Second, 0)}, twice, 1, 0, 0, 0},
		{"set back, and nobody forgot", []turn{set(5*time.Second, -time.Minute), set(10*time.Second, 0)}, twice, 1, 0, 0, 0},
		{"set back, and started anew between the two", []turn{set(5*time.Second, -time.Minute), set(10*time.Second, 0), {now.Add(15 * time.Second), "n1", started, 0}}, twice, 0, 0, 0, 1},
		{"started anew between the two", []turn{{now.Add(15 * time.Second), "n1", started, 0}}, twice, 1, 0, 0, 0},
		{"too late, and no clock was set", nil, answer(1, 2*time.Second, 2*time.Second, tooLate), 0, 1, 0, 0},
		{"too late by a clock", []turn{set(time.Second, time.Hour)}, answer(1, time.Hour, 9*time.Second, tooLate), 0, 0, 1, 0},
		{"too late, by a clock that was set by less", []turn{set(time.Second, 20*time.Minute)}, answer(1, 20*time.Minute, 9*time.Second, tooLate), 0, 1, 0, 0},
		{"too late, by a clock that was right again", []turn{set(-9*time.Minute, time.Hour), set(-8*time.Minute, 0)}, answer(1, 9*time.Second, 9*time.Second, tooLate), 0, 1, 0, 0},
	} {
		dir, servers := t.TempDir(), start.line()
		for _, one := range c.turns {
			servers += one.line()
		}
		for file, text := range map[string]string{versionsLog: fmt.Sprintf("v0\t%d\n", seed), acceptedLog: ask, answersLog: c.answers, serversLog: servers} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		v, err := judge(dir, seed)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if v.Lost != 0 || v.Doubled != c.doubled || v.Wrong != c.wrong || v.Expired != c.expired || v.Again != c.again {
			t.Errorf("%s: %+v", c.name, v)
		}
	}
}

// A part's clock jumps when it is set, and what it measures does not.
func TestStepsAreReal(t *testing.T) {
	if testing.Short() {
		t.Skip("builds everything that knows the time")
	}
	dir := t.TempDir()
	if err := buildStepped(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	p := &part{name: "clock", role: "clock", dir: dir}
	c, err := newClock(p, steppedProgram(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer c.file.Close()
	if err := c.set(-largestStep); err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	<-p.ended
	text, err := os.ReadFile(filepath.Join(dir, "clock.log"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(text))
	if len(lines) != 3 {
		t.Fatalf("it says %q", text)
	}
	first, err := moment(lines[0])
	if err != nil {
		t.Fatal(err)
	}
	if behind := before.Sub(first); behind > largestStep || behind < largestStep-time.Since(before) {
		t.Errorf("its clock is %v behind one that is an hour ahead of it", behind)
	}
	for i, ahead := range map[int]bool{1: true, 2: false} { // it has set its own clock to an hour ahead: seen by the time of day, and not by what has passed
		took, err := time.ParseDuration(lines[i])
		if err != nil {
			t.Fatal(err)
		}
		if (took >= 2*largestStep) != ahead || took < 0 {
			t.Errorf("a step of two hours measures %v", took)
		}
	}
}
