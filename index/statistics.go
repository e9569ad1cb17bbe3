package index

import (
	"math/bits"
	"slices"
)

// ListStatistics summarise the postings lists of one attribute: how long they are, and what they cost.
type ListStatistics struct {
	Used    uint32 // keywords that some object has
	Lists   uint64 // lists over all tiles: a keyword has one in each tile where it occurs
	Median  uint64 // length of the lists of the keywords in use, summed over tiles
	P99     uint64
	Max     uint64
	Longest uint32 // a keyword with Max postings, the first

	PostingsBytes   int64 // of the ids
	DirectoryBytes  int64 // of what finds them, padding included
	VocabularyBytes int64 // of strings and their hash table, or of edges or values
}

// ListStatistics computes the statistics of an attribute. It reads the directories, not the postings, and needs 8 bytes a
// keyword.
func (x *Index) ListStatistics(attr int) ListStatistics {
	var s ListStatistics
	for _, section := range x.sections {
		if section.Attribute != attr {
			continue
		}
		switch section.Kind {
		case SectionPostings:
			s.DirectoryBytes += align(section.Length)
		case SectionNumbers, SectionStrings, SectionLookup:
			s.VocabularyBytes += align(section.Length)
		}
	}
	if x.Tiles() == 0 {
		return s
	}
	lengths := make([]uint64, x.attributes[attr].Keywords)
	for tile := range x.Tiles() {
		p := x.Postings(tile, attr)
		s.Lists += uint64(p.Lists())
		s.PostingsBytes += 2 * int64(p.Len())
		p.each(func(keyword uint32, ids []uint16) { lengths[keyword] += uint64(len(ids)) })
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

// each calls visit for every keyword that occurs in the tile, ascending.
func (p Postings) each(visit func(keyword uint32, ids []uint16)) {
	list := 0
	for w, word := range p.words {
		for present := uint32(word); present != 0; present &= present - 1 {
			visit(uint32(w)*32+uint32(bits.TrailingZeros32(present)), p.ids[p.starts[list]:p.starts[list+1]])
			list++
		}
	}
}
