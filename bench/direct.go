package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/geniemq/geniemq/bench/workload"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/service/connection"
	"github.com/geniemq/geniemq/wire"
)

// DirectOptions say how direct search is measured: broker, worker and callers in one process, over loopback.
type DirectOptions struct {
	// Config is the service's: its engine above all, and the NATS server to use instead of an embedded one.
	Config config.Config
	// Callers ask one query after the other, each as soon as it has its answer.
	Callers int
	// Connections to the server are shared by the callers.
	Connections int
	// Rounds of service and echo in turns.
	Rounds int
	// Time is how long a round lasts.
	Time time.Duration
	// Progress is told what is being done.
	Progress func(format string, args ...any)
}

// DirectResult is the line of `geniemq bench direct`. Rates are queries per second, medians over the rounds.
type DirectResult struct {
	Workload    string `json:"workload"`
	Engine      string `json:"engine"`
	Device      string `json:"device"`
	Objects     int    `json:"objects"`
	K           int    `json:"k"`
	Seed        uint64 `json:"seed"`
	Callers     int    `json:"callers"`
	Connections int    `json:"connections"`
	Rounds      int    `json:"rounds"`
	AnswerBytes int    `json:"answer_bytes"`

	Rate float64 `json:"direct_qps"`
	// EchoRate is that of a NATS micro service which answers the same callers with as many bytes and does nothing else; EchoShare is the median over the
	// rounds of direct / echo, measured in turns.
	EchoRate  float64 `json:"echo_qps"`
	EchoShare float64 `json:"echo_share"`

	Latency     LatencyResult `json:"latency"`
	EchoLatency LatencyResult `json:"echo_latency"`
	// StageUs are the means of what answers say of their time, in microseconds.
	StageUs DirectStages `json:"stage_us"`

	Wrong   int    `json:"wrong"` // answers that are an error or differ from the engine's own
	Command string `json:"command"`
}

// DirectStages are the parts of a direct answer's time in the worker; what is left of the latency is the broker's and the caller's.
type DirectStages struct {
	Queue  float64 `json:"queue"`
	Batch  float64 `json:"batch"`
	Engine float64 `json:"engine"`
	Total  float64 `json:"total"`
}

// Direct measures direct search by callers of one query each, beside an echo.
func Direct(ctx context.Context, w *workload.Workload, opts DirectOptions) (*DirectResult, error) {
	var r *DirectResult
	err := withTraffic(ctx, w, opts.Config, wire.HitsList, opts.Progress, func(l *traffic, _ *service.Service, a *alone) error {
		r = &DirectResult{
			Workload: w.Name, Engine: a.info.Kind, Device: a.info.Device, Objects: w.Options.Objects, K: w.Options.K, Seed: w.Options.Seed,
			Callers: opts.Callers, Connections: opts.Connections, Rounds: opts.Rounds,
		}
		return r.measure(ctx, l, opts)
	})
	return r, err
}

func (r *DirectResult) measure(ctx context.Context, l *traffic, opts DirectOptions) error {
	callers := callers{load: l, bodies: l.bodies(1), number: opts.Callers}
	for range opts.Connections {
		nc, _, err := connection.Connect(l.server, "geniemq bench")
		if err != nil {
			return err
		}
		defer nc.Close()
		callers.conns = append(callers.conns, nc)
	}
	warm, err := callers.run(ctx, benchIndex, opts.Time/4)
	if err != nil {
		return err
	}
	r.AnswerBytes = len(warm.sample)
	stop, err := answerAll(l.server, l.subjects.Search(echoIndex), warm.sample)
	if err != nil {
		return fmt.Errorf("starting the echo: %w", err)
	}
	if err := r.rounds(ctx, &callers, opts); err != nil {
		return errors.Join(err, stop())
	}
	return stop()
}

// rounds has the service and the echo answer in turns.
func (r *DirectResult) rounds(ctx context.Context, c *callers, opts DirectOptions) error {
	if _, err := c.run(ctx, echoIndex, opts.Time/4); err != nil { // warms up
		return err
	}
	var rates, echoes, shares []float64
	var direct, echo latencies
	var told wire.Took
	var tells int
	for i := range opts.Rounds {
		opts.Progress("%d callers: round %d of %d", opts.Callers, i+1, opts.Rounds)
		real, err := c.run(ctx, benchIndex, opts.Time)
		if err != nil {
			return err
		}
		mock, err := c.run(ctx, echoIndex, opts.Time)
		if err != nil {
			return err
		}
		rates, echoes, shares = append(rates, real.rate), append(echoes, mock.rate), append(shares, real.rate/mock.rate)
		direct.add(&real.round)
		echo.add(&mock.round)
		r.Wrong += real.wrong
		for _, t := range real.tooks {
			told.Queue, told.Batch, told.Engine, told.Total = told.Queue+t.Queue, told.Batch+t.Batch, told.Engine+t.Engine, told.Total+t.Total
		}
		tells += len(real.tooks)
	}
	r.Rate, r.EchoRate, r.EchoShare = median(rates), median(echoes), median(shares)
	r.Latency, r.EchoLatency = direct.result(), echo.result()
	mean := func(d time.Duration) float64 { return 1000 * milliseconds(d) / float64(max(1, tells)) }
	r.StageUs = DirectStages{mean(told.Queue), mean(told.Batch), mean(told.Engine), mean(told.Total)}
	return nil
}

// answerAll has a NATS micro service answer whatever comes to a subject. stop ends it.
func answerAll(cfg *config.Config, subject string, answer []byte) (stop func() error, err error) {
	nc, _, err := connection.Connect(cfg, "geniemq bench echo")
	if err != nil {
		return nil, err
	}
	s, err := micro.AddService(nc, micro.Config{Name: echoIndex, Version: "1.0.0"})
	if err == nil {
		err = s.AddEndpoint(echoIndex, micro.HandlerFunc(func(req micro.Request) {
			_ = req.Respond(answer) // who is not answered says so
		}), micro.WithEndpointSubject(subject))
	}
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	return func() error {
		defer nc.Close()
		return s.Stop()
	}, nil
}

// callers ask one query after the other, each as soon as it has its answer.
type callers struct {
	load   *traffic
	conns  []*nats.Conn
	bodies [][]byte
	number int
}

// asked is what callers measured together.
type asked struct {
	round
	tooks []wire.Took // of the answers that are compared
}

// run has all callers ask an index for so long. The last answers come after it; the rate is that until the last one.
func (c *callers) run(ctx context.Context, index string, span time.Duration) (*asked, error) {
	ctx, cancel := context.WithTimeout(ctx, span+answerPatience)
	defer cancel()
	subject := c.load.subjects.Search(index)
	var next atomic.Int64
	var mu sync.Mutex
	var all asked
	var failed error
	start := time.Now()
	var group sync.WaitGroup
	for i := range c.number {
		group.Go(func() {
			one, err := c.ask(ctx, c.conns[i%len(c.conns)], subject, index == benchIndex, start.Add(span), &next)
			mu.Lock()
			defer mu.Unlock()
			all.latencies, all.tooks = append(all.latencies, one.latencies...), append(all.tooks, one.tooks...)
			all.wrong += one.wrong
			if all.sample == nil {
				all.sample = one.sample
			}
			failed = errors.Join(failed, err)
		})
	}
	group.Wait()
	all.rate = float64(len(all.latencies)) / time.Since(start).Seconds()
	return &all, failed
}

// ask is one caller, until the end. Every checkEvery-th answer is compared with the engine's own where it is the service's.
func (c *callers) ask(ctx context.Context, nc *nats.Conn, subject string, compare bool, end time.Time, next *atomic.Int64) (asked, error) {
	var a asked
	for begin := time.Now(); begin.Before(end); begin = time.Now() {
		i := int(next.Add(1) - 1)
		msg := nats.NewMsg(subject)
		msg.Header.Set(wire.HeaderContentType, wire.MessagePack.String())
		msg.Data = c.bodies[i%len(c.bodies)]
		answer, err := nc.RequestMsgWithContext(ctx, msg)
		if err != nil {
			return a, fmt.Errorf("asking %s: %w", subject, err)
		}
		a.latencies = append(a.latencies, milliseconds(time.Since(begin)))
		if a.sample == nil {
			a.sample = answer.Data
		}
		if compare && i%checkEvery == 0 {
			a.tooks = append(a.tooks, lastTook(answer.Data))
			a.wrong += c.load.wrong(answer.Data, i%len(c.bodies), 1)
		}
	}
	return a, nil
}
