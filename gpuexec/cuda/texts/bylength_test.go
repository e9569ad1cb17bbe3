package texts

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// randomTexts are texts of lengths that matter to the kernels, "" of objects without one.
func randomTexts(rng *rand.Rand, n, alphabet int) []string {
	all := make([]string, n)
	for i := range all {
		length := []int{0, 1, rng.IntN(12), 31 + rng.IntN(3), 63 + rng.IntN(3), 200}[rng.IntN(6)]
		if rng.IntN(500) == 0 {
			length = abi.MaxText - 1 + rng.IntN(4)
		}
		text := make([]rune, length)
		for j := range text {
			text[j] = rune('a' + rng.IntN(alphabet))
		}
		all[i] = string(text)
	}
	return all
}

// TestByLength: texts lie in the order of (length, id), each once, in the bytes that kernels read; spans are those that lengths say, and what is left out is known.
func TestByLength(t *testing.T) {
	rng := seeded.Rand(t)
	for round := range 12 {
		all := randomTexts(rng, []int{0, 1, 300, 17_000}[round%4], []int{3, 900}[round%2])
		hi := uint32(len(all))
		lo := rng.Uint32N(hi/2 + 1)
		empty := rng.IntN(2) == 0 // are texts too
		has := func(id uint32) bool { return empty || all[id] != "" }
		crew := run.NewCrew(3)
		x, err := NewByLength(t.Context(), func(id uint32) string { return all[id] }, has, lo, hi, crew)
		if err != nil {
			t.Fatal(err)
		}
		var want []uint32
		beyond := 0
		for id := lo; id < hi; id++ {
			n := utf8.RuneCountInString(all[id])
			switch {
			case !has(id):
			case n > abi.MaxText:
				if beyond == 0 || n < beyond {
					beyond = n
				}
			default:
				want = append(want, id)
			}
		}
		length := func(id uint32) int { return utf8.RuneCountInString(all[id]) }
		slices.SortStableFunc(want, func(a, b uint32) int { return length(a) - length(b) })
		if !slices.Equal(x.Order, want) || x.Beyond != beyond {
			t.Fatalf("%d texts, the shortest of the others has %d symbols; want %d, %d", len(x.Order), x.Beyond, len(want), beyond)
		}
		for range 20 {
			pattern, limit := rng.IntN(220), rng.IntN(80)-1
			from, to := x.Span(pattern, limit)
			for at, id := range x.Order {
				if near := max(length(id)-pattern, pattern-length(id)) <= limit; near != (at >= from && at < to) {
					t.Fatalf("pattern of %d, limit %d: text of %d symbols at %d, of %d to %d", pattern, limit, length(id), at, from, to)
				}
			}
			if home := x.Home(pattern); home < 0 || home > len(x.Order) {
				t.Fatalf("home is %d of %d", home, len(x.Order))
			}
			if beyond > 0 && !x.Reaches(0, abi.TextFarthest) {
				t.Fatal("texts that are not there are no hits of a search without a limit")
			}
			if reaches := beyond > 0 && beyond-pattern <= limit; x.Reaches(pattern, limit) != reaches {
				t.Fatalf("pattern of %d, limit %d, and texts of %d: %v", pattern, limit, beyond, !reaches)
			}
		}
		x.checkEncoded(t, crew, func(id uint32) string { return all[id] })
	}
}

// checkEncoded reads what is written as kernels do.
func (x *ByLength) checkEncoded(t *testing.T, crew *run.Crew, text func(id uint32) string) {
	t.Helper()
	var data bytes.Buffer
	if err := x.Encode(t.Context(), crew, func(array []byte) { data.Write(array) }); err != nil {
		t.Fatal(err)
	}
	l := x.Layout()
	if int64(data.Len()) != l.End || l.End != x.DeviceBytes() {
		t.Fatalf("%d bytes, %d by the layout", data.Len(), l.End)
	}
	word := func(at int64, i int) uint32 { return binary.LittleEndian.Uint32(data.Bytes()[at+4*int64(i):]) }
	for i, id := range x.Order {
		if word(l.IDs, i) != id {
			t.Fatalf("text %d is of object %d, want %d", i, word(l.IDs, i), id)
		}
		at := data.Bytes()[abi.UnitBytes*int(word(l.Starts, i)):]
		if n := binary.LittleEndian.Uint32(at); int(n) != utf8.RuneCountInString(text(id)) {
			t.Fatalf("text %d has %d symbols, want %d", i, n, utf8.RuneCountInString(text(id)))
		}
		j := abi.TextHead
		for _, r := range text(id) {
			symbol := uint16(at[j])
			if x.Symbols.Bytes() == 2 {
				symbol = binary.LittleEndian.Uint16(at[j:])
			}
			if symbol != x.Symbols.Of(r) {
				t.Fatalf("text %d: symbol %d for %q, want %d", i, symbol, r, x.Symbols.Of(r))
			}
			j += x.Symbols.Bytes()
		}
	}
	for n, first := range x.First {
		if word(l.First, n) != first {
			t.Fatalf("texts of %d symbols begin at %d, want %d", n, word(l.First, n), first)
		}
	}
}
