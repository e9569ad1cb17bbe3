package service

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// What happens all the time is logged at once, then once an interval with how often it happened in between.
func TestRareLog(t *testing.T) {
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(&text, nil))
	l := rareLog{interval: time.Minute}
	start := time.Unix(0, 0)
	for second := range 121 {
		l.warn(log, start.Add(time.Duration(second)*time.Second), "again", "second", second)
	}
	l.warn(log, start.Add(time.Hour), "again", "second", 3600)
	var got []string
	for line := range strings.Lines(text.String()) {
		_, said, _ := strings.Cut(strings.TrimSpace(line), "msg=again ")
		got = append(got, said)
	}
	want := "second=0, second=60 not_logged_since=59, second=120 not_logged_since=59, second=3600"
	if strings.Join(got, ", ") != want {
		t.Errorf("logged %q, want %s", got, want)
	}
}
