package index

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
)

// Validate checks everything that can be checked about the file, also what Open leaves: the checksums once more, the
// padding, that strings, edges and lists ascend, that every keyword is found by Lookup, that each posting is an
// object of its tile, the totals of each attribute, that keys are unique and payloads are JSON objects. It reads every
// posting, on all cores, and needs about 12 bytes an object where there are keys. It returns all faults, up to
// ten, each a *CorruptError.
func (x *Index) Validate() error {
	v := validator{index: x}
	v.check(x.validatePadding())
	for i := range x.sections {
		v.check(x.checkCRC(&x.sections[i]))
	}
	v.parallel(len(x.attributes), func(attr int) error { return x.validateVocabulary(attr) })
	v.validatePostings()
	v.check(x.validateKeys())
	v.parallel(len(x.payloads), func(tile int) error { return x.validatePayloads(tile) })
	if more := v.faults - len(v.reported); more > 0 {
		v.reported = append(v.reported, corrupt("%d more faults", more))
	}
	return errors.Join(v.reported...)
}

// validator collects faults from several goroutines.
type validator struct {
	index *Index

	mu       sync.Mutex
	faults   int
	reported []error // the first ten
}

func (v *validator) check(err error) {
	if err == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.faults++; v.faults <= 10 {
		v.reported = append(v.reported, err)
	}
}

// parallel checks n things on all cores.
func (v *validator) parallel(n int, check func(i int) error) {
	v.workers(n, func(next func() (int, bool)) {
		for i, ok := next(); ok; i, ok = next() {
			v.check(check(i))
		}
	})
}

// workers runs work on all cores; each takes the numbers below n that come next.
func (v *validator) workers(n int, work func(next func() (int, bool))) {
	var taken atomic.Int64
	var group sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		group.Go(func() {
			work(func() (int, bool) {
				i := int(taken.Add(1)) - 1
				return i, i < n
			})
		})
	}
	group.Wait()
}

func (x *Index) validatePadding() error {
	end := headerBytes + int64(len(x.sections))*entryBytes
	for i := range x.sections {
		s := &x.sections[i]
		for _, b := range x.data[end:s.Offset] {
			if b != 0 {
				return corrupt("the padding before section %d (%v) is not zero", i, s.Kind)
			}
		}
		end = s.Offset + s.Length
	}
	if int64(len(x.data)) != align(end) || len(bytes.Trim(x.data[end:], "\x00")) > 0 {
		return corrupt("bytes follow the last section")
	}
	return nil
}

func (x *Index) validateVocabulary(attr int) error {
	a := &x.attributes[attr]
	fault := func(format string, args ...any) error {
		return corrupt("attribute %q: %s", a.Name, fmt.Sprintf(format, args...))
	}
	switch a.Type {
	case Text:
		w := &x.vocabularies[attr]
		previous := ""
		for kw := range a.Keywords {
			value := w.keywords.at(kw)
			if kw > 0 && value <= previous {
				return fault("keyword %d is not above its predecessor", kw)
			}
			previous = value
			if found, ok := w.lookup.find(&w.keywords, value); !ok || found != kw {
				return fault("the hash table does not find keyword %d", kw)
			}
		}
		if len(w.lookup) != hashSlots(int(a.Keywords)) {
			return fault("the hash table has %d slots for %d keywords", len(w.lookup), a.Keywords)
		}
		taken := uint32(0)
		for _, entry := range w.lookup {
			if entry != 0 {
				taken++
			}
		}
		if taken != a.Keywords {
			return fault("the hash table has %d entries for %d keywords", taken, a.Keywords)
		}
	case Number:
		if a.Keywords == 0 {
			if a.Min != 0 || a.Max != 0 {
				return fault("there are extremes but no values")
			}
			return nil
		}
		if !finite(a.Min) || !finite(a.Max) || a.Min > a.Max {
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

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// totals are what the postings of an attribute add up to.
type totals struct {
	postings, objects uint64
	maxPerObject      uint32
}

func (v *validator) validatePostings() {
	x := v.index
	sums := make([]totals, len(x.attributes))
	var mu sync.Mutex
	codes := make([][]uint64, len(x.attributes)) // of LayoutSliced: objects, by code
	for attr := range codes {
		if x.attributes[attr].Layout == LayoutSliced {
			codes[attr] = make([]uint64, x.codes[attr].Len()+1)
		}
	}
	tiles := x.Tiles()
	v.workers(len(x.attributes)*tiles, func(next func() (int, bool)) {
		counts := make([]uint32, TileObjects)
		var decoder Decoder
		for i, ok := next(); ok; i, ok = next() {
			attr, tile := i/tiles, i%tiles // attribute by attribute, as a Decoder likes rare keywords
			sum, err := decoder.Postings(x, tile, attr).validate(counts[:x.TileLen(tile)])
			if err != nil {
				v.check(corrupt("attribute %q, tile %d: %v", x.attributes[attr].Name, tile, err))
				continue
			}
			mu.Lock()
			sums[attr].postings += sum.postings
			sums[attr].objects += sum.objects
			sums[attr].maxPerObject = max(sums[attr].maxPerObject, sum.maxPerObject)
			if codes[attr] != nil {
				decoder.countCodes(codes[attr], x.TileLen(tile))
			}
			mu.Unlock()
		}
	})
	if v.faults > 0 {
		return // the totals would be off for a reason that is told already
	}
	for i := range x.attributes {
		a := &x.attributes[i]
		if want := (totals{a.Postings, a.Objects, a.MaxPerObject}); sums[i] != want {
			v.check(corrupt("attribute %q has %d postings of %d objects, at most %d of one; its entry says %d of %d, at most %d",
				a.Name, sums[i].postings, sums[i].objects, sums[i].maxPerObject, want.postings, want.objects, want.maxPerObject))
		}
		if codes[i] == nil {
			continue
		}
		for code, objects := range codes[i][:x.codes[i].Len()] {
			if says := x.codes[i].Before(uint32(code)+1) - x.codes[i].Before(uint32(code)); objects != says {
				v.check(corrupt("attribute %q has %d objects of code %d; its directory says %d", a.Name, objects, code, says))
				break
			}
		}
	}
}

// countCodes adds the objects of each code in the tile that d has decoded last.
func (d *Decoder) countCodes(counts []uint64, objects int) {
	for i := range objects {
		counts[d.code(i)]++
	}
}

// validate checks the ids of a tile with len(counts) objects and adds them up. counts is scratch.
func (p Postings) validate(counts []uint32) (totals, error) {
	clear(counts)
	var fault error
	p.each(func(keyword uint32, ids []uint16) {
		previous := uint16(0)
		for _, id := range ids {
			switch {
			case fault != nil:
			case int(id) >= len(counts):
				fault = fmt.Errorf("keyword %d has object %d of a tile of %d", keyword, id, len(counts))
			case id < previous:
				fault = fmt.Errorf("the list of keyword %d does not ascend", keyword)
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

func (x *Index) validateKeys() error {
	if x.keys == nil {
		return nil
	}
	table := make(hashTable, hashSlots(int(x.objects)))
	for id := range x.objects {
		key := x.Key(id)
		if key == "" {
			return corrupt("object %d has an empty key", id)
		}
		hash := xxhash.Sum64String(key)
		for p := table.probe(hash); ; {
			other, ok := p.next()
			if !ok {
				break
			}
			if x.Key(other) == key {
				return corrupt("objects %d and %d have the same key %q", other, id, key)
			}
		}
		table.insert(hash, id)
	}
	return nil
}

func (x *Index) validatePayloads(tile int) error {
	for i := range uint32(x.TileLen(tile)) {
		id := uint32(tile)*TileObjects + i
		if payload := x.Payload(id); payload != nil && (payload[0] != '{' || !json.Valid(payload)) {
			return corrupt("the payload of object %d is not a JSON object", id)
		}
	}
	return nil
}
