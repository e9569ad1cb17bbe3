package verify

import (
	"errors"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/index/levenshtein"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// otherRescorer is a rescorer of another kind, whose memory is of no use.
type otherRescorer struct{ Rescorer }

// TestRescorersAgree: a rescorer in memory that was used or not, interrupted or not, with scores that are known or not, and in parts,
// does what a fresh one does at once.
func TestRescorersAgree(t *testing.T) {
	rng := seeded.Rand(t)
	var old Rescorer
	for range 300 {
		texts := make(textList, 1+rng.IntN(60))
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
		known := make([]Known, rng.IntN(len(candidates)+1))
		for i := range known {
			if known[i] = Unknown; rng.IntN(2) == 0 {
				known[i] = KnownScore(float64(levenshtein.Distance(n.Text, []rune(texts[i]))))
			}
		}
		v := n.New(nil)
		if err := v.Offer(candidates, nil, nil, 0); err != nil {
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
		if r.Offered() != v.Offered() || r.Certified(rest) != v.Certified(rest) || r.Certifiable() != v.Certifiable() || !sameScored(r, v) {
			t.Fatalf("%d of %d candidates: %v, a fresh one %v", r.Offered(), len(candidates), r.Hits(nil), v.Hits(nil))
		}
		// A scan: in parts, and as if a device had done it.
		least := uint32(rng.IntN(3))
		if _, err := v.Scan(0, texts.Objects(), least, nil, nil, 0); err != nil {
			t.Fatal(err)
		}
		border := rng.Uint32N(texts.Objects() + 1)
		parts := []Rescorer{r.Part(nil), r.Part(otherRescorer{})}
		for i, from := range []uint32{0, border} {
			if next, err := parts[i].Scan(from, []uint32{border, texts.Objects()}[i], least, nil, nil, 0); err != nil || next != []uint32{border, texts.Objects()}[i] {
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
		if !sameScored(r, v) || !sameScored(device, v) {
			t.Fatalf("after a scan: %v, of a device %v, a fresh one %v", r.Hits(nil), device.Hits(nil), v.Hits(nil))
		}
	}
}

func sameScored(a, b Rescorer) bool { return slices.Equal(a.Hits(nil), b.Hits(nil)) }

// TestNearestSays what it is and what it may cost.
func TestNearestSays(t *testing.T) {
	n := &Nearest{Texts: textList{"abcd", "efgh"}, NGram: 3, Text: make([]rune, 130, 200), K: 7}
	if n.Wanted() != 7 || n.Bytes() != 800 || n.Work(1000) != 2*(50+5*3*4) || n.Work(1) != 50+5*3*4 {
		t.Errorf("%d hits, %d bytes, %v", n.Wanted(), n.Bytes(), n.Work(1000))
	}
	if r := n.New(nil); r.ScanWork() != 8*3*2 {
		t.Errorf("a scan is %d", r.ScanWork())
	}
}
