package postings

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/index/values"
)

// Verify checks what opening leaves: that strings and edges ascend, that every keyword is found by Lookup, that each list
// ascends, and the totals of each attribute. It reads every posting, on all cores, and returns all faults, up to ten.
func (x *Lists) Verify(ctx context.Context) error {
	var faults store.Faults
	faults.Parallel(len(x.attributes), x.validateVocabulary)
	x.validatePostings(ctx, &faults)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return faults.Err()
}

func (x *Lists) validateVocabulary(attr int) error {
	a := &x.attributes[attr]
	fault := func(format string, args ...any) error {
		return store.Corrupt("attribute %q: %s", a.Name, fmt.Sprintf(format, args...))
	}
	switch a.Type {
	case schema.Text:
		w := &x.vocabularies[attr]
		if err := w.lookup.Verify(&w.keywords); err != nil {
			return fmt.Errorf("attribute %q: %w", a.Name, err)
		}
	case schema.Number:
		if a.Keywords == 0 {
			if a.Min != 0 || a.Max != 0 {
				return fault("there are extremes but no values")
			}
			return nil
		}
		if !values.Finite(a.Min) || !values.Finite(a.Max) || a.Min > a.Max {
			return fault("values from %v to %v are no range", a.Min, a.Max)
		}
		numbers, low := a.Edges, a.Min
		if a.Exact {
			numbers, low = a.Values, math.Inf(-1)
			if numbers[0] != a.Min || numbers[len(numbers)-1] != a.Max {
				return fault("the values do not run from %v to %v", a.Min, a.Max)
			}
		}
		for i, v := range numbers {
			if !(v > low) || v > a.Max {
				return fault("edge or value %d, %v, is not above its predecessor or is outside the data", i, v)
			}
			low = v
		}
	}
	return nil
}

// totals are what the postings of an attribute add up to.
type totals struct {
	postings, objects uint64
	maxPerObject      uint32
}

// validatePostings reads all postings. Without other faults it compares what they add up to with the attribute table.
func (x *Lists) validatePostings(ctx context.Context, faults *store.Faults) {
	sums := make([]totals, len(x.attributes))
	var mu sync.Mutex
	lengths := make([][]uint64, len(x.attributes)) // of layouts with a directory of the whole
	for attr := range lengths {
		if a := &x.attributes[attr]; codecOf(a.Layout).counts {
			lengths[attr] = make([]uint64, a.Keywords)
		}
	}
	tiles := x.Tiles()
	faults.Workers(len(x.attributes)*tiles, func(next func() (int, bool)) {
		objects := make([]uint32, store.TileObjects)
		var decoder Decoder
		for i, ok := next(); ok && ctx.Err() == nil; i, ok = next() {
			attr, tile := i/tiles, i%tiles // attribute by attribute, as a Decoder likes rare keywords
			p := decoder.Postings(x, tile, attr)
			sum, err := p.validate(objects[:x.TileLen(tile)], x.attributes[attr].Distinct)
			if err != nil {
				faults.Add(store.Corrupt("attribute %q, tile %d: %v", x.attributes[attr].Name, tile, err))
				continue
			}
			mu.Lock()
			sums[attr].postings += sum.postings
			sums[attr].objects += sum.objects
			sums[attr].maxPerObject = max(sums[attr].maxPerObject, sum.maxPerObject)
			if lengths[attr] != nil {
				p.addLengths(lengths[attr])
			}
			mu.Unlock()
		}
	})
	if faults.Any() || ctx.Err() != nil {
		return // the totals would be off for a reason that is told already
	}
	for i := range x.attributes {
		a := &x.attributes[i]
		if want := (totals{a.Postings, a.Objects, a.MaxPerObject}); sums[i] != want {
			faults.Add(store.Corrupt("attribute %q has %d postings of %d objects, at most %d of one; its entry says %d of %d, at most %d",
				a.Name, sums[i].postings, sums[i].objects, sums[i].maxPerObject, want.postings, want.objects, want.maxPerObject))
		}
		if lengths[i] == nil {
			continue
		}
		says := make([]uint64, a.Keywords)
		codecOf(a.Layout).describe(x, i, new(ListStatistics), says)
		for keyword, n := range lengths[i] {
			if n != says[keyword] {
				faults.Add(store.Corrupt("attribute %q has %d objects of keyword %d; its directory says %d", a.Name, n, keyword, says[keyword]))
			}
		}
	}
}

// validate checks the ids of a tile with len(counts) objects, which are distinct in each list or need not be, and adds them up. counts is scratch.
func (p Postings) validate(counts []uint32, distinct bool) (totals, error) {
	clear(counts)
	var fault error
	p.each(func(keyword uint32, ids []uint16) {
		previous := uint16(0)
		for i, id := range ids {
			switch {
			case fault != nil:
			case int(id) >= len(counts):
				fault = fmt.Errorf("keyword %d has object %d of a tile of %d", keyword, id, len(counts))
			case id < previous:
				fault = fmt.Errorf("the list of keyword %d does not ascend", keyword)
			case distinct && i > 0 && id == previous:
				fault = fmt.Errorf("object %d has keyword %d twice, which its column cannot give it", id, keyword)
			default:
				counts[id]++
			}
			previous = id
		}
	})
	sum := totals{postings: uint64(len(p.ids))}
	for _, count := range counts {
		if count > 0 {
			sum.objects++
			sum.maxPerObject = max(sum.maxPerObject, count)
		}
	}
	return sum, fault
}
