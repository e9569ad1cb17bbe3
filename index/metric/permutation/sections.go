package permutation

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/geniemq/geniemq/index/metric/recall"
)

// Sections are the index as a file has it. Head is small; ranks are read in place.
type Sections struct {
	// Head is, little-endian: version (u32, 1), similarity (u32; 1 rho, 2 footrule), objects (u32), permutants m (u32), seed (u64), the m
	// numbers of the permutants (u32), and the recall table to the end.
	Head []byte
	// Ranks are [object][permutant], a byte each.
	Ranks []byte
}

const (
	version   = 1
	headBytes = 24
)

// Sections returns what a file has to keep. It shares the ranks.
func (x *Index) Sections() Sections {
	code := uint32(1)
	if x.parameters.Similarity == Footrule {
		code = 2
	}
	var head []byte
	for _, v := range []uint32{version, code, x.objects, uint32(len(x.permutants))} {
		head = binary.LittleEndian.AppendUint32(head, v)
	}
	head = binary.LittleEndian.AppendUint64(head, x.parameters.Seed)
	for _, id := range x.permutants {
		head = binary.LittleEndian.AppendUint32(head, id)
	}
	return Sections{x.recall.Append(head), x.ranks}
}

// Open reads an index of so many objects. It borrows the ranks, which must not change. It checks all that searching relies on; that ranks are what
// they say is looked at by Verify.
func Open(s Sections, objects uint32) (*Index, error) {
	fail := func(err error) (*Index, error) { return nil, fmt.Errorf("a damaged permutation index: %w", err) }
	u32 := binary.LittleEndian.Uint32
	if len(s.Head) < headBytes {
		return fail(fmt.Errorf("a head of %d bytes, which has %d at least", len(s.Head), headBytes))
	}
	if v := u32(s.Head); v != version {
		return nil, fmt.Errorf("a permutation index of version %d, where this program reads version %d: build the index again, or use the program that built it", v, version)
	}
	code, n, m := u32(s.Head[4:]), u32(s.Head[8:]), u32(s.Head[12:])
	x := &Index{objects: n, ranks: s.Ranks, parameters: Parameters{Permutants: int(m), Seed: binary.LittleEndian.Uint64(s.Head[16:])}}
	switch {
	case code == 1:
		x.parameters.Similarity = Rho
	case code == 2:
		x.parameters.Similarity = Footrule
	default:
		return fail(fmt.Errorf("similarity %d, which is 1 or 2", code))
	}
	switch {
	case n != objects:
		return fail(fmt.Errorf("it ranks %d objects, where there are %d", n, objects))
	case m > MaxPermutants || m > n || m == 0 && n > 0:
		return fail(fmt.Errorf("%d permutants of %d objects: there are 1 to %d, and no more than objects", m, n, MaxPermutants))
	case uint64(len(s.Ranks)) != uint64(n)*uint64(m):
		return fail(fmt.Errorf("%d bytes of ranks, where %d objects and %d permutants have %d", len(s.Ranks), n, m, uint64(n)*uint64(m)))
	}
	rest := s.Head[headBytes:]
	if uint64(len(rest)) < 4*uint64(m) {
		return fail(errors.New("its head ends within the numbers of the permutants"))
	}
	seen := make(map[uint32]bool, m)
	for range m {
		id := u32(rest)
		if id >= n || seen[id] {
			return fail(fmt.Errorf("permutant %d is object %d: the %d objects are permutants once at most", len(x.permutants), id, n))
		}
		seen[id] = true
		x.permutants, rest = append(x.permutants, id), rest[4:]
	}
	var err error
	if x.recall, err = recall.Read(rest, 1); err != nil {
		return fail(err)
	}
	if x.recall.Queries > 0 && x.recall.Objects != n-1 {
		return fail(fmt.Errorf("its recall was measured with %d objects, where there are %d", x.recall.Objects, n))
	}
	x.distances = best(x.parameters.Similarity, int(m))
	return x, nil
}

// Verify looks at the ranks of every object.
func (x *Index) Verify() error {
	m := len(x.permutants)
	for id := range uint64(x.objects) {
		var seen [MaxPermutants + 1]bool
		for _, r := range x.ranks[id*uint64(m) : (id+1)*uint64(m)] {
			if int(r) >= m || seen[r] {
				return fmt.Errorf("a damaged permutation index: object %d has the rank %d of %d twice, or beyond the last", id, r, m)
			}
			seen[r] = true
		}
	}
	return nil
}
