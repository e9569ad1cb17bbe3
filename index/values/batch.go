package values

import (
	"fmt"
	"math"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// Batch is the values of consecutive objects, to be appended to columns. Any number of goroutines make a batch each at a time; columns then take
// the batches in the order of the objects, and what comes of it is what came of adding the objects one by one.
type Batch struct {
	specs   []schema.AttributeSpec
	single  []int // attributes of which an object can have one value, in LayoutSliced
	columns []batch
	objects int
	err     error // the first of AddString
}

// NewBatch returns an empty batch of objects with these attributes.
func NewBatch(specs []schema.AttributeSpec) *Batch {
	b := &Batch{specs: specs, columns: make([]batch, len(specs))}
	for i := range specs {
		b.columns[i].kind = specs[i].Type
		if specs[i].Layout == schema.LayoutSliced.String() {
			b.single = append(b.single, i)
		}
	}
	return b
}

// AddString gives the object that is being built a value of a Text attribute.
func (b *Batch) AddString(attr int, value string) {
	err := b.specs[attr].Takes(schema.Text)
	if err == nil && !b.columns[attr].addString(value) {
		err = full(b.specs[attr].Name)
	}
	if b.err == nil {
		b.err = err
	}
}

// AddNumber gives it a value of a Number attribute. NaN and infinities are refused.
func (b *Batch) AddNumber(attr int, value float64) error {
	if err := b.specs[attr].TakesNumber(value); err != nil {
		return err
	}
	b.columns[attr].addNumber(value)
	return nil
}

// AddOrdinal gives it a value of an Ordinal attribute.
func (b *Batch) AddOrdinal(attr int, value uint32) error {
	if err := b.specs[attr].TakesOrdinal(value); err != nil {
		return err
	}
	b.columns[attr].values = append(b.columns[attr].values, value)
	return nil
}

// EndObject closes an object: it gets the values added since the last call. The error is the whole index's: the batch
// takes no more, and what was added of the object is no object's.
func (b *Batch) EndObject() error {
	if b.err != nil {
		return b.err
	}
	for _, i := range b.single {
		if n := b.columns[i].pending(); n > 1 {
			return several(b.specs[i].Name, n)
		}
	}
	for i := range b.columns {
		b.columns[i].endObject()
	}
	b.objects++
	return nil
}

// Err is the first error of AddString, which is the whole index's.
func (b *Batch) Err() error { return b.err }

// Objects returns the number of closed objects.
func (b *Batch) Objects() int { return b.objects }

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	for i := range b.columns {
		b.columns[i].reset()
	}
	b.objects, b.err = 0, nil
}

// batch is the values of one attribute of the objects of a batch. What takes time is done here: equal strings are found, so that the column looks at
// each string of a batch once.
type batch struct {
	kind    schema.AttributeType
	values  []uint32 // Ordinal; of Text the numbers of strings
	numbers []float64
	strings Interner
	ends    []uint32 // by object: where its values end
	most    uint32   // values of an object
}

// addString adds a value of the object that is being built; it is false when the strings are full.
func (b *batch) addString(value string) bool {
	id, ok := b.strings.Intern(value)
	if ok {
		b.values = append(b.values, id)
	}
	return ok
}

// addNumber adds a finite number to the object that is being built.
func (b *batch) addNumber(value float64) {
	if value == 0 {
		value = 0 // -0 and 0 are one value
	}
	b.numbers = append(b.numbers, value)
}

// len returns how many values there are.
func (b *batch) len() int { return len(b.values) + len(b.numbers) }

// pending returns how many values the object that is being built has.
func (b *batch) pending() int { return b.len() - int(b.start(len(b.ends))) }

// start returns where the values of an object begin; of the one after the last, which is being built, too.
func (b *batch) start(object int) uint32 {
	if object == 0 {
		return 0
	}
	return b.ends[object-1]
}

// endObject closes the object that is being built.
func (b *batch) endObject() {
	end := uint32(b.len())
	b.most = max(b.most, end-b.start(len(b.ends)))
	b.ends = append(b.ends, end)
}

// reset empties the batch and keeps its memory.
func (b *batch) reset() {
	b.strings.reset()
	b.values, b.numbers, b.ends, b.most = b.values[:0], b.numbers[:0], b.ends[:0], 0
}

// full is why no more strings can be added.
func full(attribute string) error {
	return fmt.Errorf("attribute %q has more than 4 GiB of distinct values, the most that one index holds; "+
		"split the data into several indexes", attribute)
}

// several is why an attribute with an object of n values cannot be in LayoutSliced.
func several(attribute string, n int) error {
	return fmt.Errorf("attribute %q has %d values in one object, layout sliced is for one; use layout auto in the schema", attribute, n)
}

// Append adds what the objects of a batch but those that are dropped (nil: none) have of its attribute-th attribute. The first has a place in its tile,
// and tiles that are full are closed. The error says that the strings are full, or the open tile; it is the whole index's.
func (c *Column) Append(batch *Batch, attribute int, dropped []bool, local int, every []uint16, n *Numbering) error {
	b := &batch.columns[attribute]
	if uint64(b.len())+uint64(len(c.ids)) > math.MaxUint32 {
		return fmt.Errorf("attribute %q has more than 2^32 values in 64,512 consecutive objects", batch.specs[attribute].Name)
	}
	known := b.strings.Strings()
	place := make([]uint32, known.Len())
	for id := range place {
		var ok bool
		if place[id], ok = c.strings.Intern(known.At(uint32(id))); !ok {
			return full(batch.specs[attribute].Name)
		}
	}
	if dropped == nil && b.most == 1 && int(b.start(len(b.ends))) == len(b.ends) {
		c.appendOnes(b, place, local, every, n)
		return nil
	}
	start := uint32(0)
	for i, end := range b.ends {
		if dropped != nil && dropped[i] {
			c.Discarded = c.Discarded || end > start
			start = end
			continue
		}
		c.take(b, place, start, end)
		start = end
		c.EndObject(uint16(local))
		if local++; local == store.TileObjects {
			c.Seal(every, n)
			local = 0
		}
	}
	return nil
}

// take adds the values start to end of a batch to those of the open tile. Strings have place in the column.
func (c *Column) take(b *batch, place []uint32, start, end uint32) {
	switch c.kind {
	case schema.Number:
		c.numbers = append(c.numbers, b.numbers[start:end]...)
		for _, v := range b.numbers[start:end] {
			c.Low, c.High = min(c.Low, v), max(c.High, v)
		}
	case schema.Text:
		for _, id := range b.values[start:end] {
			c.values = append(c.values, place[id])
		}
	case schema.Ordinal:
		c.values = append(c.values, b.values[start:end]...)
	}
}

// appendOnes is Append for objects with one value each, as most have.
func (c *Column) appendOnes(b *batch, place []uint32, local int, every []uint16, n *Numbering) {
	for from, objects := 0, len(b.ends); from < objects; {
		to := min(objects, from+store.TileObjects-local)
		c.take(b, place, uint32(from), uint32(to))
		c.ids = append(c.ids, every[local:local+to-from]...)
		c.MaxPerObject = max(c.MaxPerObject, 1)
		c.Postings += uint64(to - from)
		c.Objects += uint64(to - from)
		local += to - from
		if from = to; local == store.TileObjects {
			c.Seal(every, n)
			local = 0
		}
	}
}
