package memory

import (
	"math/bits"
	"sync"
	"unsafe"
)

// Bodies are kept in classes of powers of two. What is smaller than the first is as cheap to make as to keep.
const (
	minBodyClass = 8  // 256 bytes: the answer to one query has a few hundred
	maxBodyClass = 24 // 16 MiB
)

// Bodies are the memory of messages that are out, used again for later ones, by their size. Whatever is not given back is garbage
// like any other.
type Bodies struct {
	classes [maxBodyClass - minBodyClass + 1]sync.Pool // of *byte, the first of a class's size: a slice would take memory of its own to be kept
}

// Make gives an empty slice with room for size bytes.
func (b *Bodies) Make(size int) []byte {
	class := bits.Len(uint(max(size, 1) - 1))
	if class < minBodyClass || class > maxBodyClass {
		return make([]byte, 0, size)
	}
	if kept, _ := b.classes[class-minBodyClass].Get().(*byte); kept != nil {
		return unsafe.Slice(kept, 1<<class)[:0]
	}
	return make([]byte, 0, 1<<class)
}

// Keep takes back the body of a message that is out, wherever it came from.
func (b *Bodies) Keep(body []byte) {
	if class := bits.Len(uint(cap(body))) - 1; minBodyClass <= class && class <= maxBodyClass {
		b.classes[class-minBodyClass].Put(unsafe.SliceData(body))
	}
}
