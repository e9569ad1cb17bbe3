package enginetest

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/schema"
)

// compareLayouts searches the same plans on the same data in several layouts, in turns, and reports the median of each and the
// ratio to the first. The answers must agree.
func compareLayouts(b *testing.B, names []string, indexes []*index.Index, plans []gpuexec.Plan) {
	for _, workers := range []int{1, 2} {
		var searchers []gpuexec.Searcher
		for i, x := range indexes {
			start := time.Now()
			s, err := cpu.New(gpuexec.CPUOptions{Workers: workers}).Load(context.Background(), x)
			if err != nil {
				b.Fatal(err)
			}
			b.Logf("%s: loaded in %v, file %d bytes, %d bytes on the heap", names[i], time.Since(start), x.Size(), s.Capacity().DeviceBytes)
			searchers = append(searchers, s)
		}
		times := make([][]time.Duration, len(searchers))
		var first []gpuexec.Answer
		for round := range 6 {
			for i, s := range searchers {
				answers := make([]gpuexec.Answer, len(plans))
				start := time.Now()
				if err := s.Search(context.Background(), plans, answers, nil); err != nil {
					b.Fatal(err)
				}
				if round > 0 {
					times[i] = append(times[i], time.Since(start))
				}
				if first == nil {
					first = answers
				}
				for j := range answers {
					if !SameHits(&answers[j], &first[j]) || answers[j].Units != first[j].Units {
						b.Fatalf("%s answers plan %d differently: %d hits of %d postings (%v), want %d of %d (%v)", names[i], j,
							len(answers[j].Hits), answers[j].Units, answers[j].Err, len(first[j].Hits), first[j].Units, first[j].Err)
					}
				}
			}
		}
		postings := uint64(0)
		for i := range first {
			postings += first[i].Units
		}
		for i := range times {
			slices.Sort(times[i])
			median := times[i][len(times[i])/2]
			base := times[0][len(times[0])/2]
			b.Logf("%d cores, %-9s median %v, %.2f ns/posting/core, %.2f x %s", workers, names[i], median,
				float64(median)*float64(workers)/float64(postings), float64(base)/float64(median), names[0])
		}
	}
}

// BenchmarkLayouts compares the layouts on workloads like W4 (Adult x 20), W1 and W3, with 1,024 queries.
//
//	go test ./gpuexec/enginetest -run '^$' -bench Layouts -benchtime 1x
func BenchmarkLayouts(b *testing.B) {
	b.Run("w4", func(b *testing.B) {
		c := loadAdultIn(b, "postings", 20)
		indexes := []*index.Index{c.Index}
		sliced := loadAdultIn(b, "sliced", 20)
		indexes = append(indexes, sliced.Index)
		compareLayouts(b, []string{"postings", "sliced"}, indexes, c.AdultPlans(b, rand.New(rand.NewPCG(1, 2)), 1024, 100))
	})
	b.Run("w1", func(b *testing.B) {
		names, indexes := []string{"postings", "sliced"}, []*index.Index{}
		const objects, functions, buckets = 65_000, 237, 67
		var w *World
		for _, layout := range []schema.Layout{schema.LayoutPostings, schema.LayoutSliced} {
			w = bucketWorld(b, objects, functions, buckets, layout)
			indexes = append(indexes, w.Index)
		}
		rng := rand.New(rand.NewPCG(1, 3))
		plans := make([]gpuexec.Plan, 256)
		for i := range plans {
			m := &plans[i]
			m.K = 100
			for a, kws := range w.Objects[rng.IntN(objects)] {
				Query(m).StartItem(uint32(a), 1)
				Query(m).AddSpan(kws[0], kws[0]+1)
			}
		}
		compareLayouts(b, names, indexes, plans)
	})
	b.Run("w3", func(b *testing.B) {
		const objects, words = 500_000, 17
		names, indexes := []string{"postings", "rare"}, []*index.Index{}
		var w *World
		for _, layout := range []schema.Layout{schema.LayoutPostings, schema.LayoutRare} {
			w = wordWorld(b, objects, words, layout)
			indexes = append(indexes, w.Index)
		}
		rng := rand.New(rand.NewPCG(1, 4))
		plans := make([]gpuexec.Plan, 1024)
		for i := range plans {
			m := &plans[i]
			m.K = 100
			own := slices.Clone(w.Objects[rng.IntN(objects)][0][:12])
			slices.Sort(own)
			Query(m).StartItem(0, 1)
			for _, kw := range slices.Compact(own) {
				Query(m).AddSpan(kw, kw+1)
			}
		}
		compareLayouts(b, names, indexes, plans)
	})
}

// bucketWorld has attributes whose keywords are distributed like the buckets of a normal variable.
func bucketWorld(b *testing.B, objects, attributes int, buckets uint32, layout schema.Layout) *World {
	rng := rand.New(rand.NewPCG(1, 1))
	w := &World{Vocabulary: slices.Repeat([]uint32{buckets}, attributes), Layouts: slices.Repeat([]schema.Layout{layout}, attributes)}
	for range objects {
		object := make([][]uint32, attributes)
		for a := range object {
			bucket := float64(buckets)/2 + 9*rng.NormFloat64()
			object[a] = []uint32{uint32(max(0, min(bucket, float64(buckets-1))))}
		}
		w.Objects = append(w.Objects, object)
	}
	w.Build(b)
	return w
}

// wordWorld has documents of words with Zipf's distribution (design section 8, W3), of 1 M words.
func wordWorld(b *testing.B, objects, words int, layout schema.Layout) *World {
	rng := rand.New(rand.NewPCG(1, 1))
	zipf := rand.NewZipf(rng, 1.0001, 20, 999_999)
	w := &World{Vocabulary: []uint32{1_000_000}, Layouts: []schema.Layout{layout}}
	for range objects {
		var own []uint32
		for range words {
			own = append(own, uint32(zipf.Uint64()))
		}
		w.Objects = append(w.Objects, [][]uint32{own})
	}
	w.renumber(0)
	w.Build(b)
	return w
}
