package enginetest

import (
	"math/rand/v2"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/schema"
)

// A CodedWorld is a collection of many attributes of few keywords, at most one an object: what the bound is for. Objects
// are made of centres, so that some are much nearer to a query than others, and a few attributes may be of other kinds.
type CodedWorld struct {
	Vocabulary []uint32
	Objects    int
	Object     func(id int, a uint32) (keyword uint32, ok bool)
	Index      *index.Index
}

// NewCodedWorld makes a random one.
func NewCodedWorld(t testing.TB, rng *rand.Rand, objects, attributes int) *CodedWorld {
	w := &CodedWorld{Objects: objects}
	var layouts []string
	size := []int{2, 33, 256}[rng.IntN(3)]
	var missing []uint32
	for range attributes {
		v, layout := uint32(1+rng.IntN(min(size, 255))), "sliced"
		switch rng.IntN(10 + 4*attributes) {
		case 0:
			v = 254 + uint32(rng.IntN(3))
		case 1:
			layout = "postings"
		case 2:
			v = 1000
		}
		w.Vocabulary, layouts = append(w.Vocabulary, v), append(layouts, layout)
		missing = append(missing, []uint32{10, 60, 100, 0}[min(rng.IntN(40), 3)])
	}
	salt, centres, noise, equal := rng.Uint32(), uint32(1+rng.IntN(2000)), uint32(rng.IntN(101)), 1+rng.IntN(2)*rng.IntN(3000)
	w.Object = func(id int, a uint32) (uint32, bool) {
		own := Mix(uint32(id/equal)*2654435761 ^ salt)
		h := Mix(own + a*40503)
		if h%100 < missing[a] {
			return 0, false
		}
		if h>>8%100 < noise {
			return Mix(h) % w.Vocabulary[a], true
		}
		return Mix(own%centres*7919+a*31+salt) % w.Vocabulary[a], true
	}
	w.Index = buildKeywords(t, w.Vocabulary, func(a int) string { return layouts[a] }, objects,
		func(dst [][2]uint32, id uint32) [][2]uint32 {
			for a := range uint32(attributes) {
				if kw, ok := w.Object(int(id), a); ok {
					dst = append(dst, [2]uint32{a, kw})
				}
			}
			return dst
		})
	return w
}

// Plan makes a query like an object: of each attribute that it asks its keyword, or another, or a range; and now and then
// what the bound cannot count.
func (w *CodedWorld) Plan(rng *rand.Rand) gpuexec.Plan {
	var p gpuexec.Plan
	m := &p
	Query(m) // also of no item
	like, asked, other, reach := rng.IntN(w.Objects), 1+rng.IntN(100), rng.IntN(60), uint32(rng.IntN(3)*rng.IntN(40))
	odd := rng.IntN(8) == 0
	order := rng.Perm(len(w.Vocabulary))
	for _, a := range order {
		if rng.IntN(100) >= asked {
			continue
		}
		weight := uint32(1)
		if odd && rng.IntN(20) == 0 {
			weight = 2
		}
		Query(m).StartItem(uint32(a), weight)
		v := w.Vocabulary[a]
		kw, ok := w.Object(like, uint32(a))
		if !ok || rng.IntN(100) < other {
			kw = uint32(rng.IntN(int(v)))
		}
		lo, hi := kw-min(kw, reach), min(kw+reach+1, v)
		if odd && rng.IntN(20) == 0 && lo > 1 {
			Query(m).AddSpan(0, 1)
		}
		Query(m).AddSpan(lo, hi)
		if odd && rng.IntN(20) == 0 {
			Query(m).Items = append(Query(m).Items, Query(m).Items[rng.IntN(len(Query(m).Items))])
		}
	}
	m.K = []int{1, 2, 10, 100, 100, 1 + rng.IntN(300), 1000, 1 + rng.IntN(5000), w.Objects + 1}[rng.IntN(9)]
	m.K = min(m.K, 8000)
	if rng.IntN(4) == 0 {
		m.MinCount = uint32(rng.IntN(len(Query(m).Items) + 2))
	}
	return p
}

// SlicedWorld is a collection of at most one keyword an object and attribute: few and many keywords, skewed, missing.
func SlicedWorld(t testing.TB, rng *rand.Rand, n int) *World {
	w := &World{}
	for range 1 + rng.IntN(14) {
		w.Vocabulary = append(w.Vocabulary, uint32([]int{1, 2, 7, 8, 15, 16, 67, 255, 256, 257, 1024, 2100}[rng.IntN(12)]))
	}
	missing := make([]int, len(w.Vocabulary))
	for a := range missing {
		missing[a] = []int{0, 0, 10, 60}[rng.IntN(4)]
	}
	equal := 1 + rng.IntN(2)*rng.IntN(3000)
	for id := range n {
		if id%equal != 0 {
			w.Objects = append(w.Objects, w.Objects[id-1])
			continue
		}
		object := make([][]uint32, len(w.Vocabulary))
		for a, v := range w.Vocabulary {
			if rng.IntN(100) >= missing[a] {
				kw := uint32(rng.IntN(int(v)))
				if a%2 == 0 {
					kw = min(kw, uint32(rng.IntN(int(v))), uint32(rng.IntN(int(v))))
				}
				object[a] = []uint32{kw}
			}
		}
		w.Objects = append(w.Objects, object)
	}
	w.Layouts = make([]schema.Layout, len(w.Vocabulary))
	for a := range w.Layouts {
		w.Layouts[a] = schema.LayoutSliced
	}
	if rng.IntN(5) == 0 { // queries for the (query, tile) kernel
		w.Layouts[rng.IntN(len(w.Layouts))] = schema.LayoutPostings
	}
	w.Build(t)
	return w
}
