package memory

import (
	"math/bits"
	"sync"
)

// Bodies are kept in classes of powers of two. What is smaller than the first is as cheap to make as to keep.
const (
	minBodyClass = 10 // 1 KiB: the answer to one query has a few
	maxBodyClass = 24 // 16 MiB
)

// Bodies are the memory of messages that are out, used again for later ones, by their size. Whatever is not given back is garbage
// like any other.
type Bodies struct {
	classes [maxBodyClass - minBodyClass + 1]sync.Pool
}

// Make gives an empty slice with room for size bytes.
func (b *Bodies) Make(size int) []byte {
	class := bits.Len(uint(max(size, 1) - 1))
	if class < minBodyClass || class > maxBodyClass {
		return make([]byte, 0, size)
	}
	if kept, _ := b.classes[class-minBodyClass].Get().(*[]byte); kept != nil {
		return (*kept)[:0]
	}
	return make([]byte, 0, 1<<class)
}

// Keep takes back the body of a message that is out, wherever it came from.
func (b *Bodies) Keep(body []byte) {
	if class := bits.Len(uint(cap(body))) - 1; minBodyClass <= class && class <= maxBodyClass {
		kept := body // what is not kept stays where it is
		b.classes[class-minBodyClass].Put(&kept)
	}
}
