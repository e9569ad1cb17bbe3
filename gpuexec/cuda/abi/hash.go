package abi

// What becomes of a bucket (enum HashKind).
const (
	HashClamp = iota
	HashRehash
	HashSign
)

// Hash is the argument of hash_rows and hash_cells, which hash vectors as package index/lsh does.
type Hash struct {
	Vectors, Panels, Offsets, Seeds Pointer
	Low, Keywords                   Pointer
	Count, Dim                      uint32
	Functions, Buckets              uint32
	Asked, Kind                     uint32
}
