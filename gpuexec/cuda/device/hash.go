//go:build cuda

package device

import (
	"errors"
	"fmt"

	"gorgonia.org/cu"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/index/lsh"
)

const (
	// hashSlots is how many calls are on the device at a time: while one computes, the other's vectors and keywords are copied.
	hashSlots = 2
	// hashIn and hashOut bound what of vectors and of keywords is there at a time, in bytes, in each slot.
	hashIn  = 4 << 20
	hashOut = 16 << 20
)

// hasher is hash functions in the memory of a device (kernels/hash.cu), with what calls need. The tables are copied as they are on the host: the
// kernels read what index/lsh/block reads, and compute as it says. It implements lsh.Hasher.
type hasher struct {
	engine  *Engine
	own     owned // of the tables
	tables  abi.Hash
	kernel  function
	slots   chan *hashSlot
	all     []*hashSlot
	release func() // of the memory budget
}

// hashSlot is what one call has: a stream and memory on both sides.
type hashSlot struct {
	device            binding
	own               owned
	stream            cu.Stream
	done              cu.Event
	in, out           pinned
	vectors, keywords abi.Pointer
	steps             steps
}

// hasher implements run.Engine.Hashes.
func (e *Engine) hasher(f *lsh.Functions) (lsh.Hasher, error) {
	h := &hasher{engine: e, slots: make(chan *hashSlot, hashSlots)}
	if err := h.open(f); err != nil {
		return nil, fmt.Errorf("laying hash functions out on %s: %w", e.About.Device, errors.Join(err, h.Close()))
	}
	return h, nil
}

func (h *hasher) open(f *lsh.Functions) (err error) {
	e, p, t := h.engine, f.Parameters(), f.Tables()
	h.tables = abi.Hash{Dim: uint32(p.Dim), Functions: uint32(p.Functions), Buckets: uint32(p.Buckets), Kind: abi.HashRehash}
	h.kernel = e.kernels.hashRows
	switch {
	case p.Family == lsh.Laplacian:
		h.kernel = e.kernels.hashCells
	case p.Family == lsh.Cosine:
		h.tables.Kind = abi.HashSign
	case t.Low != nil:
		h.tables.Kind = abi.HashClamp
	}
	arrays := []struct {
		to    *abi.Pointer
		bytes []byte
	}{
		{&h.tables.Panels, abi.Bytes(t.Panels)}, {&h.tables.Offsets, abi.Bytes(t.Offsets)},
		{&h.tables.Seeds, abi.Bytes(t.Seeds)}, {&h.tables.Low, abi.Bytes(t.Low)},
	}
	bytes := int64(hashSlots * (hashIn + hashOut))
	for _, a := range arrays {
		bytes += abi.Units(len(a.bytes)) * abi.UnitBytes
	}
	if h.release, err = e.Host.Budget.Reserve(gpuexec.Holding{Owner: "engine", Form: "hash functions", Bytes: bytes}); err != nil {
		return err
	}
	err = e.do(func() error {
		for _, a := range arrays {
			*a.to = h.own.memory(abi.Units(len(a.bytes)) * abi.UnitBytes)
			if h.own.err != nil {
				return deviceError("allocating the tables of hash functions", h.own.err)
			}
			if len(a.bytes) > 0 {
				if err := e.uploader.whole(*a.to, a.bytes); err != nil {
					return err
				}
			}
		}
		return nil
	})
	for range hashSlots {
		if err != nil {
			return err
		}
		var s *hashSlot
		if s, err = newHashSlot(e); s != nil {
			h.all = append(h.all, s)
			h.slots <- s
		}
	}
	return err
}

// newHashSlot makes a slot, which is to be closed after an error too if there is one.
func newHashSlot(e *Engine) (*hashSlot, error) {
	s := &hashSlot{device: binding(e.context)}
	return s, s.device.do(func() error {
		s.stream, s.done = s.own.stream(urgent), s.own.event(cu.BlockingSyncEvent|cu.DisableTiming)
		s.in, s.out = s.own.pinned(hashIn), s.own.pinned(hashOut)
		s.vectors, s.keywords = s.own.memory(hashIn), s.own.memory(hashOut)
		return deviceError("allocating the memory of hashing", s.own.err)
	})
}

func (s *hashSlot) close() error {
	return s.device.do(func() error { return deviceError("freeing the memory of hashing", s.own.close()) })
}

// Hash implements lsh.Hasher.
func (h *hasher) Hash(dst []uint32, vectors []float32, asked int) error {
	s := <-h.slots
	defer func() { h.slots <- s }()
	dim, width := int(h.tables.Dim), int(h.tables.Functions)*asked
	most := hashBatch(dim, width, h.engine.kernels.hashVectors)
	if most == 0 {
		return fmt.Errorf("hashing on a device: %d keywords of a vector are more than it takes", width)
	}
	return s.device.do(func() error {
		for len(vectors) > 0 {
			n := min(most, len(vectors)/dim)
			h.record(s, vectors[:n*dim], n, asked)
			if err := s.steps.run(s.stream, s.done); err != nil {
				return deviceError("hashing vectors", err)
			}
			copy(dst, abi.Array[uint32](s.out, 0, n*width))
			vectors, dst = vectors[n*dim:], dst[n*width:]
		}
		return nil
	})
}

// record records the hashing of n vectors.
func (h *hasher) record(s *hashSlot, vectors []float32, n, asked int) {
	argument, k := h.tables, h.engine.kernels
	argument.Vectors, argument.Keywords, argument.Count, argument.Asked = s.vectors, s.keywords, uint32(n), uint32(asked)
	out := n * int(argument.Functions) * asked * 4
	s.steps = s.steps[:0]
	s.steps.copyIn(s.vectors, s.in[:copy(s.in, abi.Bytes(vectors))])
	launch(&s.steps, h.kernel, (int(argument.Functions)+k.hashFunctions-1)/k.hashFunctions, (n+k.hashVectors-1)/k.hashVectors, &argument)
	s.steps.copyOut(s.out[:out], s.keywords)
}

// hashBatch is how many vectors are hashed at a time, of which each has so many elements and keywords; 0: it has too many.
func hashBatch(dim, keywords, vectorsOfBlock int) int {
	return min(hashIn/(4*dim), hashOut/(4*keywords), abi.MaxGridY*vectorsOfBlock)
}

// Close implements lsh.Hasher.
func (h *hasher) Close() error {
	var errs []error
	for _, s := range h.all {
		errs = append(errs, s.close())
	}
	h.all = nil
	errs = append(errs, h.engine.do(func() error { return deviceError("freeing hash functions", h.own.close()) }))
	if h.release != nil {
		h.release()
		h.release = nil
	}
	return errors.Join(errs...)
}
