package service

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// repeatInterval is how often what is logged again and again is logged as a count.
	repeatInterval = 10 * time.Second
	// maxRepeatKinds bounds the kinds that are told apart; the text of some comes from outside.
	maxRepeatKinds = 256
)

// repeats keeps warnings and errors that anybody can cause, by publishing messages, from filling the log. Of each kind the first is
// logged at once; those that follow are counted, and every interval the last of them is logged with the count. A kind is a
// level and a message; what differs from one to the next belongs into the attributes.
type repeats struct {
	interval time.Duration

	mu    sync.Mutex
	kinds map[repeatKind]*repeated
}

type repeatKind struct {
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

func newRepeats(interval time.Duration) *repeats {
	return &repeats{interval: interval, kinds: make(map[repeatKind]*repeated)}
}

// limit returns a logger whose warnings and errors are limited, each kind on its own.
func (r *repeats) limit(log *slog.Logger) *slog.Logger {
	l := &limited{Handler: log.Handler(), repeats: r}
	l.root = l
	return slog.New(l)
}

// run logs the counts every interval, and a last time when ctx ends.
func (r *repeats) run(ctx context.Context) {
	ticker := time.NewTicker(r.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			r.flush()
		case <-ctx.Done():
			r.flush()
			return
		}
	}
}

// flush logs the counts. A kind of which nothing came is forgotten: its next one is a first one.
func (r *repeats) flush() {
	r.mu.Lock()
	var due []repeated
	for kind, k := range r.kinds {
		if k.times == 0 {
			delete(r.kinds, kind)
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
func (r *repeats) admit(kind repeatKind, record slog.Record, handler slog.Handler) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.kinds[kind]
	if k == nil && len(r.kinds) >= maxRepeatKinds {
		kind.message = ""
		k = r.kinds[kind]
	}
	if k == nil {
		r.kinds[kind] = &repeated{}
		return true
	}
	k.times, k.last, k.logger = k.times+1, record.Clone(), handler
	return false
}

// limited is the handler of a limited logger, or of one made of it by With.
type limited struct {
	slog.Handler
	repeats *repeats
	root    *limited
}

func (l *limited) Handle(ctx context.Context, record slog.Record) error {
	if record.Level >= slog.LevelWarn && !l.repeats.admit(repeatKind{l.root, record.Level, record.Message}, record, l.Handler) {
		return nil
	}
	return l.Handler.Handle(ctx, record)
}

func (l *limited) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &limited{l.Handler.WithAttrs(attrs), l.repeats, l.root}
}

func (l *limited) WithGroup(name string) slog.Handler {
	return &limited{l.Handler.WithGroup(name), l.repeats, l.root}
}

func (s *Service) openRepeats(context.Context) error {
	s.background("log of repeats", s.repeats.run)
	return nil
}

// connect connects to the server, and logs the errors of the connection: whoever may publish can cause as many as messages.
func (s *Service) connect(url, name string) (*nats.Conn, error) {
	nc, err := connect(url, name, &s.cfg, s.log)
	if err != nil {
		return nil, err
	}
	log := s.repeats.limit(s.log.With("connection", name))
	nc.SetErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
		log := log
		if sub != nil {
			log = log.With("subject", sub.Subject)
		}
		log.Error("NATS: "+kindOf(err), "error", err)
	})
	return nc, nil
}

// kindOf is what an error of a connection has in common with others like it: its text up to what it quotes.
func kindOf(err error) string {
	kind, _, _ := strings.Cut(err.Error(), `"`)
	return strings.TrimSpace(strings.TrimPrefix(kind, "nats: "))
}
