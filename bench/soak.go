package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/geniemq/geniemq/bench/workload"
	"github.com/geniemq/geniemq/service/broker"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// SoakOptions say how a worker is watched for hours: a process of its own, with the server and the load in this one. What the server remembers, such as ids of answers
// for ten minutes, comes and goes by the gigabyte and would hide what the worker does.
type SoakOptions struct {
	// Serve is the program with its first arguments, such as geniemq serve. Flags follow.
	Serve []string
	// Config is the worker's: its engine alone is used.
	Config config.Config
	// For is how long the load goes on.
	For time.Duration
	// Load is the share of what the worker reaches that it is asked for.
	Load              float64
	QueriesPerMessage int
	// Interval is how often the worker is looked at.
	Interval time.Duration
	// Progress is told what is being done.
	Progress func(format string, args ...any)
}

// soakWindow bounds the queries that are sent and not answered while it is found out what the worker reaches.
const soakWindow = 4096

// warming is for how long a worker fills what it keeps.
const warming = 5 * time.Minute

// SoakResult is what `geniemq bench soak` measures.
type SoakResult struct {
	Workload string `json:"workload"`
	Objects  int    `json:"objects"`
	K        int    `json:"k"`
	Seed     uint64 `json:"seed"`

	QueriesPerMessage int     `json:"queries_per_message"`
	Reached           float64 `json:"reached_qps"` // before, with the window full
	Load              float64 `json:"load"`
	Rate              float64 `json:"rate_qps"` // answered per second, over all of the time
	Queries           int     `json:"queries"`
	Seconds           float64 `json:"seconds"`
	Samples           int     `json:"samples"` // after warming, which is not counted

	Memory      Trend `json:"resident_bytes"`
	Heap        Trend `json:"heap_goal_bytes"` // at which garbage is collected next: twice what was alive, where what is allocated goes up and down between
	Goroutines  Trend `json:"goroutines"`
	Descriptors Trend `json:"descriptors"`

	Latency LatencyResult `json:"latency"`
	Wrong   int           `json:"wrong"` // answers that are an error or differ from the engine's own
	Command string        `json:"command"`
}

// Grows says whether anything does. What is unclear may.
func (r *SoakResult) Grows() bool {
	return slices.ContainsFunc([]Trend{r.Memory, r.Heap, r.Goroutines, r.Descriptors}, func(t Trend) bool { return t.Verdict == grows })
}

// Trend is how a figure goes, by a straight line through all samples and not by the first and the last of them.
//
// Samples that follow each other resemble each other, as a collection of garbage is seen in several. So the line goes through the means of blocks of consecutive samples,
// which are nearly independent, and the interval is that of Student's distribution for them.
type Trend struct {
	Mean float64 `json:"mean"`
	// PerHour is the slope as a share of the mean, with the ends of its 95 % interval.
	PerHour float64 `json:"per_hour"`
	Low     float64 `json:"per_hour_low"`
	High    float64 `json:"per_hour_high"`
	Verdict string  `json:"verdict"`
}

const (
	flat    = "flat"    // the interval is below tolerance
	grows   = "grows"   // it is above 0, and not below tolerance
	unclear = "unclear" // it has both: measure for longer

	tolerance = 0.01 // of the mean, per hour: what doubles in four days is found in an hour
	blocks    = 20
)

// student is the quantile 0.975 of Student's distribution with blocks less two degrees of freedom.
const student = 2.101

// trendOf is the trend of samples that were taken at equal distances over some time.
func trendOf(samples []float64, took time.Duration) Trend {
	t := Trend{Mean: mean(samples), Verdict: unclear}
	if len(samples) < blocks || t.Mean == 0 {
		return t
	}
	var at, means [blocks]float64 // hours; shares of the mean
	for i := range blocks {
		from, to := i*len(samples)/blocks, (i+1)*len(samples)/blocks
		at[i] = took.Hours() * float64(from+to) / 2 / float64(len(samples))
		means[i] = mean(samples[from:to]) / t.Mean
	}
	middle, level := mean(at[:]), mean(means[:])
	var spread, rise, rest float64
	for i := range blocks {
		spread += (at[i] - middle) * (at[i] - middle)
		rise += (at[i] - middle) * (means[i] - level)
	}
	t.PerHour = rise / spread
	for i := range blocks {
		off := means[i] - level - t.PerHour*(at[i]-middle)
		rest += off * off
	}
	half := student * math.Sqrt(rest/(blocks-2)/spread)
	t.Low, t.High = t.PerHour-half, t.PerHour+half
	switch {
	case t.High < tolerance:
		t.Verdict = flat
	case t.Low > 0:
		t.Verdict = grows
	}
	return t
}

func mean(x []float64) (sum float64) {
	for _, v := range x {
		sum += v / float64(len(x))
	}
	return sum
}

// Soak asks a worker for a share of what it reaches and watches it.
func Soak(ctx context.Context, w *workload.Workload, opts SoakOptions) (r *SoakResult, err error) {
	dir, err := os.MkdirTemp("", "geniemq-soak-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	opts.Progress("measuring the engine alone")
	a, err := measureAlone(ctx, w, &opts.Config)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "bench.gmq")
	if err := os.WriteFile(path, w.File, 0o600); err != nil {
		return nil, err
	}
	server, err := broker.Start(ctx, broker.Options{Listen: "127.0.0.1:0", DataDir: filepath.Join(dir, "streams")})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Shutdown()) }()
	watched, err := startWatched(ctx, append(opts.Serve[:len(opts.Serve):len(opts.Serve)], "--index", benchIndex+"="+path, "--nats", server.URL(),
		"--admin", "127.0.0.1:0", "--engine", opts.Config.Engine, "--engine-threads", fmt.Sprint(opts.Config.EngineThreads)))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, watched.stop()) }()
	l, err := newTraffic(ctx, &config.Config{NATS: server.URL()}, w, a.answers, wire.HitsList)
	if err != nil {
		return nil, err
	}
	defer l.close()
	r = &SoakResult{Workload: w.Name, Objects: w.Options.Objects, K: w.Options.K, Seed: w.Options.Seed, QueriesPerMessage: opts.QueriesPerMessage, Load: opts.Load}
	return r, r.measure(ctx, l, watched, opts)
}

func (r *SoakResult) measure(ctx context.Context, l *traffic, watched *watched, opts SoakOptions) error {
	size := opts.QueriesPerMessage
	full := stint{index: benchIndex, size: size, messages: max(1, 4*soakWindow/size), window: max(1, soakWindow/size)}
	var rates []float64
	for end := time.Now().Add(opts.Interval); time.Now().Before(end) || len(rates) < 5; {
		opts.Progress("finding out what the worker reaches")
		part, err := l.run(ctx, full)
		if err != nil {
			return err
		}
		rates = append(rates, part.rate)
	}
	r.Reached = median(rates)
	paced := stint{index: benchIndex, size: size, rate: opts.Load * r.Reached}
	paced.messages = max(1, int(paced.rate*opts.Interval.Seconds())/size)
	var all latencies
	var samples [4][]float64
	began := time.Now()
	counted := began
	for time.Since(began) < opts.For {
		opts.Progress("%v of %v at %.0f queries per second", time.Since(began).Round(time.Second), opts.For, paced.rate)
		part, err := l.run(ctx, paced)
		if err != nil {
			return err
		}
		r.Wrong += part.wrong
		r.Queries += paced.messages * size
		if time.Since(began) < min(warming, opts.For/2) {
			counted = time.Now()
			continue
		}
		part.stages = [stages][]float64{} // an hour's would take more than what is watched
		all.add(part)
		now, err := watched.look(ctx)
		if err != nil {
			return err
		}
		for i, name := range []string{"process_resident_memory_bytes", "go_memstats_next_gc_bytes", "go_goroutines", "process_open_fds"} {
			samples[i] = append(samples[i], now[name])
		}
	}
	took := time.Since(began)
	r.Seconds, r.Rate, r.Samples, r.Latency = took.Seconds(), float64(r.Queries)/took.Seconds(), len(samples[0]), all.result()
	for i, trend := range []*Trend{&r.Memory, &r.Heap, &r.Goroutines, &r.Descriptors} {
		*trend = trendOf(samples[i], time.Since(counted))
	}
	return nil
}

// watched is a worker that is a process of its own. Who made it stops it.
type watched struct {
	cmd   *exec.Cmd
	admin string
	said  sync.WaitGroup // what reads its standard error
	last  []string       // lines of it
}

// startWatched starts a worker and waits until it says where it is.
func startWatched(ctx context.Context, command []string) (*watched, error) {
	w := &watched{cmd: exec.Command(command[0], command[1:]...)}
	said, err := w.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := w.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the worker: %w", err)
	}
	started := make(chan bool, 1)
	w.said.Go(func() {
		lines := bufio.NewScanner(said)
		for lines.Scan() {
			if url, ok := strings.CutPrefix(lines.Text(), "admin "); ok {
				w.admin = strings.TrimSpace(url)
				started <- true
			}
			if w.last = append(w.last, lines.Text()); len(w.last) > 20 {
				w.last = w.last[1:]
			}
		}
		_, _ = io.Copy(io.Discard, said) // a line that was too long
		close(started)
	})
	select {
	case ok := <-started:
		if ok {
			return w, nil
		}
		err = errors.New("it ended")
	case <-ctx.Done():
		err = ctx.Err()
	}
	_ = w.cmd.Process.Kill()
	w.said.Wait()
	_ = w.cmd.Wait()
	return nil, fmt.Errorf("the worker did not start: %w: %s", err, strings.Join(w.last, "\n"))
}

// look reads the worker's gauges.
func (w *watched) look(ctx context.Context) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.admin+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("look at the worker: %w", err)
	}
	defer response.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return nil, fmt.Errorf("look at the worker: %w", err)
	}
	all := make(map[string]float64)
	for name, family := range families {
		if g := family.GetMetric()[0].GetGauge(); g != nil {
			all[name] = g.GetValue()
		}
	}
	return all, nil
}

// stop ends the worker in order, and says so if it does not.
func (w *watched) stop() error {
	err := w.cmd.Process.Signal(syscall.SIGTERM)
	w.said.Wait()
	if err := errors.Join(err, w.cmd.Wait()); err != nil {
		return fmt.Errorf("the worker ended badly: %w: %s", err, strings.Join(w.last, "\n"))
	}
	return nil
}
