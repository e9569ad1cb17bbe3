package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/bench/workload"
	"github.com/geniemq/geniemq/internal/bell"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/service/connection"
	"github.com/geniemq/geniemq/wire"
)

// BesideOptions say how interactive queries are measured beside those of a bulk user: broker, worker and both users in one process, over loopback.
type BesideOptions struct {
	// Config is the service's, as in ServiceOptions.
	Config config.Config
	// Bulk is how many queries the bulk user has, over all rounds.
	Bulk int
	// BulkMessage is how many of them are in a message.
	BulkMessage int
	// Rate is how many interactive queries are asked per second, one in a message, whatever comes back.
	Rate float64
	// Rounds is how often the interactive user is measured alone and then beside a share of the bulk.
	Rounds int
	// Time is for how long it is measured alone in a round, and at a time beside the bulk.
	Time time.Duration
	// Progress is told what is being done.
	Progress func(format string, args ...any)
}

// BesideResult is what `geniemq bench beside` measures: the latency of interactive queries, alone and beside bulk, in turns.
type BesideResult struct {
	Workload string `json:"workload"`
	Engine   string `json:"engine"`
	Device   string `json:"device"`
	Objects  int    `json:"objects"`
	K        int    `json:"k"`
	Seed     uint64 `json:"seed"`
	Rounds   int    `json:"rounds"`

	Bulk        int     `json:"bulk_queries"` // that were answered
	BulkMessage int     `json:"bulk_per_message"`
	BulkRate    float64 `json:"bulk_qps"` // queries per second while there were some
	Rate        float64 `json:"rate_qps"` // of the interactive user
	// Cores is how many cores' time the process had while there was bulk. Far below the cores of the machine, others had them, and the ratios say more of
	// the machine than of the service.
	Cores float64 `json:"cores"`

	Alone  LatencyResult `json:"alone"`
	Beside LatencyResult `json:"beside"`
	// P50Ratio and P99Ratio are medians over the rounds of beside / alone.
	P50Ratio float64 `json:"p50_ratio"`
	P99Ratio float64 `json:"p99_ratio"`

	Wrong   int    `json:"wrong"` // interactive answers that are an error or differ from the engine's own
	Command string `json:"command"`
}

// bulkUser is whose the bulk queries are.
const bulkUser = "bulk"

// Beside measures interactive queries alone and beside a bulk user's.
func Beside(ctx context.Context, w *workload.Workload, opts BesideOptions) (*BesideResult, error) {
	var r *BesideResult
	err := withTraffic(ctx, w, opts.Config, wire.HitsList, opts.Progress, func(l *traffic, _ *service.Service, a *alone) error {
		r = &BesideResult{
			Workload: w.Name, Engine: a.info.Kind, Device: a.info.Device, Objects: w.Options.Objects, K: w.Options.K, Seed: w.Options.Seed,
			Rounds: opts.Rounds, BulkMessage: opts.BulkMessage, Rate: opts.Rate,
		}
		return r.measure(ctx, l, opts)
	})
	return r, err
}

// measure has each round begin alone: what bulk leaves behind, such as a grown heap, is the same for both.
func (r *BesideResult) measure(ctx context.Context, l *traffic, opts BesideOptions) error {
	nc, js, err := connection.Connect(l.server, "geniemq bench bulk") // users share no connection
	if err != nil {
		return err
	}
	defer nc.Close()
	stored, err := js.Stream(ctx, l.subjects.Stream(wire.ClassBulk))
	if err != nil {
		return fmt.Errorf("looking at the stream of bulk: %w", err)
	}
	asked := stint{index: benchIndex, size: 1, messages: max(1, int(opts.Rate*opts.Time.Seconds())), rate: opts.Rate}
	if _, err := l.run(ctx, asked); err != nil { // warms up
		return err
	}
	var alone, beside latencies
	var p50, p99 []float64
	var busy, worked time.Duration
	for round := range opts.Rounds {
		opts.Progress("round %d of %d: alone", round+1, opts.Rounds)
		only, err := l.run(ctx, asked)
		if err != nil {
			return err
		}
		alone.add(only)
		r.Wrong += only.wrong
		b := &bulk{load: l, js: js, stored: stored, bodies: l.bodies(opts.BulkMessage), messages: max(1, opts.Bulk/opts.BulkMessage/opts.Rounds), size: opts.BulkMessage}
		opts.Progress("round %d of %d: beside %d bulk queries", round+1, opts.Rounds, b.messages*b.size)
		both, err := b.beside(ctx, asked)
		if err != nil {
			return err
		}
		beside.add(&both.round)
		r.Wrong += both.wrong
		r.Bulk += b.messages * b.size
		busy, worked = busy+b.took, worked+b.worked
		p50 = append(p50, median(both.latencies)/median(only.latencies))
		p99 = append(p99, percentile(both.latencies, 99)/percentile(only.latencies, 99))
	}
	r.Alone, r.Beside, r.BulkRate, r.Cores = alone.result(), beside.result(), float64(r.Bulk)/busy.Seconds(), worked.Seconds()/busy.Seconds()
	r.P50Ratio, r.P99Ratio = median(p50), median(p99)
	return nil
}

// processorTime is what this process has had of all cores.
func processorTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // fails for no process's own
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// bulk is the bulk user's share of a round.
type bulk struct {
	load     *traffic // the interactive user's
	js       jetstream.JetStream
	stored   jetstream.Stream
	bodies   [][]byte
	messages int
	size     int // queries in each
	took     time.Duration
	worked   time.Duration // of all threads of the process
	sent     atomic.Bool
}

// beside asks interactive queries for as long as bulk is there. The stint at whose end all bulk is answered is not counted: part of it was alone.
func (b *bulk) beside(ctx context.Context, asked stint) (*latencies, error) {
	began, worked, published := time.Now(), processorTime(), make(chan error, 1)
	go func() { published <- b.publish(ctx) }()
	all := new(latencies)
	for {
		part, err := b.load.run(ctx, asked)
		if err != nil {
			return nil, errors.Join(err, <-published)
		}
		info, err := b.stored.Info(ctx)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("looking at the stream of bulk: %w", err), <-published)
		}
		if b.sent.Load() && info.State.Msgs == 0 {
			break
		}
		all.add(part)
		all.wrong += part.wrong
	}
	b.took, b.worked = time.Since(began), processorTime()-worked
	if err := <-published; err != nil {
		return nil, err
	}
	if len(all.latencies) == 0 {
		return nil, fmt.Errorf("%d bulk queries were answered within %v: ask for more of them, or measure for a shorter time", b.messages*b.size, b.took.Round(time.Millisecond))
	}
	return all, nil
}

// publish publishes the share as fast as the stream takes it. A stream that has as much of a user as it may refuses more for a while.
func (b *bulk) publish(ctx context.Context) error {
	defer b.sent.Store(true)
	subject := b.load.subjects.Bulk(benchIndex, bulkUser)
	id := "bulk." + strconv.FormatInt(time.Now().UnixNano(), 36) + "."
	for i := range b.messages {
		msg := nats.NewMsg(subject)
		msg.Header.Set(wire.HeaderMsgID, id+strconv.Itoa(i))
		msg.Header.Set(wire.HeaderContentType, wire.MessagePack.String())
		msg.Data = b.bodies[i%len(b.bodies)]
		for {
			_, err := b.js.PublishMsg(ctx, msg)
			if refused := (*jetstream.APIError)(nil); errors.As(err, &refused) && bell.Sleep(ctx, 50*time.Millisecond) {
				continue
			} else if err != nil {
				return fmt.Errorf("publishing bulk message %d: %w", i, err)
			}
			break
		}
	}
	return nil
}
