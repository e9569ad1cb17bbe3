package texts

import (
	"context"
	"math/bits"
	"slices"
	"sync"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/run"
)

// ByLength is a column of texts as a device has it, ordered by (length, id), so that a search by edit distance goes through texts as long as its pattern
// first, and never through those whose length alone says that they are too far: two texts differ by at least as many edits as their lengths do.
//
//	texts (units)  encoded one by one (package texts), in their order
//	starts         u32 a text: its first unit
//	ids            u32 a text: its object
//	first          u32 a length, from 0 to Longest + 1: the position of the first text that is not shorter
//	signs          u64 a text: which symbols it has (Symbols.Sign)
//
// A block of positions is what a block of threads takes. Texts that have the same length lie together, so the lanes of a warp end together. Which positions a
// length that is wanted can be at, two loads from first say, exactly: nothing else is looked at of the others.
//
// Objects without a text are not in it, and neither are texts of more than the device compares (abi.MaxText): Beyond says how long the shortest of these is. A
// search is the device's as long as none of them can be a hit (Reaches).
type ByLength struct {
	Symbols *Symbols
	Units   int64    // of all texts that are in it
	Order   []uint32 // [position] object
	First   []uint32 // [length]
	Beyond  int      // symbols of the shortest text that is left out; 0: none is
	Left    float64  // the share of pairs of texts, of a sample, whose signs do not say that they are far apart

	Base uint32 // the first object of the range that it is of

	text    func(id uint32) string
	objects uint32 // of the range, with a text or without
}

// stretch is how many texts are surveyed, or encoded, at a time.
const stretch = 16 << 10

// NewByLength orders the texts of the objects lo to hi-1 that have one. It is nil where they cannot be on the device.
func NewByLength(ctx context.Context, text func(id uint32) string, has func(id uint32) bool, lo, hi uint32, c *run.Crew) (*ByLength, error) {
	x := &ByLength{text: text, Base: lo, objects: hi - lo}
	lengths := make([]uint16, hi-lo) // and one, 0: there is none
	var all Survey
	var mu sync.Mutex // of all and of Beyond
	err := c.Run(ctx, int((uint64(hi-lo)+stretch-1)/stretch), func(_ *run.Shift, i int) {
		s, beyond := &Survey{}, 0
		first := lo + uint32(i)*stretch
		for id := first; id < hi && id-first < stretch; id++ {
			if !has(id) {
				continue
			}
			own := text(id)
			if n := symbolsOf(own); n > abi.MaxText {
				if beyond == 0 || n < beyond {
					beyond = n
				}
				continue
			}
			lengths[id-lo] = uint16(s.Add(own) + 1)
		}
		mu.Lock()
		defer mu.Unlock()
		all.Join(s)
		if beyond > 0 && (x.Beyond == 0 || beyond < x.Beyond) {
			x.Beyond = beyond
		}
	})
	if err != nil {
		return nil, err
	}
	symbols, units, ok := all.Symbols()
	if !ok {
		return nil, nil
	}
	x.Symbols, x.Units = symbols, units
	x.sort(lengths, lo, all.Longest)
	x.Left = x.left()
	return x, nil
}

// symbolsOf is the length of a text, or more than the device compares.
func symbolsOf(text string) (n int) {
	if len(text) <= abi.MaxText {
		return 0 // at most so many
	}
	for range text {
		n++
	}
	return n
}

// sort makes the order by counting.
func (x *ByLength) sort(lengths []uint16, lo uint32, longest int) {
	x.First = make([]uint32, longest+2)
	for _, n := range lengths {
		if n > 0 {
			x.First[n]++ // the length is n - 1
		}
	}
	for n := 1; n < len(x.First); n++ {
		x.First[n] += x.First[n-1]
	}
	x.Order = make([]uint32, x.First[len(x.First)-1])
	next := slices.Clone(x.First)
	for i, n := range lengths {
		if n > 0 {
			x.Order[next[n-1]] = lo + uint32(i)
			next[n-1]++
		}
	}
}

// sampled is how many texts are compared by their signs, and near the distance up to which they are not far apart.
const sampled, near = 256, 3

// left compares texts from all over the order, each with those behind it.
func (x *ByLength) left() float64 {
	signs := make([]uint64, min(sampled, len(x.Order)))
	for i := range signs {
		for _, r := range x.text(x.Order[i*len(x.Order)/len(signs)]) {
			signs[i] |= x.Symbols.Sign(r)
		}
	}
	pairs, left := 0, 0
	for i, a := range signs {
		for _, b := range signs[i+1:] {
			if pairs++; max(bits.OnesCount64(a&^b), bits.OnesCount64(b&^a)) <= near {
				left++
			}
		}
	}
	return float64(left) / float64(max(1, pairs))
}

// Len is how many texts are in it.
func (x *ByLength) Len() int { return len(x.Order) }

// Longest is the length of the longest text.
func (x *ByLength) Longest() int { return len(x.First) - 2 }

// Span is the positions of the texts whose lengths are at most limit from a pattern's.
func (x *ByLength) Span(pattern, limit int) (from, to int) {
	if limit < 0 {
		return 0, 0
	}
	longest := x.Longest()
	return int(x.First[min(max(0, pattern-limit), longest+1)]), int(x.First[min(pattern+limit, longest)+1])
}

// Home is a position between those of texts as long as a pattern, where its search begins: whatever lies farther away is not nearer in length.
func (x *ByLength) Home(pattern int) int {
	from, to := x.Span(pattern, 0)
	return (from + to) / 2
}

// Reaches says that a text that is not on the device can be a hit: one within limit of a pattern. abi.TextFarthest is no limit.
func (x *ByLength) Reaches(pattern, limit int) bool {
	return x.Beyond > 0 && (limit >= abi.TextFarthest || pattern+limit >= x.Beyond)
}

// Layout is where the arrays of the column lie in its memory, in bytes; the texts come first.
type Layout struct{ Starts, IDs, First, Signs, End int64 }

// Layout says where everything lies.
func (x *ByLength) Layout() (l Layout) {
	n := len(x.Order)
	l.Starts = x.Units * abi.UnitBytes
	l.IDs = l.Starts + abi.Units(abi.WordBytes*n)*abi.UnitBytes
	l.First = l.IDs + abi.Units(abi.WordBytes*n)*abi.UnitBytes
	l.Signs = l.First + abi.Units(abi.WordBytes*len(x.First))*abi.UnitBytes
	l.End = l.Signs + abi.Units(8*n)*abi.UnitBytes
	return l
}

// DeviceBytes is the memory of the column on a device.
func (x *ByLength) DeviceBytes() int64 {
	if x == nil {
		return 0
	}
	return x.Layout().End
}

// Encode calls write with the bytes of the texts, stretch by stretch in their order, and then with those of the other arrays, as they lie.
func (x *ByLength) Encode(ctx context.Context, c *run.Crew, write func(array []byte)) error {
	data, signs := make([][]byte, c.Size()), make([]uint64, len(x.Order))
	for first := 0; first < len(x.Order); first += stretch * c.Size() {
		n := min(c.Size(), (len(x.Order)-first+stretch-1)/stretch)
		if err := c.Run(ctx, n, func(_ *run.Shift, i int) {
			data[i] = data[i][:0]
			begin := first + i*stretch
			for at, id := range x.Order[begin:min(begin+stretch, len(x.Order))] {
				text := x.text(id)
				data[i] = x.Symbols.Append(data[i], text)
				for _, r := range text {
					signs[begin+at] |= x.Symbols.Sign(r)
				}
			}
		}); err != nil {
			return err
		}
		for i := range n {
			write(data[i])
		}
	}
	for _, array := range [][]byte{abi.Bytes(x.starts()), abi.Bytes(x.Order), abi.Bytes(x.First), abi.Bytes(signs)} {
		write(array)
		write(make([]byte, abi.Units(len(array))*abi.UnitBytes-int64(len(array))))
	}
	return nil
}

// starts are the first units of the texts, by position: those of one length take as many units each.
func (x *ByLength) starts() []uint32 {
	starts, at := make([]uint32, len(x.Order)), uint32(0)
	for n := range x.First[:len(x.First)-1] {
		units := uint32(abi.Units(abi.TextHead + n*x.Symbols.Bytes()))
		for position := x.First[n]; position < x.First[n+1]; position++ {
			starts[position] = at
			at += units
		}
	}
	return starts
}

// Starts are the first units of the texts, by object of the range; 0 of those that are not in it.
func (x *ByLength) Starts() []uint32 {
	starts := make([]uint32, x.objects)
	for position, at := range x.starts() {
		starts[x.Order[position]-x.Base] = at
	}
	return starts
}
