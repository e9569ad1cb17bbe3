package store

import "encoding/binary"

// Frame puts parts into one section: how many there are and how many bytes each has, each a u64, then the parts, each padded to 8 bytes.
func Frame(parts [][]byte) []byte {
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(parts)))
	for _, p := range parts {
		out = binary.LittleEndian.AppendUint64(out, uint64(len(p)))
	}
	for _, p := range parts {
		out = append(out, p...)
		out = append(out, make([]byte, -len(out)&7)...)
	}
	return out
}

// mostParts bounds the parts of a section.
const mostParts = 16

// Unframe takes a section apart again.
func Unframe(data []byte) (parts [][]byte, err error) {
	le := binary.LittleEndian
	if len(data) < 8 || le.Uint64(data) > mostParts || uint64(len(data)) < 8+8*le.Uint64(data) {
		return nil, Corrupt("%d bytes cannot be parts of a section", len(data))
	}
	n := int(le.Uint64(data))
	sizes, rest := data[8:8+8*n], data[8+8*n:]
	for i := range n {
		size := le.Uint64(sizes[8*i:])
		if size > uint64(len(rest)) || size+7 < size || (size+7)&^7 > uint64(len(rest)) {
			return nil, Corrupt("part %d of a section has %d bytes, and %d are left", i, size, len(rest))
		}
		parts, rest = append(parts, rest[:size:size]), rest[(size+7)&^7:]
	}
	if len(rest) > 0 {
		return nil, Corrupt("%d bytes follow the parts of a section", len(rest))
	}
	return parts, nil
}
