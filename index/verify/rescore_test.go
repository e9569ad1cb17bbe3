package verify

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// sliceTexts are the texts of a small index.
type sliceTexts []string

func (x sliceTexts) Objects() uint32       { return uint32(len(x)) }
func (x sliceTexts) Text(id uint32) string { return x[id] }
func (x sliceTexts) TextBytes() (n int64) {
	for _, text := range x {
		n += int64(len(text))
	}
	return n
}

// otherRescorer is a rescorer of another kind, whose memory is of no use.
type otherRescorer struct{ Rescorer }

// TestNearestIsAVerifier: a rescorer does what its verifier does, in memory that was used or not, interrupted or not, with scores
// that are known or not, and in parts.
func TestNearestIsAVerifier(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var old Rescorer
	for range 300 {
		texts := make(sliceTexts, 1+rng.IntN(60))
		for i := range texts {
			text := make([]byte, rng.IntN(12))
			for j := range text {
				text[j] = 'a' + byte(rng.IntN(3))
			}
			texts[i] = string(text)
		}
		n := &Nearest{Texts: texts, NGram: 1 + rng.IntN(3), Text: []rune("abcabcab"), K: 1 + rng.IntN(8)}
		var candidates []Candidate
		for id := range texts {
			candidates = append(candidates, Candidate{ID: uint32(id), Count: uint32(len(texts) - id)})
		}
		candidates = candidates[:rng.IntN(len(candidates)+1)]
		known := make([]float64, rng.IntN(len(candidates)+1))
		for i := range known {
			if known[i] = math.NaN(); rng.IntN(2) == 0 {
				known[i] = float64(EditDistance(n.Text, []rune(texts[i])))
			}
		}
		var v Verifier
		v.Reset(n.Text, n.K, n.NGram)
		if err := v.Verify(texts, candidates, nil); err != nil {
			t.Fatal(err)
		}
		if rng.IntN(4) == 0 {
			old = otherRescorer{}
		}
		r := n.New(old)
		old = r
		for pauses := 0; ; pauses++ {
			stop := errors.New("enough for now")
			err := r.Offer(candidates, known, func() error {
				if rng.IntN(3) > 0 {
					return nil
				}
				return stop
			}, 1+rng.IntN(20))
			if err == nil {
				break
			}
			if !errors.Is(err, stop) || pauses > 10_000 {
				t.Fatalf("%v after %d pauses", err, pauses)
			}
		}
		rest := uint32(rng.IntN(10))
		if r.Offered() != v.Compared() || r.Certified(rest) != v.Certified(rest) || r.Certifiable() != (v.Threshold() > 0) || !sameScored(r, &v) {
			t.Fatalf("%d of %d candidates: %v, the verifier %v", r.Offered(), len(candidates), r.Hits(nil), v.Hits(nil))
		}
		// A scan: in parts, and as if a device had done it.
		least := uint32(rng.IntN(3))
		if _, err := v.Scan(texts, 0, texts.Objects(), least); err != nil {
			t.Fatal(err)
		}
		border := rng.Uint32N(texts.Objects() + 1)
		parts := []Rescorer{r.Part(nil), r.Part(otherRescorer{})}
		for i, from := range []uint32{0, border} {
			if next, err := parts[i].Scan(from, []uint32{border, texts.Objects()}[i], least, nil, 0); err != nil || next != []uint32{border, texts.Objects()}[i] {
				t.Fatal(next, err)
			}
		}
		device := n.New(nil)
		if err := device.Offer(candidates, nil, nil, 0); err != nil {
			t.Fatal(err)
		}
		for _, part := range parts {
			device.Add(part.Hits(nil))
			r.Join(part)
		}
		if !sameScored(r, &v) || !sameScored(device, &v) {
			t.Fatalf("after a scan: %v, of a device %v, the verifier %v", r.Hits(nil), device.Hits(nil), v.Hits(nil))
		}
	}
}

func sameScored(r Rescorer, v *Verifier) bool {
	return slices.EqualFunc(r.Hits(nil), v.Hits(nil), func(a Scored, b Hit) bool {
		return a.ID == b.ID && a.Count == b.Count && a.Score == float64(b.Distance)
	})
}

// TestNearestSays what it is and what it may cost.
func TestNearestSays(t *testing.T) {
	n := &Nearest{Texts: sliceTexts{"abcd", "efgh"}, NGram: 3, Text: make([]rune, 130, 200), K: 7}
	if n.Wanted() != 7 || n.Bytes() != 800 || n.Work(1000) != 2*(50+5*3*4) || n.Work(1) != 50+5*3*4 {
		t.Errorf("%d hits, %d bytes, %v", n.Wanted(), n.Bytes(), n.Work(1000))
	}
	if r := n.New(nil); r.ScanWork() != 8*3*2 {
		t.Errorf("a scan is %d", r.ScanWork())
	}
}
