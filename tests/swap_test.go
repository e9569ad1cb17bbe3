package tests

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service/admin"
	"github.com/geniemq/geniemq/wire"
)

// editions are those that there are, by version.
type editions struct {
	swapData
	mu        sync.Mutex
	byVersion map[string]edition
}

func newEditions(data swapData) *editions {
	return &editions{swapData: data, byVersion: make(map[string]edition)}
}

func (all *editions) add(version string, e edition) {
	all.mu.Lock()
	all.byVersion[version] = e
	all.mu.Unlock()
}

func (all *editions) of(version string) (edition, bool) {
	all.mu.Lock()
	defer all.mu.Unlock()
	e, ok := all.byVersion[version]
	return e, ok
}

// swapWorker is a worker in a process of its own whose index is swapped again and again.
type swapWorker struct {
	*process
	number      int
	file, admin string // which it serves and where it is asked to swap
	edition     int    // that answers
	version     string
	all         *editions
}

// swapEngine is $GENIEMQ_ENGINE, by default the CPU's.
func swapEngine() string { return cmp.Or(os.Getenv("GENIEMQ_ENGINE"), gpuexec.CPU) }

func startSwapWorker(t *testing.T, url string, number int, all *editions) *swapWorker {
	w := &swapWorker{number: number, all: all, file: filepath.Join(t.TempDir(), all.index()+".gmq")}
	w.publish(t)
	w.process = run(t, "serve", "--index", w.file, "--nats", url, "--admin", "127.0.0.1:0", "--pprof", "--engine", swapEngine())
	w.says("NATS")
	w.admin = strings.TrimPrefix(w.says("admin"), "http://")
	return w
}

// publish renames the next edition over the worker's file, as geniemq build does.
func (w *swapWorker) publish(t testing.TB) {
	t.Helper()
	w.edition++
	e := edition{w.number, w.edition}
	path, version := w.all.build(t, e)
	w.all.add(version, e)
	w.version = version
	if err := os.Rename(path, w.file); err != nil {
		t.Fatal(err)
	}
}

// serving is the version that the worker says it serves.
func (w *swapWorker) serving(t testing.TB) string {
	t.Helper()
	info := w.scrape(t).families["geniemq_index_info"]
	if info == nil || len(info.Metric) != 1 {
		t.Fatalf("worker %d does not say that it serves one version: %v", w.number, info)
	}
	for _, l := range info.Metric[0].Label {
		if l.GetName() == "version" {
			return l.GetValue()
		}
	}
	return ""
}

func (w *swapWorker) get(t testing.TB, path string) string {
	t.Helper()
	resp, err := http.Get("http://" + w.admin + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s of worker %d: %s %v %s", path, w.number, resp.Status, err, body)
	}
	return string(body)
}

func (w *swapWorker) scrape(t testing.TB) scraped {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(w.get(t, "/metrics")))
	if err != nil {
		t.Fatal(err)
	}
	return scraped{t, families}
}

// swap has the worker take a new edition, by its admin server or by SIGHUP, and returns when it answers.
func (w *swapWorker) swap(t testing.TB, hup bool) {
	t.Helper()
	before := w.version
	w.publish(t)
	if !hup {
		done, err := admin.Swap{Index: w.all.index(), File: w.file}.Ask(within(t), w.admin, "")
		if err != nil || done.Was != before || done.Version != w.version {
			t.Fatalf("swap %d of worker %d: %+v %v, want %s for %s\n%s", w.edition, w.number, done, err, w.version, before, w.stderr)
		}
		return
	}
	w.signal(syscall.SIGHUP)
	testkit.Eventually(t, func() error {
		if got := w.serving(t); got != w.version {
			return fmt.Errorf("worker %d serves %s after SIGHUP, not %s:\n%s", w.number, got, w.version, w.stderr)
		}
		return nil
	})
}

// holds is what a worker's process has.
type holds struct{ rss, maps, files, goroutines int } // rss in MiB

func (w *swapWorker) holds(t testing.TB) (h holds) {
	t.Helper()
	w.get(t, "/debug/pprof/goroutine?debug=1&gc=1")
	proc := fmt.Sprintf("/proc/%d/", w.cmd.Process.Pid)
	status, err := os.ReadFile(proc + "status")
	if err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(string(status), "VmRSS:")
	fmt.Sscan(line, &h.rss)
	h.rss >>= 10
	maps, err := os.ReadFile(proc + "maps")
	if err != nil {
		t.Fatal(err)
	}
	h.maps = strings.Count(string(maps), w.all.index()+".gmq")
	files, err := os.ReadDir(proc + "fd")
	if err != nil {
		t.Fatal(err)
	}
	h.files = len(files)
	h.goroutines = int(w.scrape(t).value("go_goroutines"))
	return h
}

// asked is what the load has been answered.
type asked struct {
	mu     sync.Mutex
	faults []string
	taken  map[int64][]answered // by second
	count  map[string]int       // of answers, by who asked
}

// answered is how long an answer took.
type answered struct {
	who  string
	took wire.Took
}

func (a *asked) fault(format string, args ...any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.faults) < 10 {
		a.faults = append(a.faults, fmt.Sprintf(format, args...))
	}
}

// TestSwapsUnderLoad: two workers take 200 versions each while stored and direct queries come in. Each query is answered once, each
// answer is that of the version that it names, the versions of a worker ascend in the order in which it took the messages in, and
// nothing is left of the versions that are gone.
func TestSwapsUnderLoad(t *testing.T) {
	ofProcesses(t)
	swaps := 200
	if testing.Short() {
		swaps = 12
	}
	swapUnderLoad(t, rowEditions{}, swaps, 3)
}

// TestLargeSwapsUnderLoad is TestSwapsUnderLoad with three swaps of the signatures of workload w1, as many as GENIEMQ_SWAP_OBJECTS says;
// GENIEMQ_SWAP_CACHE is a folder that keeps their files, GENIEMQ_SWAP_RATE how many stored queries per second are asked.
func TestLargeSwapsUnderLoad(t *testing.T) {
	ofProcesses(t)
	objects := 4_000
	if text := os.Getenv("GENIEMQ_SWAP_OBJECTS"); text != "" {
		var err error
		if objects, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	const swaps, warm = 3, 1
	swapUnderLoad(t, newSignatureEditions(t, objects, 2, swaps+warm), swaps, warm)
}

// swapUnderLoad has each worker swap so often, after some warm swaps, behind which it is looked at what a process has.
func swapUnderLoad(t *testing.T, data swapData, swaps, warm int) {
	if runtime.GOOS != "linux" {
		t.Skip("what a process has is read from /proc")
	}
	server := startServer(t)
	nc, js := connect(t, server.url)
	all := newEditions(data)
	workers := []*swapWorker{startSwapWorker(t, server.url, 0, all), startSwapWorker(t, server.url, 1, all)}

	load := &asked{taken: map[int64][]answered{}, count: map[string]int{}}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var asking sync.WaitGroup
	var published atomic.Int64
	rate := swapRate(t)
	asking.Go(func() { load.publish(ctx, js, all, rate, &published) })
	for range 2 {
		asking.Go(func() { load.ask(ctx, nc, all) })
	}
	testkit.Eventually(t, func() error { // warm
		for _, w := range workers {
			if w.scrape(t).value("geniemq_queries_total", "index", data.index(), "outcome", "ok") < 1000 {
				return errors.New("the workers have not answered enough")
			}
		}
		return nil
	})
	for _, w := range workers {
		for range warm {
			w.swap(t, false)
		}
	}
	before := []holds{workers[0].holds(t), workers[1].holds(t)}
	quiet := time.Now().Unix()
	time.Sleep(3 * time.Second) // windows without swaps
	begin := time.Now()
	var swapping sync.WaitGroup
	for _, w := range workers {
		swapping.Go(func() {
			for i := range swaps {
				w.swap(t, i%4 == 3)
			}
		})
	}
	swapping.Wait()
	end := time.Now()
	time.Sleep(time.Second)
	stop()
	asking.Wait()
	t.Logf("%d swaps of two workers each took %v, with %d stored and %d direct queries", swaps, end.Sub(begin).Round(time.Millisecond),
		published.Load(), load.count["direct"])
	load.checkStored(t, js, all, int(published.Load()))
	for _, fault := range load.faults {
		t.Error(fault)
	}
	load.report(t, quiet, begin.Unix(), end.Unix())
	for i, w := range workers {
		if got := w.serving(t); got != w.version {
			t.Errorf("worker %d serves %s at the end, not %s", i, got, w.version)
		}
		if page := w.get(t, "/"); !strings.Contains(page, w.version) {
			t.Errorf("the page of worker %d does not say that it serves %s", i, w.version)
		}
		var after holds
		testkit.Eventually(t, func() error { // what is collected and given back takes its time
			after = w.holds(t)
			if after.maps != 1 || after.files > before[i].files+3 || after.goroutines > before[i].goroutines+10 || after.rss > before[i].rss*5/4+32 {
				return fmt.Errorf("worker %d has %+v after the swaps, %+v before", i, after, before[i])
			}
			return nil
		})
		t.Logf("worker %d has %+v after the swaps, %+v before", i, after, before[i])
		if n := w.scrape(t).value("geniemq_swaps_total", "index", data.index(), "outcome", "done"); int(n) != swaps+warm {
			t.Errorf("worker %d counts %v swaps, not %d", i, n, swaps+warm)
		}
	}
}

// swapRate is $GENIEMQ_SWAP_RATE, by default 400 queries per second.
func swapRate(t *testing.T) int {
	rate, err := strconv.Atoi(cmp.Or(os.Getenv("GENIEMQ_SWAP_RATE"), "400"))
	if err != nil || rate < 1 {
		t.Fatalf("GENIEMQ_SWAP_RATE is no number of queries per second: %q", os.Getenv("GENIEMQ_SWAP_RATE"))
	}
	return rate
}

// publish publishes queries, so many per second, until ctx ends.
func (a *asked) publish(ctx context.Context, js jetstream.JetStream, all *editions, rate int, published *atomic.Int64) {
	const together = 8 // queries, at most
	some := min(together, rate)
	ticker := time.NewTicker(time.Duration(some) * time.Second / time.Duration(rate))
	defer ticker.Stop()
	for n := 0; ; {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		for range some {
			if _, err := js.PublishMsg(context.Background(), message("genie.query."+all.index(), all.query(n), "Nats-Msg-Id", strconv.Itoa(n))); err != nil {
				a.fault("publishing query %d: %v", n, err)
				return
			}
			n++
			published.Store(int64(n))
		}
	}
}

// ask asks one query after the other, directly, until ctx ends. The versions of each worker ascend.
func (a *asked) ask(ctx context.Context, nc *nats.Conn, all *editions) {
	last := make(map[int]int)
	for n := 0; ctx.Err() == nil; n++ {
		reply, err := nc.Request("genie.search."+all.index(), []byte(all.query(n)), patience)
		if err != nil {
			a.fault("asking query %d: %v", n, err)
			return
		}
		r, err := testkit.DecodeResult(wire.JSON, reply.Data)
		if err != nil {
			a.fault("query %d: %v in %s", n, err, reply.Data)
			return
		}
		e, ok := all.of(r.Version)
		if err := all.check(e, n, r); !ok || err != nil {
			a.fault("a direct query: version %s (known: %v): %v", r.Version, ok, err)
			return
		}
		if e.number < last[e.worker] {
			a.fault("worker %d answers from edition %d after %d", e.worker, e.number, last[e.worker])
		}
		last[e.worker] = e.number
		a.took("direct", time.Now(), r.Took)
	}
}

func (a *asked) took(who string, at time.Time, took wire.Took) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.count[who]++
	a.taken[at.Unix()] = append(a.taken[at.Unix()], answered{who, took})
}

// checkStored looks at all results: one per query, each that of the version it names, and versions of a worker that ascend with the
// queries' places in the stream.
func (a *asked) checkStored(t *testing.T, js jetstream.JetStream, all *editions, published int) {
	t.Helper()
	stream, err := js.Stream(within(t), "GENIE_RESULTS")
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, func() error {
		info, err := stream.Info(within(t))
		if err != nil || info.State.Msgs < uint64(published) {
			return fmt.Errorf("%d results of %d queries: %v", info.State.Msgs, published, err)
		}
		return nil
	})
	ordered, err := stream.OrderedConsumer(t.Context(), jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	results, err := ordered.Messages()
	if err != nil {
		t.Fatal(err)
	}
	defer results.Stop()
	info, err := stream.Info(within(t))
	if err != nil {
		t.Fatal(err)
	}
	answers := make([]int, published)
	type place struct{ sequence, edition int }
	places := make(map[int][]place)
	for left := info.State.Msgs; left > 0; left-- {
		m, err := results.Next(jetstream.NextMaxWait(patience))
		if err != nil {
			t.Fatal(err)
		}
		meta, err := m.Metadata()
		if err != nil {
			t.Fatal(err)
		}
		r := result(t, m.Data())
		n, err := strconv.Atoi(r.ID)
		if err != nil || n >= published {
			t.Fatalf("a result for query %q", r.ID)
		}
		answers[n]++
		e, ok := all.of(r.Version)
		if err := all.check(e, n, r); !ok || err != nil {
			t.Fatalf("a stored query: version %s (known: %v): %v", r.Version, ok, err)
		}
		sequence, err := strconv.Atoi(m.Headers().Get(wire.HeaderQuerySeq))
		if err != nil {
			t.Fatal(err)
		}
		places[e.worker] = append(places[e.worker], place{sequence, e.number})
		a.took("stored", meta.Timestamp, r.Took)
	}
	for n, times := range answers {
		if times != 1 {
			t.Fatalf("query %d has %d results", n, times)
		}
	}
	for worker, order := range places {
		slices.SortFunc(order, func(x, y place) int { return x.sequence - y.sequence })
		for i := 1; i < len(order); i++ {
			if order[i].edition < order[i-1].edition {
				t.Fatalf("worker %d answers query %d from edition %d, and the later query %d from edition %d", worker,
					order[i-1].sequence, order[i-1].edition, order[i].sequence, order[i].edition)
			}
		}
	}
}

// report logs the p99 in windows of a second, without swaps and with.
func (a *asked) report(t *testing.T, quiet, begin, end int64) {
	p99 := func(from, to int64) (all []time.Duration) {
		for second := from; second < to; second++ {
			if taken := a.taken[second]; len(taken) > 0 {
				slices.SortFunc(taken, func(x, y answered) int { return cmp.Compare(x.took.Total, y.took.Total) })
				all = append(all, taken[len(taken)*99/100].took.Total)
			}
		}
		slices.Sort(all)
		return all
	}
	before, during := p99(quiet+1, begin), p99(begin, end+1)
	if len(before) == 0 || len(during) == 0 {
		t.Fatal("there was no load")
	}
	usual := before[len(before)/2]
	t.Logf("p99 in windows of a second: median %v, worst %v without swaps; median %v, worst %v with swaps", usual, before[len(before)-1],
		during[len(during)/2], during[len(during)-1])
	for _, who := range []string{"direct", "stored"} {
		var all, slow int
		var sum wire.Took
		for second := begin; second <= end; second++ {
			for _, x := range a.taken[second] {
				if x.who != who {
					continue
				}
				if all++; x.took.Total > 2*usual {
					slow++
					sum.Queue += x.took.Queue
					sum.Batch += x.took.Batch
					sum.Engine += x.took.Engine
					sum.Total += x.took.Total
				}
			}
		}
		n := time.Duration(max(1, slow))
		t.Logf("%s: %d of %d answers took more than twice that, on average %v (queue %v, batch %v, engine %v)", who, slow, all, sum.Total/n, sum.Queue/n,
			sum.Batch/n, sum.Engine/n)
	}
}

// TestSwapCommand: the command says which version answers and ends with 0, or why nothing was swapped and ends with 1.
func TestSwapCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	people := buildFile(t, dir, "people.csv", peopleSchema, peopleData)
	p, url, page := serveCommand(t, "--index", people)
	address := strings.TrimPrefix(page, "http://")
	newer := buildFile(t, t.TempDir(), "people.csv", peopleSchema, strings.Replace(peopleData, "ann", "amy", 1))
	words := buildFile(t, t.TempDir(), "words.txt", wordsSchema, wordsData)
	pipe := filepath.Join(dir, "pipe.gmq")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	first := func() string {
		out, said, code := command(t, "query", "--nats", url, "--index", "people", `{"row":{"age":30},"k":1}`)
		if code != 0 {
			t.Fatalf("a query ends with %d: %s", code, said)
		}
		return keys(result(t, out))
	}
	if got := first(); got != "ann:1" {
		t.Fatalf("before: %s", got)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"people", filepath.Join(dir, "none.gmq")}, 1, "no such file"},
		{[]string{"people", words}, 1, "refused: it holds sequences"},
		{[]string{"people", pipe}, 1, "not a regular file"}, // which nobody writes to
		{[]string{"birds", newer}, 1, "does not serve"},
		{[]string{"people"}, 2, "arg"},
		{[]string{"no name", newer}, 2, "cannot be an index"},
		{[]string{"people", newer, "--admin", "off"}, 2, "SIGHUP"},
		{[]string{"people", newer, "--admin", "127.0.0.1:1"}, 1, "127.0.0.1:1"},
		{[]string{"people", newer, "--admin", strings.TrimPrefix(url, "nats://")}, 1, ""}, // listens, and is no worker's
	} {
		args := append([]string{"swap"}, c.args...)
		if !slices.Contains(args, "--admin") {
			args = append(args, "--admin", address)
		}
		out, said, code := command(t, args...)
		if code != c.code || !strings.Contains(string(said), c.says) || len(out) > 0 {
			t.Errorf("%q ends with %d, want %d: %s%s", args, code, c.code, out, said)
		}
		if got := first(); got != "ann:1" {
			t.Fatalf("after %q: %s", args, got)
		}
	}
	relative, err := filepath.Rel(mustGetwd(t), newer) // the worker may be elsewhere
	if err != nil {
		t.Fatal(err)
	}
	out, said, code := command(t, "swap", "people", relative, "--admin", address)
	if code != 0 {
		t.Fatalf("ends with %d: %s", code, said)
	}
	mustMatch(t, "the command", string(out), `^people: version [0-9a-f]{16} answers, [0-9a-f]{16} did before\n$`)
	if got := first(); got != "amy:1" {
		t.Errorf("after the swap: %s\n%s", got, p.stderr)
	}
}

func mustGetwd(t testing.TB) string {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
