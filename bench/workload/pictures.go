package workload

import (
	"fmt"
	"math"

	"github.com/geniemq/geniemq/index/lsh"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/wire"
	"github.com/geniemq/geniemq/wire/value"
)

// The pictures of goods are points in clusters whose centres lie in 32 dimensions, seen in 96 by a fixed random map, as whole numbers from 0 to
// 255. They are functions of the number of their object, so that nothing is kept of 5 M of them.
const (
	pictureDims     = 96
	pictureClusters = 1_000
	pictureSpread   = 24.0 // standard deviation of an element of a centre
	pictureNoise    = 12.0 // of an object from its centre
	pictureChange   = 5.0  // of a query from the object that it is like
)

type pictures struct {
	seed    uint64
	centres [][pictureDims]float32

	// Of the reference: the hash functions of the index, which tests of index/lsh check, and the keywords that match each query.
	hash  *lsh.Functions
	spans [][]keywords
}

// keywords are [lo, hi) of one function.
type keywords struct{ lo, hi uint32 }

func newPictures(seed uint64) *pictures {
	p := &pictures{seed: seed, centres: make([][pictureDims]float32, pictureClusters)}
	var axes [pictureDims][latentDims]float64
	src := newSource(seed, 'a')
	for i := range axes {
		for d := 0; d < latentDims; d += 2 {
			axes[i][d], axes[i][d+1] = src.gauss()
		}
	}
	for c := range p.centres {
		src, x := newSource(seed, 'e', uint64(c)), [latentDims]float64{}
		for d := 0; d < latentDims; d += 2 {
			x[d], x[d+1] = src.gauss()
		}
		for i := range axes {
			sum := 0.0
			for d, v := range x {
				sum += float64(axes[i][d] * v) // not fused: the same on every machine
			}
			p.centres[c][i] = float32(128 + float64(pictureSpread*sum)/math.Sqrt(latentDims))
		}
	}
	return p
}

// disturbed adds noise to x and makes whole numbers of it. The sum of four bytes is nearly normal, and cheap.
func disturbed(dst []float32, x []float32, src *source, noise float64) []float32 {
	const mean, deviation = 4 * 255 / 2.0, 147.8 // of the sum
	dst = dst[:0]
	for i := 0; i < len(x); i += 2 {
		for bits := src.next(); len(dst) < i+2; bits >>= 32 {
			sum := float64(bits&255 + bits>>8&255 + bits>>16&255 + bits>>24&255)
			v := float64(x[len(dst)]) + float64(noise/deviation*(sum-mean))
			dst = append(dst, float32(min(max(math.Round(v), 0), 255)))
		}
	}
	return dst
}

func (p *pictures) object(dst []float32, id int) []float32 {
	src := newSource(p.seed, 'v', uint64(id))
	centre := &p.centres[src.next()%pictureClusters]
	return disturbed(dst, centre[:], &src, pictureNoise)
}

// asked is the picture that query i asks for, which is like an object's.
func (p *pictures) asked(like, i int) []float32 {
	src := newSource(p.seed, 'w', uint64(i))
	return disturbed(nil, p.object(nil, like), &src, pictureChange)
}

// condition asks for it.
func (p *pictures) condition(like, i int) (c wire.Condition, err error) {
	var b value.Builder
	b.Array()
	for _, v := range p.asked(like, i) {
		b.Float(float64(v))
	}
	b.End()
	list, err := b.Tree()
	return wire.Condition{Attr: "picture", Other: &wire.Other{Value: list, Refusal: wire.Errorf(wire.BadRequest, "a vector")}}, err
}

// hashedBy finds out which keywords match the queries.
func (p *pictures) hashedBy(s *schema.Schema, asked []wanted) error {
	parameters, err := lsh.Decode(s.Columns[4].Learned)
	if err != nil {
		return fmt.Errorf("the hash functions of pictures: %w", err)
	}
	if p.hash, err = lsh.New(parameters); err != nil {
		return fmt.Errorf("the hash functions of pictures: %w", err)
	}
	if parameters.Asked() != 1 {
		return fmt.Errorf("the hash functions of pictures have %d keywords a query, where the reference knows one", parameters.Asked())
	}
	own := make([]uint32, parameters.Functions)
	for i := range asked {
		if err := p.hash.HashQueries(own, p.asked(asked[i].like, i), 1); err != nil {
			return fmt.Errorf("hashing a picture: %w", err)
		}
		spans := make([]keywords, len(own))
		for f, keyword := range own {
			spans[f].lo, spans[f].hi = parameters.Span(keyword)
		}
		p.spans = append(p.spans, spans)
	}
	return nil
}

// agreeing says of the objects lo to hi-1, in this order, by how many functions their pictures match that of query i.
func (p *pictures) agreeing(i, lo, hi int) func(id int) uint32 {
	if p == nil {
		return func(int) uint32 { return 0 }
	}
	const block = 64 // are hashed at a time
	functions := p.hash.Parameters().Functions
	var vectors, x []float32
	hashed, first, end := make([]uint32, block*functions), lo, lo
	return func(id int) (n uint32) {
		if id >= end {
			first, end = id, min(id+block, hi)
			vectors = vectors[:0]
			for o := first; o < end; o++ {
				x = p.object(x, o)
				vectors = append(vectors, x...)
			}
			if err := p.hash.Hash(hashed[:(end-first)*functions], vectors, 1); err != nil {
				panic(err) // bytes have hashes
			}
		}
		for f, keyword := range hashed[(id-first)*functions:][:functions] {
			if s := p.spans[i][f]; s.lo <= keyword && keyword < s.hi {
				n++
			}
		}
		return n
	}
}
