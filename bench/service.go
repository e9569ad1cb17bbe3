package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/bench/workload"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/open"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/service/connection"
	"github.com/geniemq/geniemq/wire"
)

// ServiceOptions say how the whole service is measured: broker, worker and load in one process, over loopback.
type ServiceOptions struct {
	// Config is the service's: its engine above all, and the NATS server to use instead of an embedded one. Indexes, NATSListen,
	// DataDir and Admin are the measurement's own.
	Config config.Config
	// QueriesPerMessage are the modes measured, one after the other.
	QueriesPerMessage []int
	// HitsForm is how the answers write their hits. Default a list of objects.
	HitsForm wire.HitsForm
	// Tables writes messages of many queries as tables. Default a list of queries.
	Tables bool
	// Queries is how many queries a round sends at least. Default 20,000.
	Queries int
	// RoundTime is how long a round lasts at least, by the rate seen while warming up. Default 1s.
	RoundTime time.Duration
	// Rounds is how many rounds of service and echo worker alternate in a mode. Default 5.
	Rounds int
	// Window bounds the queries that are sent and not answered. Default 4,096.
	Window int
	// Load is the share of the measured throughput at which latency is measured. Default 0.7.
	Load float64
	// LoadTime is for how long latency is measured. Default 5s.
	LoadTime time.Duration
	// Progress is told what is being done.
	Progress func(format string, args ...any)
}

func (o *ServiceOptions) ensureDefaults() {
	o.Queries = cmp.Or(o.Queries, 20_000)
	o.RoundTime = cmp.Or(o.RoundTime, time.Second)
	o.Rounds = cmp.Or(o.Rounds, 5)
	o.Window = cmp.Or(o.Window, 4096)
	o.Load = cmp.Or(o.Load, 0.7)
	o.LoadTime = cmp.Or(o.LoadTime, 5*time.Second)
}

// ServiceResult is one line of `geniemq bench service`: one mode. Rates are queries per second, medians over the rounds.
type ServiceResult struct {
	Workload          string `json:"workload"`
	Engine            string `json:"engine"`
	Device            string `json:"device"`
	Objects           int    `json:"objects"`
	K                 int    `json:"k"`
	Seed              uint64 `json:"seed"`
	QueriesPerMessage int    `json:"queries_per_message"`
	Queries           int    `json:"queries"`
	Rounds            int    `json:"rounds"`
	QueryBytes        int    `json:"query_bytes"`       // of one message
	Tables            bool   `json:"tables,omitempty"`  // which is a table
	AnswerBytes       int    `json:"answer_bytes"`      // to one message
	Columns           bool   `json:"columns,omitempty"` // they hold hits as columns

	// EngineRate is the engine alone, in batches of its own size; EngineShare what the service keeps of it.
	EngineRate  float64 `json:"engine_qps"`
	ServiceRate float64 `json:"service_qps"`
	EngineShare float64 `json:"engine_share"`
	// EchoRate is a worker that pulls, publishes an answer of the same size and acks, and does nothing else; EchoShare
	// is the median over the rounds of service / echo, measured in turns.
	EchoRate  float64 `json:"echo_qps"`
	EchoShare float64 `json:"echo_share"`
	// ServiceWork and EchoWork are what a query took of the cores while there was service or echo, broker and load included, in microseconds. Where others
	// use the machine, too, they say more than rates do.
	ServiceWork float64 `json:"service_us"`
	EchoWork    float64 `json:"echo_us"`

	// EngineBusy is the share of the time of the rounds in which the engine had a batch, BatchSize the mean of its
	// batches: where the engine is not the limit, they say whether it waits or runs small batches.
	EngineBusy float64 `json:"engine_busy"`
	BatchSize  float64 `json:"batch_size"`

	// Latency of a message, in milliseconds, from when it was due to its answer: with the window full, and at Load of
	// ServiceRate.
	Saturated LatencyResult `json:"saturated"`
	Load      float64       `json:"load"`
	LoadRate  float64       `json:"load_qps"`
	AtLoad    LatencyResult `json:"at_load"`
	// EchoAtLoad is the echo worker's at the same rate: what of the service's own is the broker's and the machine's.
	EchoAtLoad LatencyResult `json:"echo_at_load"`

	Wrong   int    `json:"wrong"` // answers that are an error or differ from the engine's own
	Command string `json:"command"`
}

// LatencyResult is the distribution of the latencies of many messages, in milliseconds.
type LatencyResult struct {
	Messages int     `json:"messages"`
	P50      float64 `json:"p50_ms"`
	P99      float64 `json:"p99_ms"`
	Max      float64 `json:"max_ms"`
	// LateP99 is by how much the load itself was late: part of the latency, and not the service's doing.
	LateP99 float64 `json:"sent_late_p99_ms"`
	// Stages are where the time went, by what the answers say of their last query.
	Stages *StageLatencies `json:"stages,omitempty"`
}

// StageLatencies are the parts of the latencies. They add up for a message, not for percentiles.
type StageLatencies struct {
	Queue   StageLatency `json:"queue"`   // from the stream's timestamp until decoded: the broker's way to the worker, and decoding
	Batch   StageLatency `json:"batch"`   // until an executor has its batch
	Engine  StageLatency `json:"engine"`  // in the engine
	Respond StageLatency `json:"respond"` // until the answer of its message is being encoded, when all of its queries are done
	Outside StageLatency `json:"outside"` // publishing the query, and encoding, storing and delivering the answer
}

// StageLatency is one part, in milliseconds.
type StageLatency struct {
	P50     float64 `json:"p50_ms"`
	P99     float64 `json:"p99_ms"`
	Slowest float64 `json:"of_slowest_ms"` // mean of the slowest hundredth of the messages: what makes the tail
}

const (
	benchIndex = "bench"
	echoIndex  = "echo"
)

// Service measures the whole service on a workload, one result a mode.
func Service(ctx context.Context, w *workload.Workload, opts ServiceOptions) ([]*ServiceResult, error) {
	opts.ensureDefaults()
	if _, ok := wire.AppendTable(nil, wire.MessagePack, w.Queries); opts.Tables && !ok {
		return nil, fmt.Errorf("the queries of %s have not one shape: measure them without --tables", w.Name)
	}
	var results []*ServiceResult
	var before *alone
	err := withTraffic(ctx, w, opts.Config, opts.HitsForm, opts.Progress, func(l *traffic, svc *service.Service, a *alone) error {
		before, l.tables = a, opts.Tables
		for _, size := range opts.QueriesPerMessage {
			r, err := measureMode(ctx, l, svc, size, opts)
			if err != nil {
				return fmt.Errorf("%d queries per message: %w", size, err)
			}
			results = append(results, r)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	after, err := measureAlone(ctx, w, &opts.Config) // and not only before: a device may be slow to begin with
	if err != nil {
		return nil, err
	}
	rate := median(append(before.rates, after.rates...))
	for _, r := range results {
		r.Workload, r.Engine, r.Device, r.Objects = w.Name, after.info.Kind, after.info.Device, w.Options.Objects
		r.K, r.Seed, r.Load, r.Rounds = w.Options.K, w.Options.Seed, opts.Load, opts.Rounds
		r.EngineRate, r.EngineShare = rate, r.ServiceRate/rate
	}
	return results, nil
}

// serving has a service of the workload's index for as long as do runs, with a server of its own unless cfg names one. do is given cfg with the server's address.
func serving(ctx context.Context, w *workload.Workload, cfg config.Config, do func(*service.Service, *config.Config) error) error {
	dir, err := os.MkdirTemp("", "geniemq-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "bench.gmq")
	if err := os.WriteFile(path, w.File, 0o600); err != nil {
		return err
	}
	cfg.Indexes = []config.IndexSource{{Name: benchIndex, Path: path}}
	cfg.NATSListen, cfg.DataDir, cfg.Admin = "127.0.0.1:0", filepath.Join(dir, "streams"), config.Off
	svc, err := service.Start(ctx, cfg, service.Options{})
	if err != nil {
		return fmt.Errorf("starting the service: %w", err)
	}
	if cfg.Embedded() {
		cfg.NATS = svc.NATSURL()
	}
	err = do(svc, &cfg)
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return errors.Join(err, svc.Shutdown(stop))
}

// alone is an engine measured without a service.
type alone struct {
	info    gpuexec.Info
	rates   []float64 // with as many batches at a time as keep it busy
	answers []gpuexec.Answer
}

// measureAlone opens the engine of cfg and measures it.
func measureAlone(ctx context.Context, w *workload.Workload, cfg *config.Config) (*alone, error) {
	settings, err := cfg.EngineOptions()
	if err != nil {
		return nil, err
	}
	engine, err := open.Engine(cfg.Engine, settings)
	if err != nil {
		return nil, err
	}
	a := &alone{info: engine.Info(), answers: make([]gpuexec.Answer, len(w.Plans))}
	return a, errors.Join(a.measure(ctx, w, engine), engine.Close())
}

func (a *alone) measure(ctx context.Context, w *workload.Workload, engine gpuexec.Engine) error {
	searcher, err := engine.Load(ctx, w.Index)
	if err != nil {
		return err
	}
	defer searcher.Close()
	var pass time.Duration
	for range 2 { // the first one warms up
		start := time.Now()
		if _, err := searchAll(ctx, searcher, w.Plans, a.answers); err != nil {
			return err
		}
		pass = time.Since(start)
	}
	repeats := max(2, int(200*time.Millisecond/max(pass, 1)))
	callers := max(1, searcher.Capacity().InFlight)
	for range 5 {
		r, err := throughput(ctx, searcher, w.Plans, callers, repeats, new(checks))
		if err != nil {
			return err
		}
		a.rates = append(a.rates, r.QueriesPerSecond)
	}
	return nil
}

// roundBytes bounds the answers of a round. They are stored, and purged only after it.
const roundBytes = 1 << 30

func measureMode(ctx context.Context, l *traffic, svc *service.Service, size int, opts ServiceOptions) (*ServiceResult, error) {
	messages := max(1, opts.Queries/size)
	window := max(1, opts.Window/size)
	r := &ServiceResult{QueriesPerMessage: size, Columns: opts.HitsForm != wire.HitsList, Tables: opts.Tables && size > 1}

	warm, err := l.run(ctx, stint{index: benchIndex, size: size, messages: min(messages, 4*window), window: window})
	if err != nil {
		return nil, err
	}
	r.QueryBytes, r.AnswerBytes = len(l.messages[size][0]), len(warm.sample)
	echo, err := startEcho(ctx, l.server, r.QueryBytes, warm.sample)
	if err != nil {
		return nil, fmt.Errorf("starting the echo worker: %w", err)
	}
	defer echo.stop()
	if _, err := l.run(ctx, stint{index: echoIndex, size: size, messages: min(messages, 4*window), window: window}); err != nil {
		return nil, err
	}

	most := max(1, roundBytes/max(1, r.AnswerBytes))
	messages = min(most, max(messages, int(warm.rate*opts.RoundTime.Seconds())/size))
	r.Queries = messages * size
	full := stint{index: benchIndex, size: size, messages: messages, window: window}
	var rates, echoes, shares []float64
	var saturated latencies
	var busy, took, work, echoWork time.Duration
	var batches, batched float64
	for round := range opts.Rounds {
		opts.Progress("messages of %d: round %d of %d, %d queries", size, round+1, opts.Rounds, r.Queries)
		before := svc.Status()
		start, worked := time.Now(), processorTime()
		real, err := l.run(ctx, full)
		if err != nil {
			return nil, err
		}
		took += time.Since(start)
		work += processorTime() - worked
		after := svc.Status()
		busy += after.EngineBusy - before.EngineBusy
		for i, x := range after.Indexes {
			batches += float64(x.Batches - before.Indexes[i].Batches)
			batched += float64(x.Batches)*x.PerBatch - float64(before.Indexes[i].Batches)*before.Indexes[i].PerBatch
		}
		worked = processorTime()
		mock, err := l.run(ctx, full.on(echoIndex))
		if err != nil {
			return nil, err
		}
		echoWork += processorTime() - worked
		r.Wrong += real.wrong
		rates, echoes = append(rates, real.rate), append(echoes, mock.rate)
		shares = append(shares, real.rate/mock.rate)
		saturated.add(real)
	}
	r.ServiceRate, r.EchoRate, r.EchoShare = median(rates), median(echoes), median(shares)
	all := float64(opts.Rounds * r.Queries)
	r.ServiceWork, r.EchoWork = 1e6*work.Seconds()/all, 1e6*echoWork.Seconds()/all
	r.Saturated = saturated.result()
	r.EngineBusy, r.BatchSize = busy.Seconds()/took.Seconds(), batched/max(1, batches)

	return r, r.atLoad(ctx, l, size, most, opts)
}

// atLoad measures latencies at a share of the rate that the service reached, in messages of so many queries and rounds of so many
// messages at most: service and echo worker in turns.
func (r *ServiceResult) atLoad(ctx context.Context, l *traffic, size, most int, opts ServiceOptions) error {
	paced := stint{index: benchIndex, size: size, rate: opts.Load * r.ServiceRate}
	total := max(1, int(paced.rate*opts.LoadTime.Seconds())/size)
	opts.Progress("messages of %d: latency at %.0f queries per second", size, paced.rate)
	var real, mock latencies
	var rates []float64
	for sent := 0; sent < total; sent += paced.messages {
		paced.messages = min(most, total-sent)
		part, err := l.run(ctx, paced)
		if err != nil {
			return err
		}
		r.Wrong += part.wrong
		rates = append(rates, part.rate)
		real.add(part)
		if part, err = l.run(ctx, paced.on(echoIndex)); err != nil {
			return err
		}
		mock.add(part)
	}
	r.LoadRate, r.AtLoad, r.EchoAtLoad = median(rates), real.result(), mock.result()
	return nil
}

// echo is the yardstick: a worker over the same streams that only pulls, publishes and acks. It has what a good
// worker has, asynchronous publishing and acks after confirmation, and no work to do.
type echo struct {
	nc      *nats.Conn
	consume jetstream.ConsumeContext
	done    chan struct{}
	queue   chan echoed
}

type echoed struct {
	msg    jetstream.Msg
	future jetstream.PubAckFuture
}

// echoUnread bounds the bytes of messages that the echo worker has asked for: the library drops what is more than 64 MiB, and it would come again after 30 seconds.
const echoUnread = 32 << 20

func startEcho(ctx context.Context, server *config.Config, messageBytes int, answer []byte) (*echo, error) {
	nc, _, err := connection.Connect(server, "geniemq bench")
	if err != nil {
		return nil, err
	}
	js, err := connection.JetStreamOf(nc, server, jetstream.WithPublishAsyncMaxPending(8192))
	if err != nil {
		return nil, err
	}
	subjects, err := wire.NewSubjects(wire.DefaultPrefix)
	if err != nil {
		return nil, err
	}
	durable, err := js.CreateOrUpdateConsumer(ctx, subjects.QueryStream(), jetstream.ConsumerConfig{
		Durable: "geniemq-" + echoIndex, FilterSubject: subjects.Query(echoIndex), AckPolicy: jetstream.AckExplicitPolicy,
		MaxAckPending: 8192,
	})
	if err != nil {
		return nil, err
	}
	e := &echo{nc: nc, done: make(chan struct{}), queue: make(chan echoed, 8192)}
	go func() {
		defer close(e.done)
		for x := range e.queue {
			select {
			case <-x.future.Ok():
				_ = x.msg.Ack()
			case <-x.future.Err(): //nolint:errcheck // its message comes again
			}
		}
	}()
	e.consume, err = durable.Consume(func(msg jetstream.Msg) {
		out := nats.NewMsg(msg.Headers().Get(wire.HeaderReply))
		out.Header.Set(wire.HeaderMsgID, echoIndex+"."+msg.Headers().Get(wire.HeaderMsgID))
		out.Header.Set(wire.HeaderQueryID, msg.Headers().Get(wire.HeaderMsgID))
		out.Data = answer
		if future, err := js.PublishMsgAsync(out); err == nil {
			e.queue <- echoed{msg, future}
		}
	}, jetstream.PullMaxMessages(min(4096, 1+echoUnread/messageBytes)))
	return e, err
}

func (e *echo) stop() {
	e.consume.Stop()
	<-e.consume.Closed()
	close(e.queue)
	<-e.done
	e.nc.Close()
}
