package enginetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/load"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/internal/testkit/naive"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestSequencesAgainstBruteForce: certified answers are those of the definition, ids, counts, ties and all; answers
// that claim to be exact without certify too; the others are the best of the candidates.
func TestSequencesAgainstBruteForce(t *testing.T) {
	rng := seeded.Rand(t)
	all := engines(t)
	exact, filtered, unsure := 0, 0, 0
	for range 150 {
		var texts []string
		base := RandomString(rng, "abcdé", 1+rng.IntN(20))
		for range rng.IntN(150) {
			switch rng.IntN(5) {
			case 0:
				texts = append(texts, RandomString(rng, "abcdé", rng.IntN(20)))
			case 1:
				texts = append(texts, "")
			default:
				texts = append(texts, Misspelt(rng, base, rng.IntN(6)))
			}
		}
		ngram := 1 + rng.IntN(4)
		c := SequenceCollection(t, texts, ngram)
		s := LoadOn(t, all[rng.IntN(len(all))], c.Index)
		var plans []gpuexec.Plan
		for range 20 {
			k := 1 + rng.IntN(12)
			plan := c.SequencePlan(t, Misspelt(rng, base+"a", rng.IntN(3))+"b", k, 1+rng.IntN(20), rng.IntN(2) == 0)
			if rng.IntN(3) == 0 {
				plan.MinCount = uint32(rng.IntN(6))
			}
			if rng.IntN(3) == 0 {
				Query(&plan).Filter = gramFilter(rng, c.Index.Attribute(0).Keywords)
			}
			Query(&plan).Total = rng.IntN(2) == 0
			plans = append(plans, plan)
		}
		grams := keywordsOf(c.Index.Lists)
		for i, a := range Search(t, s, plans) {
			m := &plans[i]
			passes := func(id uint32) bool {
				f := Query(m).Filter
				return f == nil || naive.Passes(f, func(uint32) []uint32 { return grams[id] }, nil)
			}
			total := uint64(0)
			for id := range texts {
				if Query(m).Total && passes(uint32(id)) {
					total++
				}
			}
			if a.Total != total {
				t.Fatalf("plan %d: total %d, want %d", i, a.Total, total)
			}
			want := slices.DeleteFunc(Nearest(texts, string(TextOf(m)), ngram, m.MinCount), func(h gpuexec.Hit) bool { return !passes(h.ID) })
			candidates := slices.DeleteFunc(slices.Clone(want), func(h gpuexec.Hit) bool { return h.Count == 0 })
			want = want[:min(len(want), m.Wanted())]
			if a.Err != nil {
				t.Fatal(a.Err)
			}
			if m.Certify && !a.Exact {
				t.Fatalf("plan %d asks for certainty and is not exact", i)
			}
			mck := uint32(0)
			if len(a.Hits) == m.Wanted() {
				mck = a.Hits[m.Wanted()-1].Count
			}
			if a.MCK != mck {
				t.Fatalf("plan %d: mc_k %d, want %d", i, a.MCK, mck)
			}
			if a.Exact {
				exact++
				if Query(m).Filter != nil {
					filtered++
				}
				if !slices.Equal(a.Hits, want) {
					t.Fatalf("plan %d, %q, n = %d, k = %d, K = %d, min count %d:\ngot  %v\nwant %v", i, string(TextOf(m)), ngram, m.Wanted(), m.K, m.MinCount, a.Hits, want)
				}
				continue
			}
			unsure++
			slices.SortFunc(candidates, func(a, b gpuexec.Hit) int {
				if a.Count != b.Count {
					return int(b.Count) - int(a.Count)
				}
				return int(a.ID) - int(b.ID)
			})
			candidates = candidates[:min(len(candidates), max(m.K, m.Wanted()))]
			slices.SortFunc(candidates, Nearer)
			if !slices.Equal(a.Hits, candidates[:min(len(candidates), m.Wanted())]) {
				t.Fatalf("plan %d: got %v, the best candidates are %v", i, a.Hits, candidates)
			}
		}
		closeSearcher(t, s)
	}
	t.Logf("%d exact, %d of them filtered, %d unsure", exact, filtered, unsure)
	if exact < 300 || filtered < 100 || unsure < 100 {
		t.Error("one of the ways was hardly tested")
	}
}

// gramFilter asks for texts with one of some grams, or without any of them.
func gramFilter(rng *rand.Rand, keywords uint32) *filter.Filter {
	f := &filter.Filter{}
	f.StartGroup(rng.IntN(2) == 0)
	f.StartClause(0)
	for kw := range keywords {
		if rng.IntN(5) == 0 {
			f.AddSpan(kw, kw+1)
		}
	}
	return f
}

// keywordsOf are the keywords of the objects of a tile in the first attribute.
func keywordsOf(x *postings.Lists) [][]uint32 {
	keywords := make([][]uint32, x.Objects())
	var d postings.Decoder
	for kw := range x.Attribute(0).Keywords {
		for _, id := range d.Postings(x, 0, 0).Run(kw, kw+1) {
			keywords[id] = append(keywords[id], kw)
		}
	}
	return keywords
}

// TestSequenceOutcomes walks through each way to an answer.
func TestSequenceOutcomes(t *testing.T) {
	texts := []string{"", "abcdefgh", "abcdefgx", "abcdxfgx", "zzzz"}
	for i := range 500 {
		texts = append(texts, fmt.Sprintf("abc%03ddef", i))
	}
	// Moving a part keeps the grams and costs distance; spread substitutions do the opposite.
	const long = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	for range 20 {
		texts = append(texts, long[4:]+long[:4])
	}
	texts = append(texts, "-BCDEFG-IJKLMN-PQRSTU-WXYZ01-3456789")
	c := SequenceCollection(t, texts, 3)
	s := loadCPU(t, c.Index, gpuexec.CPUOptions{Workers: 2})
	certify := func(text string, k, candidates int) *gpuexec.Answer {
		plan := c.SequencePlan(t, text, k, candidates, true)
		a := Search(t, s, []gpuexec.Plan{plan})[0]
		if want := Nearest(texts, text, 3, 0); a.Err != nil || !a.Exact || !slices.Equal(a.Hits, want[:min(k, len(want))]) {
			t.Errorf("%q: got %+v, want %v", text, a, want[:min(k, len(want))])
		}
		return &a
	}
	once := func(text string, k, candidates int) uint64 {
		return Search(t, s, []gpuexec.Plan{c.SequencePlan(t, text, k, candidates, false)})[0].Units
	}
	if a := certify("abcdefgh", 1, 1); a.Units != once("abcdefgh", 1, 1) {
		t.Error("an exact match was not certified at once")
	}
	if a := certify(long, 1, 2); a.Units < 4*once(long, 1, 2) || a.Units > 7*once(long, 1, 2) || a.Hits[0].Score != 5 {
		t.Errorf("finding the near one behind 20 far ones with more grams should take K = 2, 4, 8, 16, 32: %+v", a)
	}
	certify("yyyy", 2, 10)        // shares a gram with none: scan
	certify("abc", 5, 5)          // theta <= 0: scan
	certify("abc250def", 505, 32) // k is the index: all objects, the blank one too
	certify("abc250def", 600, 600)
	if a := certify("abc250def", 300, 300); a.MCK == 0 || a.Rescoring <= 0 || a.Units == 0 {
		t.Errorf("statistics are missing: %+v", a)
	}

	plans, answers := []gpuexec.Plan{c.SequencePlan(t, "abcdefgh", 1, 8, true)}, make([]gpuexec.Answer, 1)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Search(ctx, plans, answers, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: %v", err)
	}
}

// BenchmarkTypos looks misspelt words up in the word list, k = 10 of 64 candidates, with and without certificate.
//
//	go test ./gpuexec/enginetest -run '^$' -bench Typos -benchtime 1x
func BenchmarkTypos(b *testing.B) {
	c := LoadCollection(b, "name: words\nkind: sequences\n", load.Options{Format: load.Text}, 1, WordsFile)
	rng := rand.New(rand.NewPCG(1, 1))
	for _, certify := range []bool{false, true} {
		var plans []gpuexec.Plan
		for range 1000 {
			word := c.Records[rng.IntN(len(c.Records))].Cells[0].Values[0]
			plans = append(plans, c.SequencePlan(b, Misspelt(rng, word, 1+rng.IntN(2)), 10, 64, certify))
		}
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("certify=%v/workers=%d", certify, workers), func(b *testing.B) {
				s := loadCPU(b, c.Index, gpuexec.CPUOptions{Workers: workers})
				answers := make([]gpuexec.Answer, len(plans))
				exact, postings, verified := 0, uint64(0), time.Duration(0)
				for range b.N {
					if err := s.Search(context.Background(), plans, answers, nil); err != nil {
						b.Fatal(err)
					}
					for i := range answers {
						postings += answers[i].Units
						verified += answers[i].Rescoring
						if answers[i].Exact {
							exact++
						}
					}
				}
				n := float64(b.N * len(plans))
				b.ReportMetric(float64(b.Elapsed().Microseconds())/n, "us/query")
				b.ReportMetric(float64(verified.Microseconds())/n, "verify-us/query")
				b.ReportMetric(float64(postings)/n, "postings/query")
				b.ReportMetric(float64(exact)/n, "exact")
			})
		}
	}
}
