package postings

// Decoder turns any layout into postings over all keywords of an attribute, the form that everything can be derived
// from. It holds one worker's memory; the zero value is ready to use. It is not safe for concurrent use.
type Decoder struct {
	words  []uint64
	starts []uint32
	ids    []uint16

	low, high []byte   // of the codes of a tile
	codes     []uint16 // the same, where they have more than 8 bits
	wide      bool     // they have
	next      []uint32 // by code: objects, then where its next object goes

	rare rareCursor
}

// Postings returns the postings of an attribute in a tile, over all keywords, whatever the layout. They point into the
// map or into d, where they are valid until d's next call. In LayoutRare take the tiles of an attribute in ascending
// order: a call for the same or an earlier tile, or for another attribute, reads the rare lists from their beginning again.
func (d *Decoder) Postings(x *Lists, tile, attr int) Postings {
	return codecOf(x.attributes[attr].Layout).decode(d, x, tile, attr)
}
