package recall

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
)

// Draw returns so many of the numbers below n, each once, in random order; all of them where there are fewer. n and the seed alone decide which come first: a larger
// draw begins as a smaller one does, so parts of one draw have nothing in common.
//
// The numbers are the same on every machine and with every compiler: ChaCha8 is specified (C2SP, chacha8rand), and what follows are integers. A number
// below 2^32 made of 64 random bits by a product is as good as even.
func Draw(n, count uint32, seed uint64) []uint32 {
	key := [32]byte{16: 'g', 17: 'e', 18: 'n', 19: 'i', 20: 'e', 21: 'm', 22: 'q', 24: 2}
	binary.LittleEndian.PutUint64(key[:], seed)
	source := rand.NewChaCha8(key)
	count = min(count, n)
	drawn := make([]uint32, count)
	// Fisher and Yates's shuffle of 0 to n-1, of which only what was moved is kept.
	moved := make(map[uint32]uint32, count)
	at := func(i uint32) uint32 {
		if v, ok := moved[i]; ok {
			return v
		}
		return i
	}
	for i := range count {
		below, _ := bits.Mul64(source.Uint64(), uint64(n-i))
		j := i + uint32(below)
		drawn[i] = at(j)
		moved[j] = at(i)
	}
	return drawn
}
