package lsh

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Limits of parameters, so that those of a hostile file make nobody allocate much.
const (
	MaxDim       = 1 << 16
	MaxFunctions = 1 << 16 // the items of a query
	MaxElements  = 1 << 26 // dimensions times functions
	MaxBuckets   = 1 << 24
	MaxReach     = 64
	maxRows      = 1 << 16
	minWidth     = 1e-20
	maxWidth     = 1e20
)

// Parameters are all that hash functions are made from. Two equal ones make the same functions on every machine.
type Parameters struct {
	Family Family
	// Dim is how many elements vectors have.
	Dim int
	// Functions is m, the number of hash functions. Function i does not depend on it.
	Functions int
	// Buckets is D: keywords are 0 to D-1. Always 2 with cosine.
	Buckets int
	// Width is the width w of a bucket for l2 and l1, the kernel's sigma for laplacian, in units of distance; 0 with cosine.
	Width float64
	Seed  uint64
	// Reach is how many neighbouring buckets on each side of a query's count too, for l2 and l1.
	Reach int
	// Rehash says that buckets are re-hashed to [0, D), always with l1 and laplacian. Else those of l2 are clamped.
	Rehash bool
	// Centre is where the middle bucket of clamped functions is, of Dim elements; nil for zero.
	Centre []float32
	// Recall is what was measured with these parameters; empty if nothing was.
	Recall Table
}

// Check returns every fault, joined.
func (p *Parameters) Check() error {
	var faults []error
	fault := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(p.Family < L2 || p.Family > Laplacian, "there is no %v of hash functions", p.Family)
	fault(p.Dim < 1 || p.Dim > MaxDim, "%d dimensions: take 1 to %d", p.Dim, MaxDim)
	fault(p.Functions < 1 || p.Functions > MaxFunctions, "%d functions: take 1 to %d", p.Functions, MaxFunctions)
	fault(p.Dim > 0 && p.Functions > MaxElements/max(p.Dim, 1), "%d functions of %d dimensions are more than %d numbers: take fewer functions", p.Functions, p.Dim, MaxElements)
	fault(p.Buckets < 2 || p.Buckets > MaxBuckets, "%d buckets: take 2 to %d", p.Buckets, MaxBuckets)
	fault(p.Family == Cosine && p.Buckets != 2, "cosine has 2 buckets, not %d", p.Buckets)
	fault(p.Family == Cosine && p.Width != 0, "cosine has no width")
	fault(p.Family != Cosine && !(p.Width >= minWidth && p.Width <= maxWidth), "width %g: take %g to %g", p.Width, minWidth, maxWidth)
	fault(p.Reach < 0 || p.Reach > MaxReach, "reach %d: take 0 to %d", p.Reach, MaxReach)
	fault(p.Reach != 0 && !p.Family.reaches(), "%v has no neighbouring buckets, so no reach", p.Family)
	fault(p.Rehash && p.Family == Cosine, "cosine is not re-hashed")
	fault(!p.Rehash && (p.Family == L1 || p.Family == Laplacian), "%v is always re-hashed", p.Family)
	fault(p.Centre != nil && !p.ordered(), "only buckets of l2 that are clamped have a centre")
	fault(p.Centre != nil && len(p.Centre) != p.Dim, "the centre has %d elements where vectors have %d", len(p.Centre), p.Dim)
	if at := firstBeyond(p.Centre, math.MaxFloat32); at >= 0 {
		fault(true, "element %d of the centre is %v", at, p.Centre[at])
	}
	faults = append(faults, p.Recall.check()...)
	return errors.Join(faults...)
}

// ordered says whether neighbouring buckets have neighbouring keywords.
func (p *Parameters) ordered() bool { return p.Family == L2 && !p.Rehash }

// paired says whether what agrees is found soonest by comparing pairs, several functions at a time: where keywords are in order, and where half of them agree anyway.
func (p *Parameters) paired() bool { return p.ordered() || p.Family == Cosine }

// Asked is how many keywords a query asks per function, as HashQueries writes them.
func (p *Parameters) Asked() int {
	if p.ordered() {
		return 1
	}
	return 2*p.Reach + 1
}

// Span returns the keywords [lo, hi) that match one that a query asks: its neighbours too where they are in order.
func (p *Parameters) Span(keyword uint32) (lo, hi uint32) {
	if !p.ordered() {
		return keyword, keyword + 1
	}
	reach := uint32(p.Reach)
	return keyword - min(keyword, reach), min(keyword+reach+1, uint32(p.Buckets))
}

// The encoding, version 1, little-endian:
//
//	0  u16 version
//	2  u8  family; u8 flags: 1 re-hashed
//	4  u32 dimensions, functions, buckets, reach
//	20 u64 seed, f64 width
//	36 u32 elements of the centre, u32 rows of the recall table
//	44 u64 objects, u32 queries that it was measured with
//	56 f32 centre; then per row u32 k, candidates, reach, u64 found
const (
	version     = 1
	flagRehash  = 1
	headBytes   = 56
	rowBytes    = 20
	centreBytes = 4
)

// AppendBinary appends the encoding of parameters, which must be without fault.
func (p *Parameters) AppendBinary(dst []byte) ([]byte, error) {
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("encoding parameters of hash functions: %w", err)
	}
	le := binary.LittleEndian
	var flags byte
	if p.Rehash {
		flags |= flagRehash
	}
	dst = append(le.AppendUint16(dst, version), byte(p.Family), flags)
	for _, n := range []int{p.Dim, p.Functions, p.Buckets, p.Reach} {
		dst = le.AppendUint32(dst, uint32(n))
	}
	dst = le.AppendUint64(dst, p.Seed)
	dst = le.AppendUint64(dst, math.Float64bits(p.Width))
	dst = le.AppendUint32(dst, uint32(len(p.Centre)))
	dst = le.AppendUint32(dst, uint32(len(p.Recall.Rows)))
	dst = le.AppendUint64(dst, p.Recall.Objects)
	dst = le.AppendUint32(dst, p.Recall.Queries)
	for _, c := range p.Centre {
		dst = le.AppendUint32(dst, math.Float32bits(c))
	}
	for _, r := range p.Recall.Rows {
		dst = le.AppendUint32(dst, r.K)
		dst = le.AppendUint32(dst, r.Candidates)
		dst = le.AppendUint32(dst, r.Reach)
		dst = le.AppendUint64(dst, r.Found)
	}
	return dst, nil
}

// Decode reads parameters. It takes what AppendBinary writes and nothing else: whatever it takes encodes to the same bytes.
func Decode(data []byte) (Parameters, error) {
	p, err := decode(data)
	if err != nil {
		return Parameters{}, fmt.Errorf("reading parameters of hash functions: %w", err)
	}
	return p, nil
}

func decode(data []byte) (p Parameters, err error) {
	if len(data) < headBytes {
		return p, fmt.Errorf("%d bytes, where %d are the least", len(data), headBytes)
	}
	le := binary.LittleEndian
	if v := le.Uint16(data); v != version {
		return p, fmt.Errorf("version %d, where this program knows %d: it may be too old", v, version)
	}
	if data[3]&^flagRehash != 0 {
		return p, fmt.Errorf("unknown flags %#x", data[3])
	}
	centre, rows := le.Uint32(data[36:]), le.Uint32(data[40:])
	if centre > MaxDim || rows > maxRows {
		return p, fmt.Errorf("a centre of %d elements and %d rows of recall: at most %d and %d", centre, rows, MaxDim, maxRows)
	}
	if want := headBytes + centreBytes*int(centre) + rowBytes*int(rows); len(data) != want {
		return p, fmt.Errorf("%d bytes, where there should be %d", len(data), want)
	}
	p = Parameters{
		Family: Family(data[2]), Rehash: data[3]&flagRehash != 0,
		Dim: int(le.Uint32(data[4:])), Functions: int(le.Uint32(data[8:])), Buckets: int(le.Uint32(data[12:])), Reach: int(le.Uint32(data[16:])),
		Seed: le.Uint64(data[20:]), Width: math.Float64frombits(le.Uint64(data[28:])),
		Recall: Table{Objects: le.Uint64(data[44:]), Queries: le.Uint32(data[52:])},
	}
	data = data[headBytes:]
	for range centre {
		p.Centre = append(p.Centre, math.Float32frombits(le.Uint32(data)))
		data = data[centreBytes:]
	}
	for range rows {
		p.Recall.Rows = append(p.Recall.Rows, Row{le.Uint32(data), le.Uint32(data[4:]), le.Uint32(data[8:]), le.Uint64(data[12:])})
		data = data[rowBytes:]
	}
	if math.Signbit(p.Width) { // -0 has other bits than 0
		return p, fmt.Errorf("width %g", p.Width)
	}
	return p, p.Check()
}

// firstBeyond returns the first element that is no number or whose absolute value is above a limit, -1 if none is.
func firstBeyond(x []float32, limit float32) int {
	for i, e := range x {
		if !(e <= limit && e >= -limit) { // also for what is no number
			return i
		}
	}
	return -1
}
