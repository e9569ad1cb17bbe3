// Package varint reads the numbers, texts and labels that structures are stored as, of which nothing is believed.
package varint

// Reader reads numbers and texts from Data, from At on, and remembers that it Failed. Nothing that it reads makes it allocate.
type Reader struct {
	Data   string
	At     int
	Failed bool
}

// Number reads a varint of the least length, of at most most.
func (r *Reader) Number(most int) int {
	v := uint64(0)
	for shift := 0; shift < 35 && r.At < len(r.Data); shift += 7 {
		c := r.Data[r.At]
		r.At++
		v |= uint64(c&0x7F) << shift
		if c >= 0x80 {
			continue
		}
		if most < 0 || v > uint64(most) || c == 0 && shift > 0 {
			break
		}
		return int(v)
	}
	r.Failed = true
	return 0
}

// Text reads a length and so many bytes.
func (r *Reader) Text(most int) string {
	n := r.Number(most)
	if r.Failed || n > len(r.Data)-r.At {
		r.Failed = true
		return ""
	}
	r.At += n
	return r.Data[r.At-n : r.At]
}
