package plan

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/rescoring"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/gpuexec/topk"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/verify"
)

// hostMatcher does for a batch what the CUDA engine does on the host. The device finds k objects for each query, as far as it is
// concerned.
type hostMatcher struct {
	run.Matcher
	index   *Index
	crew    *run.Crew
	policy  Policy
	in, out []byte
}

func (m *hostMatcher) Check(p *gpuexec.Plan) (uint32, error) {
	return m.index.Lists.CheckQuery(p.Query, nil)
}

func (m *hostMatcher) Residence() run.Residence { return run.Residence{} }

func (m *hostMatcher) Scan(context.Context, []*run.ScanJob, *gpuexec.Trace) error { return nil }

func (m *hostMatcher) Match(ctx context.Context, jobs []*run.Job, _ *gpuexec.Trace) error {
	b, err := NewBatch(ctx, m.index, jobs, m.crew)
	if err != nil {
		return err
	}
	defer b.Close()
	b.Executes(m.policy, roomOf(1<<30), nil)
	for p := b.Next(); p != nil; p = b.Next() {
		if err := b.Encode(m.in); err != nil {
			return err
		}
		states := abi.Array[abi.State](m.out, 0, len(p.Queries))
		at := p.Answers - p.States
		for i := range p.Queries {
			k := p.Queries[i].Job.K
			states[i] = abi.State{Kept: uint32(k)}
			for j, e := range abi.Array[topk.Entry](m.out, at, k) {
				if e == 0 {
					abi.Array[topk.Entry](m.out, at, k)[j] = topk.NewEntry(uint32(1+j), uint32(j))
				}
			}
			at += topk.EntryBytes * int64(k)
		}
		if err := b.Decode(context.Background(), m.out); err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkHost is a whole Search call on the host, on one core, without the device.
func BenchmarkHost(b *testing.B) {
	one := enginetest.Zipf("one item", 100_000, 17, 100_000, 20, 1, 10)
	for _, wl := range []enginetest.Workload{one, enginetest.Rows(70_000), enginetest.Hashed(20_000, 237)} {
		x, plans := wl.Build(b), wl.Plans()
		benchmarkHost(b, wl.Name, x, plans)
		if wl.Name == one.Name {
			benchmarkHost(b, wl.Name+", filtered", x, filteredPlans(plans))
		}
	}
	rng := rand.New(rand.NewPCG(1, 0))
	texts := make([]string, 20_000)
	for i := range texts {
		texts[i] = enginetest.RandomString(rng, "aaabcdeeefghiiijklmnooopqrstuvwxyz   ", 40)
	}
	c := enginetest.SequenceCollection(b, texts, 3)
	plans := make([]gpuexec.Plan, 1024)
	for i := range plans {
		plans[i] = c.SequencePlan(b, enginetest.Misspelt(rng, texts[i], 4), 10, 32, false)
	}
	benchmarkHost(b, "w2", c.Index, plans)
}

// filteredPlans are plans with a filter each.
func filteredPlans(plans []gpuexec.Plan) []gpuexec.Plan {
	filtered := slices.Clone(plans)
	for i := range filtered {
		f := &filter.Filter{}
		f.StartGroup(false)
		f.StartClause(0)
		f.AddSpan(uint32(i), uint32(i)+50)
		f.AddSpan(uint32(i)+60, uint32(i)+61)
		enginetest.OwnQuery(&filtered[i]).Filter = f
	}
	return filtered
}

func benchmarkHost(b *testing.B, name string, x *index.Index, plans []gpuexec.Plan) {
	crew := run.NewCrew(1)
	device := hostDevice()
	device.MaxPattern = 2048
	var texts verify.Texts
	if _, ok := plans[0].Rescore.(*verify.Nearest); ok {
		texts = x
	}
	originals, err := rescoring.Survey(context.Background(), x, texts, run.AllTiles(x), crew)
	if err != nil {
		b.Fatal(err)
	}
	p, err := Place(device, extentOf(x), originals, nil, Limits{Memory: 1 << 40})
	if err != nil {
		b.Fatal(err)
	}
	repeats := make([]uint32, len(x.Attributes()))
	for i := range repeats {
		repeats[i] = 1
	}
	m := &hostMatcher{index: NewIndex(device, p, repeats), crew: crew, policy: *hostPolicy(), in: make([]byte, 32<<20), out: make([]byte, 32<<20)}
	s := run.NewSearcher(x, crew, map[string]run.Matcher{postings.FamilyName: m}, gpuexec.Capacity{})
	for _, n := range []int{len(plans), 1} {
		answers := make([]gpuexec.Answer, n)
		b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
			b.ReportAllocs()
			var before syscall.Rusage
			_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
			for b.Loop() {
				if err := s.Search(context.Background(), plans[:n], answers, nil); err != nil {
					b.Fatal(err)
				}
			}
			var after syscall.Rusage
			_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
			b.ReportMetric(float64(after.Utime.Nano()+after.Stime.Nano()-before.Utime.Nano()-before.Stime.Nano())/float64(b.N)/float64(n), "cpu-ns/query")
		})
		for i := range answers {
			if answers[i].Err != nil {
				b.Fatal(answers[i].Err)
			}
		}
	}
}
