//go:build cuda

package gpuexec

import (
	"math/bits"

	"github.com/geniemq/geniemq/index"
)

// slicedLayout says which attributes of an index are bit-sliced beside their postings, and where their planes lie
// (kernels/sliced.cuh). It is derived from the directories when the index is loaded.
//
// # Which attributes
//
// Those with at most one keyword an object, at most maxSlicedKeywords keywords, and planes that take no more memory than
// the postings do: P bits an object against 16 bits a posting. An index in which none of them pays has none. One
// pays when a typical item scans more postings than the planes cost to add: a row of 1,024 objects takes the
// shared-decode kernel about as long as slicedPays x 1,024 postings take the (query, tile) kernel. A typical item of
// numbers and ordinals, whose keywords have an order, is a range; of texts it is the keyword of a random object, whose
// list has sum(n^2) / sum(n) postings. Attributes that do not pay are sliced with those that do, for the queries that ask
// for both: a row more costs little.
type slicedLayout struct {
	attributes    []deviceSlicedAttribute // of every attribute; planes = 0: not sliced. codeOf is an offset until placed
	sliced        []uint32                // attributes that are
	codeOf        [][]uint32              // by attribute
	before        [][]uint64              // by attribute, by keyword: postings of smaller keywords
	unitAttribute []uint32
	octets        int // of all attributes, for one kind of row
	planesOfGroup int
	groups        int
	mostPlanes    int // of an attribute
}

const (
	maxSlicedKeywords = 1 << 14
	slicedPays        = 0.03
	groupObjects      = 1024
	unitCodes         = 256
	rowKinds          = 3
	slicedKeptPlanes  = 11   // kBatchPlanes: planes of a tile that are made at a time
	slicedPlaneBytes  = 8064 // of a tile
)

// newSlicedLayout returns nil where nothing is sliced.
func newSlicedLayout(x *index.Index, tiles tileRange) *slicedLayout {
	objects := uint64(tiles.objects(x))
	attributes := x.Attributes()
	l := &slicedLayout{
		attributes: make([]deviceSlicedAttribute, len(attributes)), codeOf: make([][]uint32, len(attributes)),
		before: make([][]uint64, len(attributes)), groups: int((objects + groupObjects - 1) / groupObjects),
	}
	pays := false
	for a := range attributes {
		attribute := &attributes[a]
		if attribute.MaxPerObject != 1 || attribute.Keywords == 0 || attribute.Keywords > maxSlicedKeywords {
			continue
		}
		before := postingsBefore(x, tiles, a)
		codeOf := make([]uint32, len(before))
		var codes uint32
		var typical float64 // sum of squares
		for keyword := range len(before) - 1 {
			codeOf[keyword] = codes
			if n := before[keyword+1] - before[keyword]; n > 0 {
				codes++
				typical += float64(n) * float64(n)
			}
		}
		codeOf[len(before)-1] = codes
		postings := before[len(before)-1]
		planes := bits.Len32(codes)
		if postings == 0 || uint64(planes)*objects > 16*postings {
			continue
		}
		pays = pays || attribute.Type != index.Text || typical/float64(postings) >= slicedPays*float64(objects)
		l.attributes[a] = deviceSlicedAttribute{
			plane: uint32(l.planesOfGroup), planes: uint32(planes), codes: codes, unit: uint32(len(l.unitAttribute)),
		}
		l.planesOfGroup += planes
		l.mostPlanes = max(l.mostPlanes, planes)
		l.octets += int(codes)/8 + 1
		for range codes/unitCodes + 1 {
			l.unitAttribute = append(l.unitAttribute, uint32(a))
		}
		l.codeOf[a], l.before[a] = codeOf, before
		l.sliced = append(l.sliced, uint32(a))
	}
	if !pays {
		return nil
	}
	return l
}

// postingsBefore returns, for each keyword and the end, how many postings the smaller keywords have in these tiles.
func postingsBefore(x *index.Index, tiles tileRange, attribute int) []uint64 {
	before := make([]uint64, x.Attributes()[attribute].Keywords+1)
	for tile := tiles.first; tile < tiles.end; tile++ {
		words, starts, _ := x.Postings(tile, attribute).Arrays()
		list := 0
		for w, word := range words {
			for present := uint32(word); present != 0; present &= present - 1 {
				before[w*32+bits.TrailingZeros32(present)+1] += uint64(starts[list+1] - starts[list])
				list++
			}
		}
	}
	for i := 1; i < len(before); i++ {
		before[i] += before[i-1]
	}
	return before
}

// The device memory of a sliced index: one piece, made of these.
type slicedPlaces struct {
	table, units, keywords, attributesOf, codeOf, planes, end int64
}

func (l *slicedLayout) places() (at slicedPlaces) {
	at.units = alignUp(int64(len(l.attributes)) * 24)
	at.keywords = alignUp(at.units + 4*int64(len(l.unitAttribute)))
	at.attributesOf = alignUp(at.keywords + 4*int64(len(l.attributes)))
	at.codeOf = alignUp(at.attributesOf + 4*int64(len(l.sliced)))
	at.planes = at.codeOf
	for _, a := range l.sliced {
		at.planes += 4 * int64(len(l.codeOf[a]))
	}
	at.planes = alignUp(at.planes)
	at.end = at.planes + int64(l.groups)*int64(l.planesOfGroup)*128
	return at
}

// ask adds what a query's spans of one attribute mean to the shared-decode kernel.
func (l *slicedLayout) ask(q *laneQuery, attribute uint32, spans []index.Span, weight uint32) (bias uint64) {
	codeOf, before := l.codeOf[attribute], l.before[attribute]
	for _, span := range spans {
		lo, hi := codeOf[span.Lo], codeOf[span.Hi]
		q.postings += before[span.Hi] - before[span.Lo]
		rows := uint32(0)
		switch {
		case lo == hi:
			continue
		case hi == lo+1 || lo == 0:
			rows = 1
		default:
			rows = 2
			bias += uint64(weight)
		}
		q.rows += rows
		q.weightedRows += rows * uint32(weightBits(weight))
		q.weights |= weight
	}
	return bias
}
