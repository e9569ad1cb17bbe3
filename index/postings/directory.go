package postings

import (
	"math/bits"

	"github.com/geniemq/geniemq/index/store"
)

// directory finds the list of a keyword among lists that lie one after the other in keyword order. Postings tells how,
// and what it costs. Its form in the file is a head of the number of lists and of postings, the words, the starts.
type directory struct {
	words  []uint64 // V/32 + 1, so that V itself has a rank
	starts []uint32 // of the lists that are there, and the end
}

func rank(words []uint64, keyword uint32) uint32 {
	w := words[keyword/32]
	return uint32(w>>32) + uint32(bits.OnesCount32(uint32(w)&(1<<(keyword%32)-1)))
}

const directoryHead = 8

func directoryWords(keywords uint32) int { return int(keywords/32) + 1 }

func directoryBytes(keywords uint32, lists int) int {
	return directoryHead + 8*directoryWords(keywords) + 4*(lists+1)
}

// Lists returns the number of lists, which is that of the keywords that occur; the zero value has none.
func (d directory) Lists() int { return max(len(d.starts)-1, 0) }

// postings returns the end of the last list.
func (d directory) postings() uint64 { return uint64(d.starts[len(d.starts)-1]) }

// newDirectory writes the head of a directory to section, which must be aligned to 8 bytes, and returns words and
// starts to be filled in and what follows them.
func newDirectory(section []byte, keywords uint32, lists, postings int) (d directory, rest []byte) {
	head := store.View[uint32](section[:directoryHead])
	head[0], head[1] = uint32(lists), uint32(postings)
	starts := directoryHead + 8*directoryWords(keywords)
	end := starts + 4*(lists+1)
	return directory{store.View[uint64](section[directoryHead:starts]), store.View[uint32](section[starts:end])}, section[end:]
}

// lay fills words and starts in by the lengths of all lists, and makes each length the place where its list starts.
func (d directory) lay(lengths []uint32) {
	list, start := uint32(0), uint32(0)
	for w := range d.words {
		word := uint64(list) << 32
		base := w * 32
		for bit, length := range lengths[base:min(base+32, len(lengths))] {
			if length != 0 {
				word |= 1 << bit
				d.starts[list] = start
				list++
				lengths[base+bit] = start
				start += length
			}
		}
		d.words[w] = word
	}
	d.starts[list] = start
}

// splitDirectory cuts a section into the directory at its beginning and what follows, by the bounds alone.
func splitDirectory(section []byte, keywords uint32) (directory, []byte, error) {
	if len(section) < directoryHead {
		return directory{}, nil, store.Corrupt("%d bytes are no directory", len(section))
	}
	head := store.View[uint32](section[:directoryHead])
	lists := uint64(head[0])
	wordEnd := directoryHead + 8*uint64(directoryWords(keywords))
	end := wordEnd + 4*(lists+1)
	if uint64(len(section)) < end {
		return directory{}, nil, store.Corrupt("%d bytes; a directory of %d lists needs %d", len(section), lists, end)
	}
	return directory{
		words:  store.View[uint64](section[directoryHead:wordEnd]),
		starts: store.View[uint32](section[wordEnd:end]),
	}, section[end:], nil
}

// decodeDirectory reads the directory at the beginning of a section and checks it in O(directory): ranks are what the
// presence bits say, no list is empty, and the lists hold as many postings as the head says. It returns what
// follows it too.
func decodeDirectory(section []byte, keywords uint32) (directory, []byte, error) {
	d, rest, err := splitDirectory(section, keywords)
	if err != nil {
		return directory{}, nil, err
	}
	head := store.View[uint32](section[:directoryHead])
	lists, postings := uint64(head[0]), uint64(head[1])
	present, err := checkRanks(d.words, keywords)
	if err != nil {
		return directory{}, nil, err
	}
	if present != lists {
		return directory{}, nil, store.Corrupt("the directory has %d lists, should be %d", present, lists)
	}
	if err := checkStarts(d.starts, postings); err != nil {
		return directory{}, nil, err
	}
	return d, rest, nil
}

// checkRanks checks directory words and returns how many of their bits are set.
func checkRanks(words []uint64, keywords uint32) (uint64, error) {
	sum := uint64(0)
	for w, word := range words {
		if word>>32 != sum {
			return 0, store.Corrupt("directory word %d has rank %d, should be %d", w, word>>32, sum)
		}
		sum += uint64(bits.OnesCount32(uint32(word)))
	}
	if beyond := uint32(words[len(words)-1]) >> (keywords % 32); beyond != 0 {
		return 0, store.Corrupt("the directory has keywords beyond the last")
	}
	return sum, nil
}

// checkStarts checks that lists are not empty and end at the number of postings.
func checkStarts(starts []uint32, postings uint64) error {
	previous := starts[0]
	if previous != 0 {
		return store.Corrupt("the first list starts at %d", previous)
	}
	for i, start := range starts[1:] {
		if start <= previous {
			return store.Corrupt("list %d has no postings", i)
		}
		previous = start
	}
	if uint64(previous) != postings {
		return store.Corrupt("the lists end at %d of %d postings", previous, postings)
	}
	return nil
}
