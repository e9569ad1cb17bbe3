package repeats

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// What anybody can cause is logged once, and then as a count.
func TestRepeatsAreCounted(t *testing.T) {
	var log strings.Builder
	r := New(time.Hour)
	base := slog.New(slog.NewTextHandler(&log, nil))
	one, two := r.Logger(base.With("index", "a")), r.Logger(base.With("index", "b"))
	for i := range 1000 {
		one.With("sequence", i).Warn("bad", "error", errors.New("x"))
		one.Info("good")
	}
	two.Warn("bad")
	one.Error("bad") // another kind
	lines := func(words ...string) (n int) {
		for line := range strings.Lines(log.String()) {
			all := true
			for _, word := range words {
				all = all && strings.Contains(line, word)
			}
			if all {
				n++
			}
		}
		return n
	}
	if n := lines("WARN", "index=a", "sequence=0"); n != 1 || lines("WARN", "index=a") != 1 || lines("WARN", "index=b") != 1 ||
		lines("ERROR") != 1 || lines("INFO") != 1000 {
		t.Errorf("the log:\n%.2000s", log.String())
	}
	r.flush()
	if lines("WARN", "index=a", "sequence=999", "times=999") != 1 || lines("times=") != 1 {
		t.Errorf("the log:\n%.2000s", log.String())
	}
	r.flush() // nothing came of it: it is forgotten
	one.Warn("bad")
	if lines("WARN", "index=a") != 3 {
		t.Errorf("the log:\n%.2000s", log.String())
	}
	before := len(log.String())
	for i := range 100_000 { // texts from outside
		one.Warn(fmt.Sprint(i))
	}
	if n := len(r.kinds); n > maxKinds+1 {
		t.Errorf("%d kinds are remembered", n)
	}
	if n := strings.Count(log.String()[before:], "\n"); n > maxKinds+1 {
		t.Errorf("%d lines", n)
	}
}
