// Package repeats keeps a log from being filled by what happens again and again.
package repeats

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/geniemq/geniemq/internal/bell"
)

const (
	// Interval is how often what is logged again and again is logged as a count.
	Interval = 10 * time.Second
	// maxKinds bounds the kinds that are told apart; the text of some comes from outside.
	maxKinds = 256
)

// Limiter keeps warnings and errors from filling the log that anybody can cause by publishing messages. The first of each kind is
// logged at once. Those that follow are counted, and once per interval the last of them is logged with the count. A kind is
// a logger, a level and a message; what differs from one record to the next belongs into the attributes.
type Limiter struct {
	interval time.Duration

	mu    sync.Mutex
	kinds map[kind]*repeated
}

type kind struct {
	log     *limited
	level   slog.Level
	message string
}

// repeated is what came of a kind since the last word on it.
type repeated struct {
	times  int
	last   slog.Record
	logger slog.Handler // with the attributes of the last
}

// New is a limiter that logs counts every interval.
func New(interval time.Duration) *Limiter {
	return &Limiter{interval: interval, kinds: make(map[kind]*repeated)}
}

// Logger returns a logger whose warnings and errors are limited, each kind on its own.
func (r *Limiter) Logger(log *slog.Logger) *slog.Logger {
	l := &limited{Handler: log.Handler(), limiter: r}
	l.root = l
	return slog.New(l)
}

// Run logs the counts every interval, and a last time when ctx ends.
func (r *Limiter) Run(ctx context.Context) {
	for ok := true; ok; {
		ok = bell.Sleep(ctx, r.interval)
		r.flush()
	}
}

// flush logs the counts. A kind of which nothing came is forgotten: its next one is a first one.
func (r *Limiter) flush() {
	r.mu.Lock()
	var due []repeated
	for of, k := range r.kinds {
		if k.times == 0 {
			delete(r.kinds, of)
			continue
		}
		due = append(due, *k)
		*k = repeated{}
	}
	r.mu.Unlock()
	for _, k := range due {
		k.last.AddAttrs(slog.Int("times", k.times))
		_ = k.logger.Handle(context.Background(), k.last) // as a logger does
	}
}

// admit says whether a record is the first of its kind, and counts it otherwise.
func (r *Limiter) admit(of kind, record slog.Record, handler slog.Handler) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.kinds[of]
	if k == nil && len(r.kinds) >= maxKinds {
		of.message = ""
		k = r.kinds[of]
	}
	if k == nil {
		r.kinds[of] = &repeated{}
		return true
	}
	k.times, k.last, k.logger = k.times+1, record.Clone(), handler
	return false
}

// limited is the handler of a limited logger, or of one made of it by With.
type limited struct {
	slog.Handler
	limiter *Limiter
	root    *limited
}

func (l *limited) Handle(ctx context.Context, record slog.Record) error {
	if record.Level >= slog.LevelWarn && !l.limiter.admit(kind{l.root, record.Level, record.Message}, record, l.Handler) {
		return nil
	}
	return l.Handler.Handle(ctx, record)
}

func (l *limited) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &limited{l.Handler.WithAttrs(attrs), l.limiter, l.root}
}

func (l *limited) WithGroup(name string) slog.Handler {
	return &limited{l.Handler.WithGroup(name), l.limiter, l.root}
}
