// Package filling counts what becomes of the cells of an input while an index is built of it.
package filling

// Column is what became of a column's cells, of objects that were added.
type Column struct {
	Name    string
	Filled  int64 // have a value
	Missing int64 // have none
	Invalid int64 // of Missing: those with a value that the column's type cannot take
	// Examples are the first of Invalid, at most three.
	Examples []Invalid
}

// Invalid is a cell that its column cannot take.
type Invalid struct {
	Line   int64 // of the source, from 1; 0 when unknown
	Reason string
}

const examples = 3

// State is what became of one cell.
type State uint8

const (
	Missing State = iota
	Filled
	Refused // by the column's type
)

// Cells are what became of the cells of some records, by record and column. Counting them is left to when it is known that a record is an object.
type Cells struct {
	states  []State
	refused []Invalid // in the order of cells
	counted int       // of refused
}

// Reset forgets all records, and keeps the memory.
func (c *Cells) Reset() { c.states, c.refused, c.counted = c.states[:0], c.refused[:0], 0 }

// Add adds the next cell; why says what is wrong with one that is refused.
func (c *Cells) Add(state State, why Invalid) {
	if c.states = append(c.states, state); state == Refused {
		c.refused = append(c.refused, why)
	}
}

// Mark is a place to which Forget goes back: before a record that cannot be used after all.
type Mark struct{ states, refused int }

// Mark returns the place after the last cell.
func (c *Cells) Mark() Mark { return Mark{len(c.states), len(c.refused)} }

// Forget forgets the cells after a mark.
func (c *Cells) Forget(m Mark) { c.states, c.refused = c.states[:m.states], c.refused[:m.refused] }

// Columns counts by column.
type Columns []Column

// Count counts the cells of the i-th record, all of which come in their order; one that is dropped is passed over.
func (all Columns) Count(c *Cells, i int, dropped bool) {
	for column, state := range c.states[i*len(all) : (i+1)*len(all)] {
		f := &all[column]
		var why Invalid
		if state == Refused {
			why = c.refused[c.counted]
			c.counted++
		}
		switch {
		case dropped:
		case state == Filled:
			f.Filled++
		case state == Refused:
			f.Missing++
			if f.Invalid++; len(f.Examples) < examples {
				f.Examples = append(f.Examples, why)
			}
		default:
			f.Missing++
		}
	}
}
