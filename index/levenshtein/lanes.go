package levenshtein

import (
	"encoding/binary"
	"unsafe"
)

//go:generate go run ./asm -out lanes_amd64.s -stubs stubs_amd64.go -pkg levenshtein

// MostLanes is how many symbols texts and queries that are compared in lanes have at most.
const MostLanes = 64

// LaneBits is how many bits a lane has for a text of so many symbols, 1 to MostLanes.
func LaneBits(symbols int) int {
	switch {
	case symbols <= 16:
		return 16
	case symbols <= 32:
		return 32
	}
	return 64
}

// LanesOf is how many texts a register takes in lanes of so many bits.
func LanesOf(bits int) int { return 8 * laneBytes / bits }

// laneBytes is the size of a register.
const laneBytes = 32

// kernel computes the columns of several matrices side by side, in lanes of some width: rows is a table of registers, in which lane i of row s has the rows of
// the matrix of text i in which symbol s stands. bottom has each text's last row. scores has each text's length, and is left with the distances.
type kernel func(rows *byte, symbols []uint16, bottom, scores *[laneBytes]byte)

// Lanes are some texts that are compared with one query after the other at the same time, a text in each lane of a register.
//
// Myers' algorithm keeps the rows of a matrix in bits and takes its columns in turn (see Pattern). A pattern that stays the same while texts change
// has other columns for each text, and texts of other lengths are through at other times. The distance is symmetric, though: here the texts
// are the patterns, and the query's symbols are the columns. So all lanes do the same at every step, whatever their texts; and a table of which text has which symbol where, which is most of
// the work for one query, serves all queries.
//
// Lanes are reusable and keep their memory. One goroutine at a time uses them. Distances are those of Pattern: integers, so that no kernel has others.
type Lanes struct {
	step    func(bits int) kernel
	run     kernel
	bits, n int
	table   [tableRows * laneBytes]byte
	bottom  [laneBytes]byte
	lengths [laneBytes]byte
	scores  [laneBytes]byte

	// Symbols below 256 have the row of their number. Others get one when they are first met, by a hash table; the last row is that of symbols that no text has.
	used    []uint16
	usedNow [tableRows]bool
	high    [hashed]highRow
	highs   []uint16 // of the hash table, those that are taken
	next    uint16
	symbols []uint16
}

const (
	lowRows   = 256
	highRows  = 256 // as many symbols as 16 texts of 16 have
	noRow     = lowRows + highRows
	tableRows = noRow + 1
	hashed    = 1024
)

// highRow is an entry of the hash table: a symbol of 256 or more, and its row; 0: none.
type highRow struct {
	symbol rune
	row    uint16
}

// NewLanes returns lanes that the fastest kernel of this machine computes; nil where it has none that is faster than a Pattern for each text.
func NewLanes() *Lanes {
	if HasLanes() {
		return newLanes(Kernels()[0])
	}
	return nil
}

// HasLanes says that there is one.
func HasLanes() bool { return Kernels()[0].Name != plainKernel().Name }

func newLanes(k Kernel) *Lanes { return &Lanes{step: k.step, next: lowRows} }

// Kernel is an inner loop that suits a machine.
type Kernel struct {
	Name string // "avx2" or "go"
	step func(bits int) kernel
}

func plainKernel() Kernel {
	return Kernel{"go", func(bits int) kernel {
		return func(rows *byte, symbols []uint16, bottom, scores *[laneBytes]byte) {
			plainLanes(bits, unsafe.Slice(rows, tableRows*laneBytes), symbols, bottom, scores)
		}
	}}
}

// Reset begins texts in lanes of so many bits: 16, 32 or 64, and as many symbols of a text.
func (l *Lanes) Reset(bits int) {
	for _, row := range l.used {
		clear(l.table[int(row)*laneBytes : (int(row)+1)*laneBytes])
		l.usedNow[row] = false
	}
	for _, at := range l.highs {
		l.high[at] = highRow{}
	}
	l.used, l.highs, l.next = l.used[:0], l.highs[:0], lowRows
	l.bits, l.n, l.run = bits, 0, l.step(bits)
	l.bottom, l.lengths = [laneBytes]byte{}, [laneBytes]byte{}
}

// Add adds a text of 1 to bits symbols; bytes that are not UTF-8 count as U+FFFD. There is room for LanesOf(bits).
func (l *Lanes) Add(text string) {
	size, i := l.bits/8, 0
	at := l.n * size
	for _, r := range text {
		row := uint16(r)
		if r >= lowRows {
			row = l.rowOf(r, true)
		}
		if !l.usedNow[row] {
			l.usedNow[row], l.used = true, append(l.used, row)
		}
		l.table[int(row)*laneBytes+at+i/8] |= 1 << (i % 8)
		i++
	}
	l.bottom[at+(i-1)/8] = 1 << ((i - 1) % 8)
	l.lengths[at] = byte(i)
	l.n++
}

// rowOf is the row of a symbol of 256 or more; noRow where it has none and is to get none.
func (l *Lanes) rowOf(r rune, add bool) uint16 {
	at := uint32(r) * 2654435761 >> 22
	for l.high[at].row != 0 {
		if l.high[at].symbol == r {
			return l.high[at].row
		}
		at = (at + 1) % hashed
	}
	if !add {
		return noRow
	}
	l.high[at] = highRow{r, l.next}
	l.highs = append(l.highs, uint16(at))
	l.next++
	return l.next - 1
}

// Query is a text that lanes are compared with: its symbols, of which there are at most MostLanes.
type Query struct {
	symbols []rune
	low     []uint16 // their rows, if all are below 256
}

// NewQuery makes a query. ok is false where it has more symbols, or none.
func NewQuery(text []rune) (q *Query, ok bool) {
	if len(text) == 0 || len(text) > MostLanes {
		return nil, false
	}
	q = &Query{symbols: text}
	for _, r := range text {
		if r >= lowRows {
			q.low = nil
			return q, true
		}
		q.low = append(q.low, uint16(r))
	}
	return q, true
}

// Distances writes the distance of each text from a query.
func (l *Lanes) Distances(q *Query, dst []int) {
	symbols := q.low
	if symbols == nil {
		l.symbols = l.symbols[:0]
		for _, r := range q.symbols {
			row := uint16(r)
			if r >= lowRows {
				row = l.rowOf(r, false)
			}
			l.symbols = append(l.symbols, row)
		}
		symbols = l.symbols
	}
	l.scores = l.lengths
	l.run(&l.table[0], symbols, &l.bottom, &l.scores)
	size := l.bits / 8
	for i := range dst[:l.n] {
		dst[i] = int(binary.LittleEndian.Uint16(l.scores[i*size:])) // of wider lanes the lower half, which holds it
	}
}

// plainLanes computes lane after lane.
func plainLanes(bits int, rows []byte, symbols []uint16, bottom, scores *[laneBytes]byte) {
	size := bits / 8
	read := func(from []byte) (v uint64) {
		for i := range size {
			v |= uint64(from[i]) << (8 * i)
		}
		return v
	}
	for at := 0; at < laneBytes; at += size {
		last, score := read(bottom[at:]), read(scores[at:])
		plus, minus := ^uint64(0), uint64(0)
		for _, s := range symbols {
			eq := read(rows[int(s)*laneBytes+at:])
			xv := eq | minus
			xh := (((eq & plus) + plus) ^ plus) | eq
			ph, mh := minus|^(xh|plus), plus&xh
			if ph&last != 0 {
				score++
			} else if mh&last != 0 {
				score--
			}
			ph, mh = ph<<1|1, mh<<1
			plus, minus = mh|^(xv|ph), ph&xv
		}
		for i := range size {
			scores[at+i] = byte(score >> (8 * i))
		}
	}
}
