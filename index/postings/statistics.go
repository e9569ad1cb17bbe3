package postings

import (
	"slices"

	"github.com/geniemq/geniemq/index/store"
)

// ListStatistics summarise the postings of one attribute, by keyword, and what they cost.
type ListStatistics struct {
	Used    uint32 // keywords that some object has
	Lists   uint64 // lists that are stored: one per tile where a keyword occurs, one of a rare keyword, none in LayoutSliced
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
		s.Used = uint32(len(lengths))
		s.Median = lengths[(len(lengths)-1)/2]
		s.P99 = lengths[(len(lengths)-1)*99/100]
	}
	return s
}
