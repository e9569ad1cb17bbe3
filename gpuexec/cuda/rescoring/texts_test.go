package rescoring

import (
	"context"
	"testing"
	"unicode/utf8"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestSurveyTexts: symbols number the code points that occur, in their order, and the sizes are those of the texts, whatever
// the number of tiles and in whatever order they are surveyed. No device is needed.
func TestSurveyTexts(t *testing.T) {
	rng := seeded.Rand(t)
	for _, alphabet := range raced.Of([]int{40, 5000}, []int{40}) {
		texts := make([]string, 70_000) // two tiles
		var occurs [utf8.MaxRune + 1]bool
		var narrow, wide int64
		longest := 0
		for i := range texts {
			text := make([]rune, rng.IntN(12))
			for j := range text {
				text[j] = rune(' ' + rng.IntN(alphabet))
				occurs[text[j]] = true
			}
			texts[i] = string(text)
			narrow += abi.Units(abi.TextHead + len(text))
			wide += abi.Units(abi.TextHead + 2*len(text))
			longest = max(longest, len(text))
		}
		x := enginetest.SequenceCollection(t, texts, 2).Index
		l, err := surveyTexts(context.Background(), x, run.AllTiles(x), run.NewCrew(4))
		if err != nil {
			t.Fatal(err)
		}
		count := uint16(0)
		for r := range occurs {
			want := uint16(abi.NoSymbol)
			if occurs[r] {
				want = count
				count++
			}
			if got := l.Symbols.Of(rune(r)); got != want {
				t.Fatalf("%d code points: %q is symbol %d, want %d", alphabet, rune(r), got, want)
			}
		}
		want := narrow
		if count > abi.MaxNarrow {
			want = wide
		}
		if l.Symbols.Count != int(count) || l.Longest != longest || l.Units != want {
			t.Errorf("%d code points: %d symbols, longest text %d, %d units; want %d, %d, %d",
				alphabet, l.Symbols.Count, l.Longest, l.Units, count, longest, want)
		}
	}
}
