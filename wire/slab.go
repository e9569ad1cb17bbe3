package wire

// slab hands out slices of memory that many short lists share: the conditions of a batch of 1,024 rows are a few
// allocations instead of thousands. It takes memory as lists are read, not as they are announced.
type slab[T any] struct {
	free []T // empty, with what is left as capacity
	size int // of the last allocation
	need int // the length of the last list: the next one's is likely the same

	// Where memory is used again: what there is, and how many of these are in use.
	blocks [][]T
	used   int
	dirty  int // and how many hold what lists were made of
}

const (
	minSlab = 4
	maxSlab = 512
	// maxKept bounds what is kept to be used again, in elements.
	maxKept = 1 << 16
)

// start returns an empty list to append to. The one before it must have been kept, or is abandoned.
func (s *slab[T]) start() []T {
	least := max(s.need, 1)
	for cap(s.free) < least && s.used < len(s.blocks) {
		s.free = s.blocks[s.used]
		s.used++
	}
	if cap(s.free) < least {
		s.size = min(max(2*s.size, s.need, minSlab), maxSlab)
		s.free = make([]T, 0, s.size)
		if s.blocks != nil && s.used*maxSlab < maxKept {
			s.blocks = append(s.blocks, s.free)
			s.used++
		}
	}
	return s.free
}

// keep returns the finished list, at its length, and takes its memory off what is free. A list that has outgrown the
// slab has moved away from it.
func (s *slab[T]) keep(list []T) []T {
	s.need = min(len(list), maxSlab)
	if len(list) <= cap(s.free) {
		s.free = s.free[len(list):len(list):cap(s.free)]
	}
	return list[:len(list):len(list)]
}

// rewind gives up all lists, whose memory is that of the next ones. Of what they held, all is left behind them.
func (s *slab[T]) rewind() {
	s.dirty = max(s.dirty, s.used)
	s.free, s.used = nil, 0
	if s.blocks == nil {
		s.blocks = make([][]T, 0, 8)
	}
}

// again forgets all lists and keeps their memory for the next ones.
func (s *slab[T]) again() {
	s.rewind()
	for _, block := range s.blocks[:s.dirty] {
		clear(block[:cap(block)])
	}
	*s = slab[T]{size: s.size, need: s.need, blocks: s.blocks}
}
