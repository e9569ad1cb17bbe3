package similarity

// Rarity weighs the keywords of an index by how few objects have them, as IDF does. It is safe for concurrent
// use, and a weight takes a few nanoseconds: what is looked up is how many objects may have a keyword of each weight.
type Rarity struct {
	lists Frequencies
	most  []uint32 // most[j] is the most objects that may have a keyword of weight j + 1 or more; it falls
}

// Frequencies tells how many objects have a keyword of an attribute.
type Frequencies interface {
	Frequency(attr int, keyword uint32) uint32
}

// NewRarity returns the weights of a scale, 1 to 64, in an index of so many objects.
func NewRarity(lists Frequencies, objects uint32, scale int) (*Rarity, error) {
	idf, err := NewIDF(scale, uint64(objects))
	if err != nil {
		return nil, err
	}
	t := &Rarity{lists: lists}
	for j := uint32(1); j <= MaxIDF && idf.Weight(0) >= j; j++ {
		enough, most := uint64(0), uint64(objects) // the answer lies between
		for enough < most {
			if half := enough + (most-enough+1)/2; idf.Weight(half) >= j {
				enough = half
			} else {
				most = half - 1
			}
		}
		t.most = append(t.most, uint32(enough))
	}
	return t, nil
}

// Weight returns the weight of a keyword.
func (t *Rarity) Weight(attr int, keyword uint32) uint32 {
	return t.ofFrequency(t.lists.Frequency(attr, keyword))
}

// ofFrequency returns the weight of a keyword that so many objects have.
func (t *Rarity) ofFrequency(objects uint32) uint32 {
	lo, n := 0, len(t.most)
	for n > 0 {
		half := n / 2
		if t.most[lo+half] >= objects {
			lo += half + 1
			n -= half + 1
		} else {
			n = half
		}
	}
	return uint32(max(1, lo))
}
