package gpuexec

import "math/bits"

// harvest offers the objects that reach the gate's threshold in a tile whose first object is base, and clears the
// counters. There are two ways with the same result, and it takes the cheaper one.
func (c *counters) harvest(g *gate, width int, runs []run, postings int, base uint32, objects int) {
	if postings <= revisitLimit(width, objects) {
		c.revisit(g, width, runs, base)
	} else {
		c.sweep(g, width, base, objects)
	}
}

// revisitLimit is the number of postings up to which revisiting them costs less than sweeping all counters: about 0.8 ns
// a posting against 0.6 ns a word of counters.
func revisitLimit(width, objects int) int {
	return objects * width / 64
}

// sweep looks at all counters of the tile, a word of them at a time. A word has a counter >= t when, with h the top bit
// of every lane, the lanes' low bits plus h - t carry into h; lanes are added without their top bit, so that none
// carries into its neighbour.
func (c *counters) sweep(g *gate, width int, base uint32, objects int) {
	perWord := 64 / width
	words := c.lanes(width)
	if width == 4 {
		// The low halves of the bytes are objects below 1<<15, the high halves those above.
		words = words[:(min(objects, 1<<15)+7)/8]
	} else {
		words = words[:(objects+perWord-1)/perWord]
	}
	lane := uint64(1)<<width - 1
	ones := ^uint64(0) / lane // 1 in every lane
	top := ones << (width - 1)
	half := uint64(1) << (width - 1)

	for next, t := 0, g.threshold(); next < len(words) && t <= lane; {
		// t <= half: a lane passes when its top bit is set or the sum carries. Above: when it is set and the
		// sum, of t - half, carries.
		var add, or, and uint64
		if t <= half {
			add, or, and = ones*(half-t), ^uint64(0), ^uint64(0)
		} else {
			add, or, and = ones*(2*half-t), 0, 0
		}
		rest := words[next:]
		next = len(words)
		for i, x := range rest {
			sum := x&^top + add
			pass := (sum | x&or) & (x | and) & top
			if pass == 0 {
				continue
			}
			rose := false
			at := len(words) - len(rest) + i
			for ; pass != 0; pass &= pass - 1 {
				l := bits.TrailingZeros64(pass) / width
				id := at*perWord + l
				if width == 4 {
					id = at*8 + l/2 + l%2<<15
				}
				rose = g.offer(newEntry(uint32(x>>(l*width)&lane), base+uint32(id))) || rose
			}
			if rose {
				// Entries of the same count with smaller ids may still come when ids do not ascend.
				if t = g.threshold(); width == 4 {
					t--
				}
				next = at + 1
				break
			}
		}
	}
	clear(words)
}

// revisit looks at the counters of the postings again and clears them as it goes; an object that comes again
// counts 0 then and is not offered twice.
func (c *counters) revisit(g *gate, width int, runs []run, base uint32) {
	t := g.threshold()
	for _, r := range runs {
		switch width {
		case 4:
			revisitNibbles(g, c.nibbles, r.ids, t, base)
		case 8:
			revisit(g, c.bytes, r.ids, t, base)
		case 16:
			revisit(g, c.words, r.ids, t, base)
		case 32:
			revisit(g, c.longs, r.ids, t, base)
		}
	}
}

func revisit[C uint8 | uint16 | uint32](g *gate, c *[1 << 16]C, ids []uint16, t uint64, base uint32) {
	for _, id := range ids {
		count := c[id]
		c[id] = 0
		if uint64(count) >= t {
			g.offer(newEntry(uint32(count), base+uint32(id)))
		}
	}
}

func revisitNibbles(g *gate, c *[1 << 15]uint8, ids []uint16, t uint64, base uint32) {
	for _, id := range ids {
		shift := id >> 15 * 4
		count := c[id&0x7fff] >> shift & 15
		c[id&0x7fff] &^= 15 << shift
		if uint64(count) >= t {
			g.offer(newEntry(uint32(count), base+uint32(id)))
		}
	}
}
