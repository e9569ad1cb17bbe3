package service

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// The clock of a worker may be an hour off, either way: a query with a timeout is answered, one whose timeout is over when
// the worker comes is not, the times in answers are those that have passed, and what nobody serves is swept as soon as ever.
func TestClocksDiffer(t *testing.T) {
	for _, skew := range []time.Duration{time.Hour, -time.Hour, 0} {
		t.Run(fmt.Sprint(skew), func(t *testing.T) {
			engine := &gated{gate: make(chan struct{})}
			var log lockedBuffer
			s, nc, js := startService(t, config.Config{}, Options{
				OpenEngine: engine.open, Logger: slog.New(slog.NewTextHandler(&log, nil)),
				Now: func() time.Time { return time.Now().Add(skew) },
			})
			if got := s.clock.Skew(); (got + skew).Abs() > time.Minute {
				t.Errorf("the server's clock is said to be %v ahead of one that is %v ahead", got, skew)
			}
			if warned := strings.Contains(log.String(), "clock"); warned != (skew != 0) {
				t.Errorf("a skew of %v was warned about: %v", skew, warned)
			}
			if _, err := js.Publish(t.Context(), "genie.query.nobody", []byte(`{"row":{"n":1}}`)); err != nil {
				t.Fatal(err)
			}
			ask := func(timeout time.Duration) *nats.Subscription {
				t.Helper()
				sub, err := nc.SubscribeSync(nc.NewInbox())
				if err != nil {
					t.Fatal(err)
				}
				msg := nats.NewMsg("genie.query.rows")
				msg.Header["Genie-Reply"] = []string{sub.Subject}
				msg.Data = []byte(`{"row":{"n":7}}`)
				if timeout > 0 {
					msg.Data = fmt.Appendf(nil, `{"row":{"n":7},"timeout_ms":%d}`, timeout.Milliseconds())
				}
				if _, err := js.PublishMsg(t.Context(), msg); err != nil {
					t.Fatal(err)
				}
				return sub
			}
			// The executors are held up, so that what follows waits for longer than the shortest timeout.
			var blockers []*nats.Subscription
			for int(engine.inside.Load()) < executors {
				blockers = append(blockers, ask(0))
				time.Sleep(10 * time.Millisecond)
			}
			start := time.Now()
			short, long := ask(time.Second), ask(30*time.Minute)
			time.Sleep(2 * time.Second)
			close(engine.gate)
			answer := func(sub *nats.Subscription) *wire.Result {
				t.Helper()
				msg, err := sub.NextMsg(patience)
				if err != nil {
					t.Fatal(err)
				}
				res, err := testkit.DecodeResult(wire.JSON, msg.Data)
				if err != nil {
					t.Fatal(err)
				}
				return res
			}
			if res := answer(short); res.Err == nil || res.Err.Code != wire.DeadlineExceeded {
				t.Errorf("a query that waited for twice its timeout got %+v", res)
			}
			res := answer(long)
			if res.Err != nil {
				t.Fatalf("a query that waited for 2 s of its 30 minutes: %v", res.Err)
			}
			passed := time.Since(start)
			if took := res.Took; took.Total < 2*time.Second-200*time.Millisecond || took.Total > passed+200*time.Millisecond || took.Queue < 0 || took.Queue > took.Total {
				t.Errorf("times %+v, %v have passed", took, passed)
			}
			for _, sub := range blockers {
				if res := answer(sub); res.Err != nil {
					t.Errorf("%v", res.Err)
				}
			}
			testkit.Eventually(t, func() error {
				m, err := js.Stream(t.Context(), "GENIE_DEAD")
				if err != nil {
					return err
				}
				if n := m.CachedInfo().State.Msgs; n != 1 {
					return fmt.Errorf("%d dead letters", n)
				}
				return nil
			})
		})
	}
}

// lockedBuffer is a log that may be read while it is written.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
