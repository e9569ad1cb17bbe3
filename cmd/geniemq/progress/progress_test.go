package progress

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestRate(t *testing.T) {
	if got := rate(1_234_567, 1_000_000, 4*time.Second); got != "1,234,567 rows, 250,000 rows/s" {
		t.Error(got)
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1000: "-1,000", -100: "-100"} {
		if got := grouped(n); got != want {
			t.Errorf("%d is %q, not %q", n, got, want)
		}
	}
}

func TestLeft(t *testing.T) {
	for want, c := range map[string]struct {
		took        time.Duration
		done, total int64
	}{
		", 30s left": {10 * time.Second, 25, 100}, ", 1h1m40s left": {100 * time.Second, 1, 38}, ", 0s left": {time.Minute, 100, 100}, "": {time.Second, 1, 2},
	} {
		if got := left(c.took, c.done, c.total); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	if left(time.Minute, 0, 10)+left(time.Minute, 5, -1) != "" {
		t.Error("what nobody can tell is told")
	}
}

// TestLine: a terminal is shown rows and their rate, anything else nothing. Before there is a rate nothing is shown, and one time alone, that which is left.
func TestLine(t *testing.T) {
	var shown, hidden bytes.Buffer
	for out, terminal := range map[*bytes.Buffer]bool{&shown: true, &hidden: false} {
		l := New(out, terminal, "reading x.csv", Options{Total: 1000, Bytes: true})
		l.Total(2000)
		l.Set(400, 10_000)
		l.told = l.told.Add(-every)
		l.Set(500, 12_000)
		l.Clear()
		l.Finish()
	}
	if text := shown.String(); !strings.Contains(text, "reading x.csv: 12,000 rows, ") || !strings.Contains(text, "25%") || strings.Contains(text, "10,000") || strings.Contains(text, "s]") {
		t.Errorf("shown: %q", text)
	}
	if hidden.Len() > 0 {
		t.Errorf("hidden: %q", hidden.String())
	}
}
