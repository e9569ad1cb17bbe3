package postings

import "sync"

// frequencies are, by keyword of one attribute, how many objects have it. They are counted when somebody asks for the first time: from the
// directories, or, where an object may have a keyword twice, from the lists.
type frequencies struct {
	once    sync.Once
	objects []uint32
}

// Frequency returns how many objects have a keyword. The first call for an attribute takes the time to read its directories, and the lists
// where objects have keywords twice, and 4 bytes per keyword as long as the lists are open; all others take constant time.
func (x *Lists) Frequency(attr int, keyword uint32) uint32 {
	f := &x.frequencies[attr]
	f.once.Do(func() { f.objects = x.countObjects(attr) })
	return f.objects[keyword]
}

func (x *Lists) countObjects(attr int) []uint32 {
	a := &x.attributes[attr]
	objects := make([]uint32, a.Keywords)
	if x.Tiles() == 0 {
		return objects
	}
	if a.Distinct || a.MaxPerObject <= 1 {
		lengths := make([]uint64, a.Keywords)
		codecOf(a.Layout).describe(x, attr, new(ListStatistics), lengths)
		for keyword, length := range lengths {
			objects[keyword] = uint32(length)
		}
		return objects
	}
	var decoder Decoder
	for tile := range x.Tiles() {
		decoder.Postings(x, tile, attr).each(func(keyword uint32, ids []uint16) {
			for i, id := range ids {
				if i == 0 || id != ids[i-1] {
					objects[keyword]++
				}
			}
		})
	}
	return objects
}
