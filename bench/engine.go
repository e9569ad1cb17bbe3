// Package bench measures engines and the whole service on the workloads of package workload.
package bench

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/geniemq/geniemq/bench/workload"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/gpuexec/flatscan"
	"github.com/geniemq/geniemq/index/postings"
)

// EngineOptions say how an engine is measured.
type EngineOptions struct {
	Runs   int // measured batches, after one that warms up; default 7
	Checks int // queries whose answers are compared with brute force, in every run; default 8
	// Baseline also measures the flat-array scan (flatscan) on that many of the queries, on one core, and the engine
	// on one core, in turns, so that their ratio holds on a noisy machine. Default 0: not.
	Baseline int
	// Limits are the device's, to tell how much of them was reached. Default: what is known of the device by its name.
	Limits *Limits
	// Export is a folder for the vectors and answers of w1, w5 and w5sift (Workload.Export). Default: none.
	Export string
	// Scaling also measures the engine with 1, 2, 4, ... workers up to all cores. CPU engine only.
	Scaling bool
	// Callers also measures the rate of so many callers whose batches overlap. Default 0: not.
	Callers int
	// Progress is told what is being done.
	Progress func(format string, args ...any)
}

func (o *EngineOptions) ensureDefaults() {
	o.Runs = cmp.Or(o.Runs, 7)
	o.Checks = cmp.Or(o.Checks, 8)
}

// EngineResult is one line of `geniemq bench engine`. Times are milliseconds for the whole batch: medians over the
// runs, and the 99th percentile (of few runs, the largest).
type EngineResult struct {
	Workload       string  `json:"workload"`
	Engine         string  `json:"engine"`
	Device         string  `json:"device"`
	Objects        int     `json:"objects"`
	Queries        int     `json:"queries"`
	K              int     `json:"k"`
	Seed           uint64  `json:"seed"`
	Runs           int     `json:"runs"`
	BuildSeconds   float64 `json:"build_s"`
	Postings       uint64  `json:"postings"`
	BitsPerPosting float64 `json:"bits_per_posting"` // of the file
	IndexBytes     int64   `json:"index_bytes"`      // of the file
	// What is resident, in all forms that the engine derives from the file. DeviceBytes is that and the memory of batches.
	ResidentBitsPerPosting float64 `json:"resident_bits_per_posting"`
	ResidentBytes          int64   `json:"resident_bytes"`
	DeviceBytes            int64   `json:"device_bytes"`
	// Parts is in how many pieces each batch streams the index, 1 where it stays; Form says how it lies.
	Parts int    `json:"parts"`
	Form  string `json:"form"`
	// BytesPerQuery is the device memory that a batch, or the largest piece of one that does not fit, used, by its queries; on the
	// CPU, what a query is taken to need.
	BytesPerQuery int64 `json:"bytes_per_query"`
	// Scanned is how many postings the queries' keywords have. The (query, tile) kernel and the CPU engine count them one by one;
	// of the other kernels, which do not, PostingsPerSecond is an equivalent.
	Scanned           uint64  `json:"postings_scanned"`
	PostingsPerSecond float64 `json:"postings_per_s"`
	// Achieved is what share of the device's limits match and select took.
	Achieved *Achieved `json:"achieved,omitempty"`

	// Where the engine tells the stages of a batch apart (gpuexec.Trace), MatchSelect is their sum without the
	// host; elsewhere it is what is left of the total beside verification, and there are no stages.
	PlanMs           *float64 `json:"plan_ms,omitempty"`
	UploadMs         *float64 `json:"upload_ms,omitempty"`
	MatchMs          *float64 `json:"match_ms,omitempty"`
	SelectMs         *float64 `json:"select_ms,omitempty"`
	DownloadMs       *float64 `json:"download_ms,omitempty"`
	MatchSelectMs    float64  `json:"match_select_ms"`
	VerifyMs         float64  `json:"verify_ms"`
	TotalMs          float64  `json:"total_ms"`
	PlanP99Ms        *float64 `json:"plan_p99_ms,omitempty"`
	UploadP99Ms      *float64 `json:"upload_p99_ms,omitempty"`
	MatchP99Ms       *float64 `json:"match_p99_ms,omitempty"`
	SelectP99Ms      *float64 `json:"select_p99_ms,omitempty"`
	DownloadP99Ms    *float64 `json:"download_p99_ms,omitempty"`
	MatchSelectP99Ms float64  `json:"match_select_p99_ms"`
	VerifyP99Ms      float64  `json:"verify_p99_ms"`
	TotalP99Ms       float64  `json:"total_p99_ms"`

	Host *HostResult `json:"host,omitempty"`

	// Of vectors: the share of the K nearest neighbours that is found, and of how many queries.
	Recall        *float64 `json:"recall,omitempty"`
	RecallQueries int      `json:"recall_queries,omitempty"`

	Exact      int `json:"exact"`      // answers that claim to be certain
	Checked    int `json:"checked"`    // queries, in every run
	Mismatches int `json:"mismatches"` // of those with a wrong answer in any run

	Throughput *ThroughputResult `json:"throughput,omitempty"`
	Baseline   *BaselineResult   `json:"baseline,omitempty"`
	Scaling    []ScalingResult   `json:"scaling,omitempty"`
	Command    string            `json:"command"`
}

// HostResult is what the steps of a call took on the host by the clock (gpuexec.HostTrace): medians in milliseconds. Check, match, answer and rescore
// follow each other; plan, encode and decode are parts of match where the device is not the host, and what is left of match beside them
// and the stages of the device is waiting.
type HostResult struct {
	CheckMs   float64 `json:"check_ms"`
	MatchMs   float64 `json:"match_ms"`
	AnswerMs  float64 `json:"answer_ms"`
	RescoreMs float64 `json:"rescore_ms"`
	PlanMs    float64 `json:"plan_ms"`
	EncodeMs  float64 `json:"encode_ms"`
	DecodeMs  float64 `json:"decode_ms"`
	WaitMs    float64 `json:"wait_ms"` // of match: neither the host's parts nor the device's stages; 0 where these are not told apart
}

// BaselineResult compares one core of the engine with the flat-array scan, on the same queries in the same run.
type BaselineResult struct {
	Queries     int     `json:"queries"`
	ScanMs      float64 `json:"flat_scan_ms"`       // median for the queries
	CountMs     float64 `json:"flat_count_ms"`      // of that, counting without the sort
	EngineMs    float64 `json:"engine_one_core_ms"` // median for the same queries
	TimesFaster float64 `json:"times_faster"`       // median of the ratios of the pairs
	// TimesFasterThanCount is the ratio to a flat scan whose sort is free.
	TimesFasterThanCount float64 `json:"times_faster_than_flat_count"`
	Mismatches           int     `json:"mismatches"`
}

// ScalingResult is the engine with a number of workers.
type ScalingResult struct {
	Workers int     `json:"workers"`
	TotalMs float64 `json:"total_ms"`
	Speedup float64 `json:"speedup"` // over one worker: median of the ratios of runs side by side
}

// Engine measures an engine on a workload.
func Engine(ctx context.Context, w *workload.Workload, engine gpuexec.Engine, opts EngineOptions) (*EngineResult, error) {
	opts.ensureDefaults()
	info := engine.Info()
	opts.Progress("loading the index")
	searcher, err := engine.Load(ctx, w.Index)
	if err != nil {
		return nil, fmt.Errorf("loading the index: %w", err)
	}
	defer searcher.Close()
	capacity := searcher.Capacity()
	r := &EngineResult{
		Workload: w.Name, Engine: info.Kind, Device: info.Device, Objects: w.Options.Objects, Queries: len(w.Plans),
		K: w.Options.K, Seed: w.Options.Seed, Runs: opts.Runs, BuildSeconds: w.Build.Seconds(), Postings: w.Postings,
		BitsPerPosting: 8 * float64(w.Index.Size()) / float64(max(1, w.Postings)), IndexBytes: w.Index.Size(),
		ResidentBitsPerPosting: 8 * float64(capacity.IndexBytes) / float64(max(1, w.Postings)), ResidentBytes: capacity.IndexBytes,
		DeviceBytes: capacity.DeviceBytes, Parts: capacity.Parts, Form: capacity.Form, BytesPerQuery: searcher.Cost(&w.Plans[0]),
	}

	answers := make([]gpuexec.Answer, len(w.Plans))
	opts.Progress("warming up")
	if _, err := searchAll(ctx, searcher, w.Plans, answers); err != nil { // warm up, and check
		return nil, err
	}
	for _, a := range answers {
		r.Scanned += a.Units
		if a.Exact {
			r.Exact++
		}
	}
	opts.Progress("comparing answers with brute force")
	checks, err := newChecks(ctx, w, answers, opts.Checks)
	if err != nil {
		return nil, err
	}

	r.recall(w, answers)
	work, err := r.measure(ctx, searcher, w, answers, checks, info.Workers, opts.Progress)
	if err != nil {
		return nil, err
	}
	limits := opts.Limits
	if limits == nil {
		limits = knownLimits(info.Device)
	}
	if limits != nil {
		r.Achieved = limits.achieved(work, demandOf(w.Index, w.Postings, w.Plans, work), r.MatchSelectMs)
	}
	if opts.Export != "" {
		if err := w.Export(ctx, opts.Export, answers); err != nil {
			return nil, fmt.Errorf("exporting: %w", err)
		}
	}

	if opts.Callers > 0 {
		if r.Throughput, err = throughput(ctx, searcher, w.Plans, opts.Callers, opts.Runs, checks); err != nil {
			return nil, fmt.Errorf("measuring the throughput: %w", err)
		}
	}
	r.Checked, r.Mismatches = len(checks.queries), checks.mismatches()
	return r, r.compare(ctx, w, opts, info.Workers)
}

// measure runs the batch as often as it is to be, fills in its times, and returns what was done in the last one.
func (r *EngineResult) measure(ctx context.Context, searcher gpuexec.Searcher, w *workload.Workload, answers []gpuexec.Answer, checks *checks,
	workers int, progress func(string, ...any)) (gpuexec.Work, error) {
	var total, verify, match []float64
	var stages, calls []gpuexec.Trace
	for run := range r.Runs {
		progress("batch %d of %d", run+1, r.Runs)
		start := time.Now()
		s, err := searchAll(ctx, searcher, w.Plans, answers)
		if err != nil {
			return gpuexec.Work{}, err
		}
		t := milliseconds(time.Since(start))
		checks.compare(answers)
		var v time.Duration
		for _, a := range answers {
			v += a.Rescoring
		}
		verified := milliseconds(v) / float64(max(1, workers))
		matched := t - verified
		calls = append(calls, s)
		if s.Sum() > 0 {
			matched = milliseconds(s.Match + s.Select)
			verified += milliseconds(s.Verify)
			stages = append(stages, s)
		}
		total, verify, match = append(total, t), append(verify, verified), append(match, matched)
	}
	r.Host = hostOf(calls)
	var work gpuexec.Work // of the last one
	if n := len(stages); n > 0 {
		r.stages(stages)
		work = stages[n-1].Work
	}
	if work.Bytes > 0 {
		r.BytesPerQuery = work.Bytes / int64(work.BytesQueries)
	}
	r.TotalMs, r.TotalP99Ms = median(total), percentile(total, 99)
	r.VerifyMs, r.VerifyP99Ms = median(verify), percentile(verify, 99)
	r.MatchSelectMs, r.MatchSelectP99Ms = median(match), percentile(match, 99)
	r.PostingsPerSecond = float64(r.Scanned) / r.MatchSelectMs * 1000
	return work, nil
}

// recall measures which share of the nearest neighbours was found, for 256 of the queries, or all if there are fewer.
func (r *EngineResult) recall(w *workload.Workload, answers []gpuexec.Answer) {
	n := min(256, len(answers))
	queries := make([]int, n)
	for i := range queries {
		queries[i] = i * len(answers) / n
	}
	if share, ok := w.Recall(queries, answers); ok {
		r.Recall, r.RecallQueries = &share, n
	}
}

// compare measures what the engine is compared with.
func (r *EngineResult) compare(ctx context.Context, w *workload.Workload, opts EngineOptions, workers int) (err error) {
	if opts.Baseline > 0 {
		if r.Baseline, err = baseline(ctx, w, min(opts.Baseline, len(w.Plans)), opts.Runs); err != nil {
			return fmt.Errorf("measuring the baseline: %w", err)
		}
	}
	if opts.Scaling {
		if r.Scaling, err = scaling(ctx, w, workers, opts.Runs); err != nil {
			return fmt.Errorf("measuring the scaling: %w", err)
		}
	}
	return nil
}

// searchAll runs plans in batches of the searcher's own size, and sums the stages of an engine that tells them apart.
func searchAll(ctx context.Context, s gpuexec.Searcher, plans []gpuexec.Plan, answers []gpuexec.Answer) (sum gpuexec.Trace, err error) {
	size := max(1, s.Capacity().BatchPlans)
	for lo := 0; lo < len(plans); lo += size {
		hi := min(lo+size, len(plans))
		if err := s.Search(ctx, plans[lo:hi], answers[lo:hi], &sum); err != nil {
			return sum, err
		}
	}
	return sum, nil
}

// stages fills in the stages of the runs.
func (r *EngineResult) stages(runs []gpuexec.Trace) {
	for _, f := range []struct {
		of          func(*gpuexec.Trace) time.Duration
		middle, p99 **float64
	}{
		{func(t *gpuexec.Trace) time.Duration { return t.Plan }, &r.PlanMs, &r.PlanP99Ms},
		{func(t *gpuexec.Trace) time.Duration { return t.Upload }, &r.UploadMs, &r.UploadP99Ms},
		{func(t *gpuexec.Trace) time.Duration { return t.Match }, &r.MatchMs, &r.MatchP99Ms},
		{func(t *gpuexec.Trace) time.Duration { return t.Select }, &r.SelectMs, &r.SelectP99Ms},
		{func(t *gpuexec.Trace) time.Duration { return t.Download }, &r.DownloadMs, &r.DownloadP99Ms},
	} {
		times := make([]float64, len(runs))
		for i := range runs {
			times[i] = milliseconds(f.of(&runs[i]))
		}
		middle, p99 := median(times), percentile(times, 99)
		*f.middle, *f.p99 = &middle, &p99
	}
}

// hostOf is the median of the host's steps.
func hostOf(runs []gpuexec.Trace) *HostResult {
	step := func(of func(h *gpuexec.HostTrace) time.Duration) float64 {
		var times []float64
		for i := range runs {
			times = append(times, milliseconds(of(&runs[i].Host)))
		}
		return median(times)
	}
	r := &HostResult{
		CheckMs:   step(func(h *gpuexec.HostTrace) time.Duration { return h.Check }),
		MatchMs:   step(func(h *gpuexec.HostTrace) time.Duration { return h.Match }),
		AnswerMs:  step(func(h *gpuexec.HostTrace) time.Duration { return h.Answer }),
		RescoreMs: step(func(h *gpuexec.HostTrace) time.Duration { return h.Rescore }),
		PlanMs:    step(func(h *gpuexec.HostTrace) time.Duration { return h.Plan }),
		EncodeMs:  step(func(h *gpuexec.HostTrace) time.Duration { return h.Encode }),
		DecodeMs:  step(func(h *gpuexec.HostTrace) time.Duration { return h.Decode }),
	}
	var waits []float64
	for i := range runs {
		if t := &runs[i]; t.Sum() > 0 { // which has Plan and Encode
			waits = append(waits, milliseconds(t.Host.Match-t.Host.Decode-t.Sum()))
		}
	}
	if len(waits) > 0 {
		r.WaitMs = median(waits)
	}
	return r
}

func baseline(ctx context.Context, w *workload.Workload, queries, runs int) (*BaselineResult, error) {
	if w.Plans[0].Family != postings.FamilyName {
		return nil, fmt.Errorf("workload %s counts nothing that a flat scan could count: measure it with --engine cpu, whose answers are checked too", w.Name)
	}
	engine := cpu.New(gpuexec.CPUOptions{Workers: 1})
	defer engine.Close()
	searcher, err := engine.Load(ctx, w.Index)
	if err != nil {
		return nil, err
	}
	defer searcher.Close()
	flat := flatscan.New(w.Index.Lists)
	var hits []flatscan.Hit
	plans, answers := w.Plans[:queries], make([]gpuexec.Answer, queries)
	if _, err := searchAll(ctx, searcher, plans, answers); err != nil {
		return nil, err
	}
	r := &BaselineResult{Queries: queries}
	var scans, counts, engines, ratios, countRatios []float64
	for run := range runs {
		start := time.Now()
		if _, err := searchAll(ctx, searcher, plans, answers); err != nil {
			return nil, err
		}
		fast := milliseconds(time.Since(start))
		var slow, count float64
		for i := range plans {
			start := time.Now()
			var stats flatscan.Stats
			hits, stats = flat.Search(hits[:0], queryOf(&plans[i]), plans[i].K, plans[i].MinCount)
			slow += milliseconds(time.Since(start))
			count += milliseconds(stats.Count)
			if run == 0 && plans[i].Rescore == nil && !sameHits(answers[i].Hits, hits) {
				r.Mismatches++
			}
		}
		scans, engines, ratios = append(scans, slow), append(engines, fast), append(ratios, slow/fast)
		counts, countRatios = append(counts, count), append(countRatios, count/fast)
	}
	r.ScanMs, r.EngineMs, r.TimesFaster = median(scans), median(engines), median(ratios)
	r.CountMs, r.TimesFasterThanCount = median(counts), median(countRatios)
	return r, nil
}

func sameHits(got []gpuexec.Hit, want []flatscan.Hit) bool {
	return slices.EqualFunc(got, want, func(g gpuexec.Hit, w flatscan.Hit) bool {
		return g.ID == w.ID && g.Count == w.Count
	})
}

// scaling runs the engine with 1, 2, 4, ... workers in turns, so that every ratio is of neighbours in time.
func scaling(ctx context.Context, w *workload.Workload, cores, runs int) ([]ScalingResult, error) {
	var results []ScalingResult
	var searchers []gpuexec.Searcher
	for workers := 1; ; workers = min(2*workers, cores) {
		engine := cpu.New(gpuexec.CPUOptions{Workers: workers})
		defer engine.Close()
		searcher, err := engine.Load(ctx, w.Index)
		if err != nil {
			return nil, err
		}
		defer searcher.Close()
		searchers, results = append(searchers, searcher), append(results, ScalingResult{Workers: workers})
		if workers == cores {
			break
		}
	}
	answers := make([]gpuexec.Answer, len(w.Plans))
	totals, speedups := make([][]float64, len(results)), make([][]float64, len(results))
	for range runs {
		for i, searcher := range searchers {
			start := time.Now()
			if _, err := searchAll(ctx, searcher, w.Plans, answers); err != nil {
				return nil, err
			}
			totals[i] = append(totals[i], milliseconds(time.Since(start)))
			speedups[i] = append(speedups[i], totals[0][len(totals[0])-1]/totals[i][len(totals[i])-1])
		}
	}
	for i := range results {
		results[i].TotalMs, results[i].Speedup = median(totals[i]), median(speedups[i])
	}
	return results, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func median(x []float64) float64 { return percentile(x, 50) }

// percentile is the nearest-rank percentile.
func percentile(x []float64, p float64) float64 {
	if len(x) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(x))
	rank := int(p/100*float64(len(sorted))+0.9999999) - 1
	return sorted[min(max(rank, 0), len(sorted)-1)]
}

// checks are queries spread over a batch whose answers are held against brute force once, and against what was found
// right then in every run after: brute force takes too long to repeat.
type checks struct {
	queries []int
	right   [][]gpuexec.Hit // of each query

	mu    sync.Mutex
	wrong []bool // of each query, in any run
}

// newChecks compares the answers of so many queries with brute force.
func newChecks(ctx context.Context, w *workload.Workload, answers []gpuexec.Answer, n int) (*checks, error) {
	c := new(checks)
	step := max(1, len(answers)/n)
	for i := 0; i < len(answers) && len(c.queries) < n; i += step {
		if err := ctx.Err(); err != nil { // brute force over millions takes seconds
			return nil, err
		}
		c.queries = append(c.queries, i)
		c.right = append(c.right, slices.Clone(answers[i].Hits)) // the next run reuses the memory
		c.wrong = append(c.wrong, w.Check(i, answers[i]) != nil)
	}
	return c, nil
}

// compare holds another run's answers against those that were found right: an engine gives a query the same hits each
// time. Callers may compare at the same time.
func (c *checks) compare(answers []gpuexec.Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for j, i := range c.queries {
		if answers[i].Err != nil || !slices.Equal(answers[i].Hits, c.right[j]) {
			c.wrong[j] = true
		}
	}
}

// mismatches is how many of the queries had a wrong answer in any run.
func (c *checks) mismatches() (n int) {
	for _, wrong := range c.wrong {
		if wrong {
			n++
		}
	}
	return n
}

// ThroughputResult is what an engine does when callers overlap, as the service's executors do. A caller runs the
// whole batch of the workload again and again.
type ThroughputResult struct {
	Callers          int     `json:"callers"`
	Batches          int     `json:"batches"`
	BatchesPerSecond float64 `json:"batches_per_s"`
	QueriesPerSecond float64 `json:"queries_per_s"`
	LatencyMs        float64 `json:"latency_ms"` // of a batch among others
	LatencyP99Ms     float64 `json:"latency_p99_ms"`
}

// throughput runs batches from so many callers, as many for each as a single measurement does. The rate is that of the
// batches that ended while all callers were at work: without the first of each, and without the last of each. The answers
// of each caller's last batch are compared, when the rate is over for it.
func throughput(ctx context.Context, s gpuexec.Searcher, plans []gpuexec.Plan, callers, runs int, checks *checks) (*ThroughputResult, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	total := callers * (runs + 2)
	var begun atomic.Int64
	var mu sync.Mutex
	var ends []time.Time // in ascending order
	var latencies []float64
	var working sync.WaitGroup
	for range callers {
		working.Go(func() {
			answers := make([]gpuexec.Answer, len(plans))
			ran := false
			for begun.Add(1) <= int64(total) {
				start := time.Now()
				if _, err := searchAll(ctx, s, plans, answers); err != nil {
					cancel(err)
					return
				}
				ran = true
				mu.Lock()
				ends = append(ends, time.Now())
				latencies = append(latencies, milliseconds(time.Since(start)))
				mu.Unlock()
			}
			if ran { // the others may have taken all batches
				checks.compare(answers)
			}
		})
	}
	working.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	first, last := callers-1, total-callers // when this many have ended the last begins
	latencies = latencies[first+1 : last]
	r := &ThroughputResult{Callers: callers, Batches: last - 1 - first}
	r.BatchesPerSecond = float64(r.Batches) / ends[last-1].Sub(ends[first]).Seconds()
	r.QueriesPerSecond = r.BatchesPerSecond * float64(len(plans))
	r.LatencyMs, r.LatencyP99Ms = median(latencies), percentile(latencies, 99)
	return r, nil
}
