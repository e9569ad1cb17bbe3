//go:build unix

package enginetest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/open"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/nearest"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
)

// againstSet is data that docs/benchmarks/cpu.py has written, and how they are asked for.
type againstSet struct {
	Name, Schema string
	Dims         int // 0: texts, a line each
	K            int
	Ways         []struct {
		Method string
		Recall float64
	}
}

// againstTime is how long a way is asked, three times at least: an engine that has just been started has memory and threads still to be made.
const againstTime = 300 * time.Millisecond

// TestAgainst answers the queries of docs/benchmarks/cpu.py, and says how long one core worked for each or, where there are several (GOMAXPROCS), how long it took by the clock. It is
// started by that script, with its folder.
func TestAgainst(t *testing.T) {
	dir := os.Getenv("GENIEMQ_AGAINST")
	if dir == "" {
		t.Skip("figures for docs/benchmarks: docs/benchmarks/cpu.py starts it")
	}
	text, err := os.ReadFile(filepath.Join(dir, "sets.json"))
	if err != nil {
		t.Fatal(err)
	}
	var sets []againstSet
	if err := json.Unmarshal(text, &sets); err != nil {
		t.Fatal(err)
	}
	cores, seconds := runtime.GOMAXPROCS(0), coreSeconds
	if began := time.Now(); cores > 1 {
		seconds = func(*testing.T) float64 { return time.Since(began).Seconds() }
	}
	if workers, err := strconv.Atoi(os.Getenv("GENIEMQ_AGAINST_WORKERS")); err == nil { // more of them than cores show what is lost by cutting a batch
		cores = workers
	}
	engine, err := open.Engine(gpuexec.CPU, gpuexec.Options{CPU: gpuexec.CPUOptions{Workers: cores}})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	for _, s := range sets {
		x := s.open(t, dir)
		queries, err := index.NewQueries(x)
		if err != nil {
			t.Fatal(err)
		}
		on := LoadOn(t, engine, x)
		for _, w := range s.Ways {
			var plans []gpuexec.Plan
			for _, c := range s.objects(t, dir, "queries") {
				r := index.Request{Vector: c.Vector, Near: nearest.Near{K: s.K, Method: w.Method, Recall: w.Recall}}
				if s.Dims == 0 {
					r.Text = &c.Values[0]
				}
				made, err := queries.Plan(new(postings.MatchQuery), &r)
				if err != nil {
					t.Fatal(err)
				}
				plans = append(plans, gpuexec.Plan{Family: made.Family, Query: made.Query, K: s.K})
			}
			answers, took := make([]gpuexec.Answer, len(plans)), []float64{}
			for began := time.Now(); len(took) < 3 || time.Since(began) < againstTime; {
				start := seconds(t)
				if err := on.Search(t.Context(), plans, answers, nil); err != nil {
					t.Fatal(err)
				}
				took = append(took, (seconds(t)-start)*1e6/float64(len(plans)))
			}
			slices.Sort(took)
			s.report(t, dir, fmt.Sprintf("%s-%v", w.Method, w.Recall), took[len(took)/2], answers)
		}
		closeSearcher(t, on)
	}
}

// report prints a line and writes which objects were found.
func (s *againstSet) report(t *testing.T, dir, way string, micros float64, answers []gpuexec.Answer) {
	t.Helper()
	var ids []byte
	for _, a := range answers {
		if a.Err != nil || len(a.Hits) != s.K {
			t.Fatalf("%s: %d hits, %v", s.Name, len(a.Hits), a.Err)
		}
		for _, h := range a.Hits {
			ids = binary.LittleEndian.AppendUint32(ids, h.ID)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, s.Name+"."+way+".u32"), ids, 0o644); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("{\"set\":%q,\"way\":%q,\"us\":%.2f}\n", s.Name, way, micros)
}

// open is the index of a set, which is built when it is not there yet.
func (s *againstSet) open(t *testing.T, dir string) *index.Index {
	t.Helper()
	path := filepath.Join(dir, s.Name+".gmq")
	if _, err := os.Stat(path); err != nil {
		parsed, err := index.Builtin().ParseSchema([]byte(s.Schema))
		if err != nil {
			t.Fatal(err)
		}
		objects, err := onebyone.NewObjects(parsed, index.BuilderOptions{Workers: runtime.GOMAXPROCS(0)})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range s.objects(t, dir, "base") {
			if err := objects.Add(&schema.Record{Cells: []schema.Cell{c}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := objects.WriteFile(t.Context(), path, nil); err != nil {
			t.Fatal(err)
		}
	}
	x, err := index.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	return x
}

// objects are the objects or queries of a set.
func (s *againstSet) objects(t *testing.T, dir, what string) (cells []schema.Cell) {
	t.Helper()
	if s.Dims == 0 {
		text, err := os.ReadFile(filepath.Join(dir, s.Name+"."+what+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			cells = append(cells, schema.Cell{Values: []string{strings.TrimSuffix(line, "\n")}})
		}
		return cells
	}
	data, err := os.ReadFile(filepath.Join(dir, s.Name+"."+what+".f32"))
	if err != nil {
		t.Fatal(err)
	}
	for ; len(data) > 0; data = data[4*s.Dims:] {
		v := make([]float32, s.Dims)
		for i := range v {
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		}
		cells = append(cells, schema.Cell{Vector: v})
	}
	return cells
}

// coreSeconds are those that cores have worked for this process.
func coreSeconds(t *testing.T) float64 {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}
