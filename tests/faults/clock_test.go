package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/geniemq/geniemq/tests/faults/history"
)

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
	first, err := history.Moment(lines[0])
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
