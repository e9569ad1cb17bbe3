package index

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
func (d *Decoder) Postings(x *Index, tile, attr int) Postings {
	switch x.attributes[attr].Layout {
	case LayoutSliced:
		return d.sliced(x.Planes(tile, attr), x.codes[attr], x.TileLen(tile))
	case LayoutRare:
		return d.joined(x, tile, attr)
	}
	return x.Postings(tile, attr)
}

// sliced sorts the objects of a tile by their codes. Code V means no keyword: it sorts last and is cut off.
func (d *Decoder) sliced(p Planes, c Codes, objects int) Postings {
	d.low = grown(d.low, TileObjects)
	d.ids = grown(d.ids, TileObjects)
	d.next = grown(d.next, 1<<p.planes)
	clear(d.next)
	bytes := raw(p.words)
	if d.wide = p.planes > 8; d.wide {
		d.high = grown(d.high, TileObjects)
		d.codes = grown(d.codes, TileObjects)
	}
	for group := range groupsOf(objects) {
		planes := bytes[group*p.planes*planeBytes:][:p.planes*planeBytes]
		first := group * GroupObjects
		low := (*[GroupObjects]byte)(d.low[first:])
		joinPlanes(low, planes[:min(p.planes, 8)*planeBytes])
		if !d.wide {
			continue
		}
		high := (*[GroupObjects]byte)(d.high[first:])
		joinPlanes(high, planes[8*planeBytes:])
		codes := (*[GroupObjects]uint16)(d.codes[first:])
		for i := range codes {
			codes[i] = uint16(low[i]) | uint16(high[i])<<8
		}
	}
	if d.wide {
		return sortCodes(d, c, d.codes[:objects])
	}
	return sortCodes(d, c, d.low[:objects])
}

func sortCodes[T uint8 | uint16](d *Decoder, c Codes, codes []T) Postings {
	for _, code := range codes {
		d.next[code]++
	}
	v := c.Len()
	d.words = grown(d.words, len(c.words))
	d.starts = grown(d.starts, v+1)
	code, list, start := uint32(0), uint32(0), uint32(0)
	for w, word := range c.words {
		out := uint64(list) << 32
		for present := uint32(word); present != 0; present &= present - 1 {
			if n := d.next[code]; n > 0 {
				out |= uint64(present & -present)
				d.starts[list] = start
				list++
				d.next[code] = start
				start += n
			}
			code++
		}
		d.words[w] = out
	}
	d.starts[list] = start
	end := start
	for code := v; code < len(d.next); code++ {
		n := d.next[code]
		d.next[code] = end
		end += n
	}
	next, ids := d.next, d.ids
	for object, code := range codes {
		at := next[code]
		ids[at] = uint16(object)
		next[code] = at + 1
	}
	return Postings{directory{d.words, d.starts[:list+1]}, d.ids[:start]}
}

// code returns the code of object i of the tile that sliced was called for last.
func (d *Decoder) code(i int) int {
	if d.wide {
		return int(d.codes[i])
	}
	return int(d.low[i])
}

// rareCursor remembers how far the rare lists of an attribute have been read.
type rareCursor struct {
	index      *Index
	attr, tile int
	next       []uint32 // by rare keyword: its first id from the tile on
}

// seek moves the cursor to a tile: forward, or from the beginning of the lists.
func (c *rareCursor) seek(x *Index, tile, attr int) {
	r := x.rare[attr]
	if c.index != x || c.attr != attr || c.tile > tile {
		c.next = append(c.next[:0], r.starts[:r.Lists()]...)
		c.index, c.attr, c.tile = x, attr, 0
	}
	if c.tile == tile {
		return
	}
	c.tile = tile
	first := uint32(tile) * TileObjects
	for list, at := range c.next {
		for at < r.starts[list+1] && r.ids[at] < first {
			at++
		}
		c.next[list] = at
	}
}

// joined joins the lists of frequent and rare keywords.
func (d *Decoder) joined(x *Index, tile, attr int) Postings {
	d.rare.seek(x, tile, attr)
	d.rare.tile = tile + 1
	r, frequent, keywords := x.rare[attr], x.Postings(tile, attr), x.attributes[attr].Keywords
	first := uint64(tile) * TileObjects
	end := first + uint64(x.TileLen(tile))

	d.words = grown(d.words, len(r.words))
	d.starts, d.ids = d.starts[:0], d.ids[:0]
	number, rare := uint32(0), uint32(0) // of the frequent and rare keywords before
	list := 0                            // of frequent keywords in the tile
	for w, word := range r.words {
		out := uint64(len(d.starts)) << 32
		for bit := range min(32, keywords-uint32(w)*32) {
			start := uint32(len(d.ids))
			if word>>bit&1 != 0 {
				if frequent.words[number/32]>>(number%32)&1 != 0 {
					d.ids = append(d.ids, frequent.ids[frequent.starts[list]:frequent.starts[list+1]]...)
					list++
				}
				number++
			} else {
				at, stop := d.rare.next[rare], r.starts[rare+1]
				for ; at < stop && uint64(r.ids[at]) < end; at++ {
					d.ids = append(d.ids, uint16(uint64(r.ids[at])-first))
				}
				d.rare.next[rare] = at
				rare++
			}
			if uint32(len(d.ids)) > start {
				out |= 1 << bit
				d.starts = append(d.starts, start)
			}
		}
		d.words[w] = out
	}
	lists := len(d.starts)
	d.starts = append(d.starts, uint32(len(d.ids)))
	return Postings{directory{d.words, d.starts[:lists+1]}, d.ids}
}

// grown returns s with n elements of undefined content.
func grown[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
