package service

import (
	"log/slog"
	"sync"
	"time"
)

// rareLog logs something that others can make happen as often as they like: at once the first time, then at most once per
// interval, with how often it has happened since.
type rareLog struct {
	interval time.Duration

	mu       sync.Mutex
	next     time.Time // before which nothing is logged
	withheld int
}

// warn logs, or counts what it does not log.
func (l *rareLog) warn(log *slog.Logger, now time.Time, text string, args ...any) {
	l.mu.Lock()
	if now.Before(l.next) {
		l.withheld++
		l.mu.Unlock()
		return
	}
	withheld := l.withheld
	l.next, l.withheld = now.Add(l.interval), 0
	l.mu.Unlock()
	if withheld > 0 {
		args = append(args, "not_logged_since", withheld)
	}
	log.Warn(text, args...)
}
