package lsh

// Engine is a device that can hash vectors by itself, with the same bits as the host (package block says which those are).
type Engine interface {
	// Hasher lays functions out on the device. nil: it does not hash. The hasher is to be closed before the engine is.
	Hasher(f *Functions) (Hasher, error)
}

// Hasher is functions on a device. It is safe for concurrent use.
type Hasher interface {
	// Hash writes the keywords of vectors, as Functions.Hash with asked 1, else as Functions.HashQueries. The elements have been checked, and
	// lengths fit. After an error dst is void.
	Hash(dst []uint32, vectors []float32, asked int) error
	// Close frees what is on the device, after the last call has returned.
	Close() error
}

// By returns the same functions, so many vectors of which at once, or more, are hashed by h. What it cannot hash, as when its device is lost, the
// host does: the bits are the same.
func (f *Functions) By(h Hasher, least int) *Functions {
	other := *f
	other.elsewhere, other.least = h, max(1, least)
	return &other
}

// hashedElsewhere hashes vectors on a device, where that is worth it and works. The fault is that of the first element that cannot be hashed.
func (f *Functions) hashedElsewhere(dst []uint32, vectors []float32, asked int) (done bool, fault *ElementError) {
	dim := f.parameters.Dim
	if f.elsewhere == nil || len(vectors) < f.least*dim {
		return false, nil
	}
	if at := firstBeyond(vectors, f.limit); at >= 0 {
		return false, &ElementError{at / dim, at % dim, vectors[at], f.limit}
	}
	return f.elsewhere.Hash(dst, vectors, asked) == nil, nil
}
