package postings

import (
	"slices"

	"github.com/geniemq/geniemq/index/store"
)

// ListStatistics summarise the postings of one attribute, by keyword, and what they cost.
type ListStatistics struct {
	Median  uint64 // length of the lists of the keywords that some object has, summed over tiles
	P99     uint64
	Max     uint64
	Longest uint32 // a keyword with Max postings, the first

	PostingsBytes   int64 // of the ids or planes
	DirectoryBytes  int64 // of what finds them, padding included
	VocabularyBytes int64 // of strings and their hash table, or of edges or values
}

// TileWork estimates what queries cost in each tile: its postings, and clearing and harvesting its counters.
func (x *Lists) TileWork() []uint64 {
	work := make([]uint64, x.Tiles())
	for tile := range work {
		work[tile] = uint64(x.TileLen(tile))
		for a := range x.attributes {
			work[tile] += codecOf(x.attributes[a].Layout).work(x, tile, a)
		}
	}
	return work
}

// ListStatistics computes the statistics of an attribute. It reads the directories, not the postings, and needs 8 bytes a
// keyword. What it tells of keywords does not depend on the layout.
func (x *Lists) ListStatistics(attr int) ListStatistics {
	var s ListStatistics
	for _, section := range x.Sections() {
		if section.Attribute != attr {
			continue
		}
		switch section.Kind {
		case SectionPostings, SectionPlanes, SectionCodes, SectionRare:
			s.DirectoryBytes += store.Align(section.Length)
		case SectionNumbers, SectionStrings, SectionLookup:
			s.VocabularyBytes += store.Align(section.Length)
		}
	}
	if x.Tiles() == 0 {
		return s
	}
	lengths := make([]uint64, x.attributes[attr].Keywords)
	codecOf(x.attributes[attr].Layout).describe(x, attr, &s, lengths)
	s.DirectoryBytes -= s.PostingsBytes
	for keyword, length := range lengths {
		if length > s.Max {
			s.Max, s.Longest = length, uint32(keyword)
		}
	}
	slices.Sort(lengths)
	unused, _ := slices.BinarySearch(lengths, 1)
	if lengths = lengths[unused:]; len(lengths) > 0 {
		s.Median = lengths[(len(lengths)-1)/2]
		s.P99 = lengths[(len(lengths)-1)*99/100]
	}
	return s
}
