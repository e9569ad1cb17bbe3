package index

import (
	"math/bits"
	"slices"
)

// ListStatistics summarise the postings of one attribute, by keyword, and what they cost.
type ListStatistics struct {
	Used    uint32 // keywords that some object has
	Lists   uint64 // lists that are stored: one a tile where a keyword occurs, one of a rare keyword, none in LayoutSliced
	Median  uint64 // length of the lists of the keywords in use, summed over tiles
	P99     uint64
	Max     uint64
	Longest uint32 // a keyword with Max postings, the first

	PostingsBytes   int64 // of the ids or planes
	DirectoryBytes  int64 // of what finds them, padding included
	VocabularyBytes int64 // of strings and their hash table, or of edges or values
}

// ListStatistics computes the statistics of an attribute. It reads the directories, not the postings, and needs 8 bytes a
// keyword. What it tells of keywords does not depend on the layout.
func (x *Index) ListStatistics(attr int) ListStatistics {
	var s ListStatistics
	for _, section := range x.sections {
		if section.Attribute != attr {
			continue
		}
		switch section.Kind {
		case SectionPostings, SectionPlanes, SectionCodes, SectionRare:
			s.DirectoryBytes += align(section.Length)
		case SectionNumbers, SectionStrings, SectionLookup:
			s.VocabularyBytes += align(section.Length)
		}
	}
	if x.Tiles() == 0 {
		return s
	}
	lengths := make([]uint64, x.attributes[attr].Keywords)
	switch x.attributes[attr].Layout {
	case LayoutSliced:
		for tile := range x.Tiles() {
			s.PostingsBytes += 4 * int64(len(x.Planes(tile, attr).words))
		}
		starts, code := x.codes[attr].starts, 0
		eachBit(x.codes[attr].words, func(keyword uint32) {
			lengths[keyword] = uint64(starts[code+1] - starts[code])
			code++
		})
	case LayoutRare:
		x.addLists(&s, attr, lengths[:x.rare[attr].Frequent(uint32(len(lengths)))])
		x.addRare(&s, attr, lengths)
	default:
		x.addLists(&s, attr, lengths)
	}
	s.DirectoryBytes -= s.PostingsBytes
	for keyword, length := range lengths {
		if length > s.Max {
			s.Max, s.Longest = length, uint32(keyword)
		}
	}
	slices.Sort(lengths)
	unused, _ := slices.BinarySearch(lengths, 1)
	if lengths = lengths[unused:]; len(lengths) > 0 {
		s.Used = uint32(len(lengths))
		s.Median = lengths[(len(lengths)-1)/2]
		s.P99 = lengths[(len(lengths)-1)*99/100]
	}
	return s
}

// addLists adds the tiles' lists to the statistics, and to lengths.
func (x *Index) addLists(s *ListStatistics, attr int, lengths []uint64) {
	for tile := range x.Tiles() {
		p := x.Postings(tile, attr)
		s.Lists += uint64(p.Lists())
		s.PostingsBytes += 2 * int64(p.Len())
		p.each(func(keyword uint32, ids []uint16) { lengths[keyword] += uint64(len(ids)) })
	}
}

// addRare moves the lengths of the frequent keywords, which lengths begins with, to their places and adds the rare
// ones.
func (x *Index) addRare(s *ListStatistics, attr int, lengths []uint64) {
	r := x.rare[attr]
	s.Lists += uint64(r.Lists())
	s.PostingsBytes += 4 * int64(len(r.ids))
	for keyword := uint32(len(lengths)); keyword > 0; {
		keyword-- // a keyword's number is not above it, so that going down none is overwritten before it has moved
		number := r.Frequent(keyword)
		if r.isFrequent(keyword) {
			lengths[keyword] = lengths[number]
		} else {
			lengths[keyword] = uint64(r.starts[keyword-number+1] - r.starts[keyword-number])
		}
	}
}

// eachBit calls visit for every keyword whose bit is set in directory words, ascending.
func eachBit(words []uint64, visit func(keyword uint32)) {
	for w, word := range words {
		for present := uint32(word); present != 0; present &= present - 1 {
			visit(uint32(w)*32 + uint32(bits.TrailingZeros32(present)))
		}
	}
}

// each calls visit for every keyword that occurs in the tile, ascending.
func (p Postings) each(visit func(keyword uint32, ids []uint16)) {
	list := 0
	eachBit(p.words, func(keyword uint32) {
		visit(keyword, p.ids[p.starts[list]:p.starts[list+1]])
		list++
	})
}
