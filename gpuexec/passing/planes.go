package passing

import "github.com/geniemq/geniemq/index/postings"

// # Planes
//
// The planes of a bit-sliced attribute (postings.Planes) are compared with the ends of a span of codes, 256 objects at a time, which gives a
// mask of the objects in it. That costs the same whatever the span selects.

const (
	GroupWords  = postings.GroupObjects / 64
	QuadWords   = 4 // are compared at a time, in registers
	QuadObjects = 64 * QuadWords
)

// Equal is the mask of the objects with a code. words begin with a quad in plane 0 and end with the last plane.
func Equal(words []uint64, code uint32) (a, b, c, d uint64) {
	a, b, c, d = ^a, ^b, ^c, ^d
	for {
		x := (*[QuadWords]uint64)(words)
		if code&1 != 0 {
			a, b, c, d = a&x[0], b&x[1], c&x[2], d&x[3]
		} else {
			a, b, c, d = a&^x[0], b&^x[1], c&^x[2], d&^x[3]
		}
		if len(words) < GroupWords+QuadWords {
			return a, b, c, d
		}
		code >>= 1
		words = words[GroupWords:]
	}
}

// Between is the mask of the objects with codes first to last: those that are at least first and not above last. With
// the planes from the lowest up, x >= f is kept where the bits are equal, and what differs decides: a bit 1 of f
// requires that of x (and), a bit 0 is exceeded by it (or). It begins as true; x > l is the same, begun as false.
func Between(words []uint64, first, last uint32) (a, b, c, d uint64) {
	a, b, c, d = ^a, ^b, ^c, ^d
	var e, f, g, h uint64
	for {
		x := (*[QuadWords]uint64)(words)
		if first&1 != 0 {
			a, b, c, d = a&x[0], b&x[1], c&x[2], d&x[3]
		} else {
			a, b, c, d = a|x[0], b|x[1], c|x[2], d|x[3]
		}
		if last&1 != 0 {
			e, f, g, h = e&x[0], f&x[1], g&x[2], h&x[3]
		} else {
			e, f, g, h = e|x[0], f|x[1], g|x[2], h|x[3]
		}
		if len(words) < GroupWords+QuadWords {
			return a &^ e, b &^ f, c &^ g, d &^ h
		}
		first >>= 1
		last >>= 1
		words = words[GroupWords:]
	}
}

// addPlanes adds the objects of a tile with codes first to last to its words.
func addPlanes(dst, planes []uint64, depth int, first, last uint32) {
	for len(planes) > 0 {
		group, own := planes[:depth*GroupWords], dst[:GroupWords]
		for quad := 0; quad < GroupWords; quad += QuadWords {
			var a, b, c, d uint64
			if first == last {
				a, b, c, d = Equal(group[quad:], first)
			} else {
				a, b, c, d = Between(group[quad:], first, last)
			}
			to := (*[QuadWords]uint64)(own[quad:])
			to[0], to[1], to[2], to[3] = to[0]|a, to[1]|b, to[2]|c, to[3]|d
		}
		planes, dst = planes[depth*GroupWords:], dst[GroupWords:]
	}
}
