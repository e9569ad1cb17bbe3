package lsh

import (
	"math"
	"math/bits"
	"slices"
)

// lists are the objects of a block by the keywords that queries ask, so that counting takes what agrees and not what there is: a function agrees on few of the objects, and to see that
// it does not costs as much for each of them. Where keywords are re-hashed there is no other order to go by.
//
// Which keywords queries ask is known before there are objects, so each query holds its lists by number. To find the list of an object's keyword a table is made per function and block,
// of a worker's memory: tables of all functions would take several times what they hold. A block needs 2 bytes per object and function.
type lists struct {
	functions, width int
	// asked are lists, per query, function and step as HashQueries orders them; none where the query has it before.
	asked []uint32
	// keywords are those of the lists, function by function; after those of a function comes one that is none, where the last of its lists ends.
	keywords []uint32
	first    []uint32 // per function: its first list; one more
	most     int      // lists of a function
	start    []uint32 // per list: where it begins
	objects  []uint16 // of the block, atOnce per function
}

const (
	// atOnce objects make a block: their counts, of some reaches, are in the first cache while lists go by.
	atOnce = 2048
	// none is no keyword and no list.
	none = math.MaxUint32
	// beside functions are listed by one worker, since their keywords are in the same lines of the cache.
	beside = 16
)

// newLists makes lists of what queries ask, which becomes theirs.
func newLists(asked []uint32, functions, width int) *lists {
	l := &lists{functions: functions, width: width, asked: asked, objects: make([]uint16, functions*atOnce)}
	queries := len(asked) / (functions * width)
	f := newFinder(queries * width)
	for function := range functions {
		l.first = append(l.first, uint32(len(l.keywords)))
		f.reset()
		for query := range queries {
			own := asked[(query*functions+function)*width:][:width]
			for i, keyword := range own {
				e := f.find(keyword)
				if e.keyword == none {
					*e = entry{keyword, uint32(len(l.keywords))}
					l.keywords = append(l.keywords, keyword)
				}
				if own[i] = e.list; slices.Contains(own[:i], e.list) {
					own[i] = none
				}
			}
		}
		l.most = max(l.most, len(l.keywords)-int(l.first[function]))
		l.keywords = append(l.keywords, none)
	}
	l.first = append(l.first, uint32(len(l.keywords)))
	l.start = make([]uint32, len(l.keywords))
	return l
}

// fill lists the objects of a block by one function: keywords as Hash wrote them.
func (l *lists) fill(function int, keywords []uint32, f *finder) {
	first, end := l.first[function], l.first[function+1]
	f.reset()
	for list, keyword := range l.keywords[first : end-1] {
		*f.find(keyword) = entry{keyword, uint32(list)}
	}
	start := l.start[first:end]
	clear(start)
	n := 0
	for at := function; at < len(keywords); at += l.functions {
		e := f.find(keywords[at])
		f.lists[n] = e.list
		n++
		if e.list != none {
			start[e.list]++
		}
	}
	sum := uint32(function * atOnce)
	for i, objects := range start {
		sum += objects
		start[i] = sum // its end: what is listed last comes there
	}
	for i := n - 1; i >= 0; i-- {
		if list := f.lists[i]; list != none {
			start[list]--
			l.objects[start[list]] = uint16(i)
		}
	}
}

// count adds the functions from first to end that agree on a query and objects of the block: counts has atOnce per number of rings, of which each step is in one.
func (l *lists) count(counts []uint32, rings []int, query, first, end int) {
	asked := l.asked[(query*l.functions+first)*l.width : (query*l.functions+end)*l.width]
	for ; len(asked) > 0; asked = asked[l.width:] {
		for step, list := range asked[:l.width] {
			if list == none {
				continue
			}
			own := (*[atOnce]uint32)(counts[rings[step]*atOnce:])
			for _, object := range l.objects[l.start[list]:l.start[list+1]] {
				own[object%atOnce]++
			}
		}
	}
}

// finder finds lists of one function by their keywords. It belongs to one goroutine.
type finder struct {
	entries []entry
	lists   [atOnce]uint32 // of a block's objects
}

// entry is empty where its keyword is none; then its list is too.
type entry struct{ keyword, list uint32 }

// newFinder makes one for so many lists.
func newFinder(lists int) *finder {
	return &finder{entries: make([]entry, 1<<bits.Len(uint(2*lists)))}
}

func (f *finder) reset() {
	for i := range f.entries {
		f.entries[i] = entry{none, none}
	}
}

// find returns the entry of a keyword, or the empty one where it goes. Keywords are hashes, so their last bits are as good as any.
func (f *finder) find(keyword uint32) *entry {
	last := uint32(len(f.entries) - 1)
	for at := keyword & last; ; at = (at + 1) & last {
		if e := &f.entries[at]; e.keyword == keyword || e.keyword == none {
			return e
		}
	}
}
