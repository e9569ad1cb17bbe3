package cpu

import (
	"math/bits"
	"slices"

	"github.com/geniemq/geniemq/gpuexec/passing"
	"github.com/geniemq/geniemq/index/store"
)

// # Counting what passes
//
// Where few objects of a tile pass, their postings are picked out of the lists, and counted alone: to pick a posting costs as much as to count
// it, without a branch, and what is not counted need not be harvested either. So a query with a filter costs less to count than without. A list
// that is much longer than what passes is not even read: the objects that pass are looked for in it.

const (
	pickCost   = 500                     // a posting that is looked at, in picoseconds
	fewPassing = store.TileObjects / 128 // so few of a tile that a branch is guessed right
	seekCost   = 8000                    // a step of a search in a list, which is guessed wrong every other time
)

// picks tells whether the postings of what passes are picked out of the lists of a tile with so many objects.
func (p tilePass) picks(objects int) bool { return p.words != nil && p.count <= objects/8 }

// picked are the postings of a query in a tile whose objects pass.
type picked struct {
	ids      []uint16 // of runs
	runs     []listRun
	rare     []uint32
	postings int
	passing  []uint16 // the objects that pass, once it is known that they are looked for
}

// pick picks what passes out of runs and rare postings.
func (k *picked) pick(p tilePass, runs []listRun, rare []uint32) {
	most := 0
	for i := range runs {
		most += len(runs[i].ids)
	}
	k.ids = slices.Grow(k.ids[:0], most)
	k.runs, k.rare, k.passing, k.postings = k.runs[:0], k.rare[:0], k.passing[:0], 0
	for i := range runs {
		run := &runs[i]
		if run.passes {
			k.runs = append(k.runs, *run)
			k.postings += len(run.ids)
			continue
		}
		to, n := k.ids[len(k.ids):][:len(run.ids)], 0
		if run.ascends && p.seeks(len(run.ids)) {
			if len(k.passing) == 0 {
				k.passing = p.list(k.passing)
			}
			n = seek(to, run.ids, k.passing)
		} else {
			n = pick(to, run.ids, p.words, p.count < fewPassing)
		}
		if n > 0 {
			k.ids = k.ids[:len(k.ids)+n]
			k.runs = append(k.runs, listRun{ids: to[:n], weight: run.weight})
			k.postings += n
		}
	}
	for _, posting := range rare {
		if p.has(uint16(posting >> 16)) {
			k.rare = append(k.rare, posting)
			k.postings++
		}
	}
}

// seeks tells whether looking for each object that passes costs less than looking at so many postings.
func (p tilePass) seeks(postings int) bool {
	if p.count >= postings {
		return false
	}
	steps := 1
	for left := postings / p.count; left > 0; left /= 2 {
		steps++
	}
	return p.count*steps*seekCost < postings*pickCost
}

// pick copies to dst the ids that pass and returns how many. Unless hardly any passes there is no branch that depends on an id.
func pick(dst, ids []uint16, words *passing.Words, few bool) int {
	n := 0
	dst = dst[:len(ids)]
	if few {
		for _, id := range ids {
			if words.Bit(uint(id)) != 0 {
				dst[n] = id
				n++
			}
		}
		return n
	}
	for _, id := range ids {
		dst[n] = id
		n += words.Bit(uint(id))
	}
	return n
}

// list appends the objects that pass to dst.
func (p tilePass) list(dst []uint16) []uint16 {
	for w, word := range p.words {
		for ; word != 0; word &= word - 1 {
			dst = append(dst, uint16(w*64+bits.TrailingZeros64(word)))
		}
	}
	return dst
}

// seek copies to dst those of some objects that are in a list, as often as they are there, and returns how many. Both ascend: each is looked
// for from where the one before was, in steps that double.
func seek(dst, list, objects []uint16) int {
	n, at := 0, 0
	for _, id := range objects {
		step := 1
		for at+step < len(list) && list[at+step] < id {
			step *= 2
		}
		found, _ := slices.BinarySearch(list[at:min(at+step+1, len(list))], id)
		for at += found; at < len(list) && list[at] == id; at++ {
			dst[n] = id
			n++
		}
	}
	return n
}
