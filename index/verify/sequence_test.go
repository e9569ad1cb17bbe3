package verify

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/index/levenshtein"
	"github.com/geniemq/geniemq/internal/testkit/naive"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

type textList []string

func (l textList) Objects() uint32       { return uint32(len(l)) }
func (l textList) Text(id uint32) string { return l[id] }
func (l textList) TextBytes() (n int64) {
	for _, text := range l {
		n += int64(len(text))
	}
	return n
}

// rescorer is one that has seen no candidate.
func rescorer(texts textList, query []rune, k, n int) *SequenceRescorer {
	return (&Nearest{Texts: texts, NGram: n, Text: query, K: k}).New(nil).(*SequenceRescorer)
}

// bruteForce ranks every object by the total order, from distances and counts computed the plain way.
func bruteForce(texts textList, query []rune, n int, minCount uint32) []Scored {
	var all []Scored
	for id, text := range texts {
		count := uint32(naive.GramOverlap(query, []rune(text), n))
		if count >= minCount {
			all = append(all, Scored{ID: uint32(id), Count: count, Score: float64(naive.EditDistance(query, []rune(text)))})
		}
	}
	slices.SortFunc(all, Compare)
	return all
}

// byCount is what an engine returns: the objects with count >= max(1, minCount) by (count descending, id ascending).
func byCount(all []Scored, minCount uint32) []Candidate {
	var out []Candidate
	for _, h := range all {
		if h.Count >= max(1, minCount) {
			out = append(out, Candidate{ID: h.ID, Count: h.Count})
		}
	}
	slices.SortFunc(out, func(a, b Candidate) int {
		if a.Count != b.Count {
			return int(b.Count) - int(a.Count)
		}
		return int(a.ID) - int(b.ID)
	})
	return out
}

// TestGramBound checks MC >= max(|Q|,|S|) + n - 1 - n*ed on random pairs and that it is tight.
func TestGramBound(t *testing.T) {
	rng := seeded.Rand(t)
	tight := 0
	const pairs = 70_000
	for range pairs {
		alphabet := naive.Alphabets()[rng.IntN(len(naive.Alphabets()))]
		n := 1 + rng.IntN(8)
		q := naive.Text(rng, alphabet, rng.IntN(30))
		var s []rune
		if rng.IntN(5) == 0 {
			s = naive.Text(rng, alphabet, rng.IntN(30))
		} else {
			s = naive.Edited(rng, alphabet, q, rng.IntN(6))
		}
		bound := max(len(q), len(s)) + n - 1 - n*levenshtein.Distance(q, s)
		count := naive.GramOverlap(q, s, n)
		if count < bound {
			t.Fatalf("n = %d: %q and %q share %d grams, the bound says at least %d", n, string(q), string(s), count, bound)
		}
		if count == bound {
			tight++
		}
	}
	if tight < pairs/20 {
		t.Errorf("the bound was reached by %d of %d pairs only: is it the right one?", tight, pairs)
	}
}

func TestGramOverlapOfRescorer(t *testing.T) {
	rng := seeded.Rand(t)
	var o gramOverlap
	var runes []rune
	for range 300 {
		alphabet := naive.Alphabets()[rng.IntN(len(naive.Alphabets()))]
		n := 1 + rng.IntN(8)
		q := naive.Text(rng, alphabet, rng.IntN(40))
		o.reset()
		for range 10 {
			s := naive.Edited(rng, alphabet, q, rng.IntN(10))
			if got, want := o.count(q, string(s), n, &runes), uint32(naive.GramOverlap(q, s, n)); got != want {
				t.Fatalf("n = %d: overlap of %q and %q is %d, want %d", n, string(q), string(s), got, want)
			}
		}
	}
}

// randomTexts makes a collection with many near and equal texts, so that ties at the k-th place are common.
func randomTexts(rng *rand.Rand, size int) (textList, []rune) {
	alphabet := naive.Alphabets()[rng.IntN(len(naive.Alphabets()))]
	base := naive.Text(rng, alphabet, rng.IntN(25))
	texts := make(textList, size)
	for i := range texts {
		switch rng.IntN(4) {
		case 0:
			texts[i] = string(naive.Text(rng, alphabet, rng.IntN(25)))
		case 1:
			if i > 0 {
				texts[i] = texts[rng.IntN(i)]
			}
		default:
			texts[i] = string(naive.Edited(rng, alphabet, base, rng.IntN(8)))
		}
	}
	return texts, naive.Edited(rng, alphabet, base, rng.IntN(5))
}

// TestOfferAndCertificate drives the rescorer as an engine does, with K candidates, then more, then a scan, and
// compares with brute force: a certified answer is the true one at every stage, ties included, an uncertified one is
// the best of its candidates.
func TestOfferAndCertificate(t *testing.T) {
	rng := seeded.Rand(t)
	var old Rescorer
	certified, scans, unsure, stops := 0, 0, 0, 0
	stopped := errors.New("stopped")
	pace := func() error { // stops now and then, wherever the work is
		if stops++; stops%3 > 0 {
			return stopped
		}
		return nil
	}
	for round := range 3000 {
		texts, query := randomTexts(rng, rng.IntN(120))
		n := 1 + rng.IntN(5)
		k := 1 + rng.IntN(12)
		minCount := uint32(0)
		if rng.IntN(4) == 0 {
			minCount = uint32(rng.IntN(8))
		}
		want := bruteForce(texts, query, n, minCount)
		want = want[:min(len(want), k)]
		all := byCount(bruteForce(texts, query, n, 0), minCount)

		r := (&Nearest{Texts: texts, NGram: n, Text: query, K: k}).New(old).(*SequenceRescorer)
		old = r
		p, work := Pace(pace), 1+rng.IntN(100)
		if round%2 == 1 {
			p, work = nil, 0
		}
		for size := k + rng.IntN(8); ; size *= 2 {
			candidates := all[:min(size, len(all))]
			known := someKnown(rng, texts, query, candidates)
			for r.Offer(candidates, known, p, work) == stopped {
			}
			last := uint32(0)
			if len(candidates) == size {
				last = candidates[size-1].Count
			}
			got := r.Hits(nil)
			best := bruteForceOf(texts, query, n, candidates)
			if !slices.Equal(got, best[:min(len(best), k)]) {
				t.Fatalf("round %d: hits %v are not the best candidates %v", round, got, best)
			}
			if r.Certified(last) {
				certified++
				if !slices.Equal(got, want) {
					t.Fatalf("round %d: n %d k %d query %q: certified %v, want %v", round, n, k, string(query), got, want)
				}
				break
			}
			unsure++
			if len(candidates) < size || !r.Certifiable() {
				scans++
				scanInParts(r, minCount, 1+rng.IntN(4), p, work)
				if got := r.Hits(nil); !slices.Equal(got, want) {
					t.Fatalf("round %d: n %d k %d minCount %d query %q: scan gives %v, want %v", round, n, k, minCount, string(query), got, want)
				}
				break
			}
		}
	}
	t.Logf("%d certified, %d scanned, %d stages unsure", certified, scans, unsure)
	if certified < 300 || scans < 300 || unsure < 300 {
		t.Error("one of the ways was hardly tested")
	}
}

// someKnown gives none, all or some of the distances.
func someKnown(rng *rand.Rand, texts textList, query []rune, candidates []Candidate) []Known {
	share := rng.IntN(4)
	if share == 0 {
		return nil
	}
	known := make([]Known, len(candidates))
	for i, c := range candidates {
		if known[i] = Unknown; rng.IntN(3) < share {
			known[i] = KnownScore(float64(naive.EditDistance(query, []rune(texts[c.ID]))))
		}
	}
	return known[:rng.IntN(len(known)+1)]
}

func bruteForceOf(texts textList, query []rune, n int, candidates []Candidate) []Scored {
	var all []Scored
	for _, c := range candidates {
		all = append(all, Scored{ID: c.ID, Count: c.Count, Score: float64(naive.EditDistance(query, []rune(texts[c.ID])))})
	}
	slices.SortFunc(all, Compare)
	return all
}

func scanInParts(r Rescorer, minCount uint32, parts int, pace Pace, work int) {
	n := int(r.(*SequenceRescorer).nearest.Texts.Objects())
	if parts == 1 {
		scanPaced(r, 0, uint32(n), minCount, pace, work)
		return
	}
	others := make([]Rescorer, parts)
	for i := range others {
		others[i] = r.Part(nil)
		scanPaced(others[i], uint32(n*i/parts), uint32(n*(i+1)/parts), minCount, pace, work)
	}
	for _, other := range others {
		r.Join(other)
	}
}

// scanPaced goes on where a pace stopped it.
func scanPaced(r Rescorer, lo, hi, minCount uint32, pace Pace, work int) {
	for err := errors.New("not begun"); err != nil; {
		lo, err = r.Scan(lo, hi, minCount, nil, pace, work)
	}
}

// TestCertificateNeedsTies is the case where the certificate holds only because ties are ordered by count: an
// object outside the candidates is as far as the k-th hit.
func TestCertificateNeedsTies(t *testing.T) {
	texts := textList{"abcdefgx", "xbcdefgh", "qqq"}
	query := []rune("abcdefgh")
	r := rescorer(texts, query, 1, 3)
	all := byCount(bruteForce(texts, query, 3, 0), 0)
	if err := r.Offer(all[:1], nil, nil, 0); err != nil {
		t.Fatal(err)
	}
	if !r.Certified(all[0].Count) {
		t.Fatalf("not certified at count %d, threshold %d", all[0].Count, r.threshold())
	}
	if got := r.Hits(nil); got[0].ID != 0 || got[0].Score != 1 {
		t.Fatalf("got %v", got)
	}
}

// TestPaceWithinComparison: one comparison of two long texts asks its pace again and again, stops when it says so, and goes on
// where it stopped: all work is done once.
func TestPaceWithinComparison(t *testing.T) {
	rng := seeded.Rand(t)
	for _, alphabet := range []string{"ab", "aé\u4e00"} {
		query, text := naive.Text(rng, []rune(alphabet), 20_000), naive.Text(rng, []rune(alphabet), 19_000)
		want := levenshtein.Distance(query, text)
		texts := textList{string(text)}
		for _, scan := range []bool{false, true} {
			r := rescorer(texts, query, 1, 3)
			asked, stopped := 0, errors.New("stopped")
			pace := func() error { asked++; return stopped }
			calls := 0
			for err := stopped; err == stopped; calls++ {
				if scan {
					_, err = r.Scan(0, 1, 0, nil, pace, 0)
				} else {
					err = r.Offer([]Candidate{{0, 3}}, nil, pace, 0)
				}
			}
			if got := r.Hits(nil); len(got) != 1 || got[0].Score != float64(want) {
				t.Errorf("scan %v: %v, the distance is %d", scan, got, want)
			}
			steps := len(text) * len(query) / 64 // in the whole matrix; the band is some three quarters
			if calls < 10 || asked < steps/PaceWork/2 || asked > steps/PaceWork*11/10+10 || asked < calls-1 {
				t.Errorf("scan %v: %d calls, the pace was asked %d times in %d steps", scan, calls, asked, steps)
			}
		}
	}
}

func BenchmarkScan(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	texts := make(textList, 100_000)
	for i := range texts {
		texts[i] = string(naive.Text(rng, naive.Alphabets()[2], 4+rng.IntN(10)))
	}
	n := &Nearest{Texts: texts, NGram: 3, Text: []rune("recieving"), K: 10}
	var r Rescorer
	for range b.N {
		r = n.New(r)
		scanPaced(r, 0, texts.Objects(), 0, nil, 0)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(texts)), "ns/text")
}
