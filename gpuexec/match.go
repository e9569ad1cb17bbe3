package gpuexec

import (
	"context"
	"math/bits"
	"slices"
	"time"

	"github.com/geniemq/geniemq/index"
)

// A matcher is the stage that engines differ in.
type matcher interface {
	// match finds, for every job, its best k objects among those with a count of at least minCount, and says
	// what it did in the job. The jobs are checked: their queries fit the index and counts fit 32 bits. An error means
	// that all jobs are void.
	match(ctx context.Context, jobs []*matchJob) error
	// scan compares texts, for the jobs that it can do: these are done. An error means that all jobs are void.
	scan(ctx context.Context, jobs []*scanJob) error
}

// matchJob is one query on its way through a matcher.
type matchJob struct {
	query    *index.Query
	k        int       // 1 to MaxK, at most the number of objects
	minCount uint32    // at least 1
	bound    uint32    // no object has a higher count
	text     []rune    // unless nil: the entries' texts will be compared with it
	nearest  int       // for so many hits
	deadline time.Time // a matcher that takes long may end the job with ErrDeadline then; zero: never

	entries []entry // the best k, the best one last; the memory is reused
	// distances are the edit distances to text, or -1, of the first entries, the best one first, where the matcher has compared
	// them; else empty.
	distances []int32
	err       error // concerns this job alone; entries mean nothing then
	// What the matcher adds to: postings scanned and entries that passed the Gate.
	postings, candidates uint64
}

// An entry is a count and an object id in one word, count << 32 | ^id, so that a greater entry precedes in the
// total order (count descending, id ascending). No two entries of a query are equal. Engines exchange entries and
// keep the order; everything that is "top k" is "the k largest" of these.
type entry uint64

const entryBytes = 8

func newEntry(count, id uint32) entry { return entry(count)<<32 | entry(^id) }

func (e entry) count() uint32 { return uint32(e >> 32) }
func (e entry) id() uint32    { return ^uint32(e) }

// keepTop moves the k largest entries to the front and returns the smallest of these, in no other order. It takes
// linear time: quickselect, or sorting should the pivots fail. 1 <= k <= len(entries).
func keepTop(entries []entry, k int) entry {
	lo, hi := 0, len(entries) // the boundary lies within [lo, hi]
	for rounds := 2 * bits.Len(uint(hi)); hi-lo > 16 && rounds > 0; rounds-- {
		pivot := median(entries[lo], entries[lo+(hi-lo)/2], entries[hi-1])
		i, j := lo, hi-1
		for i <= j {
			for entries[i] > pivot {
				i++
			}
			for entries[j] < pivot {
				j--
			}
			if i <= j {
				entries[i], entries[j] = entries[j], entries[i]
				i++
				j--
			}
		}
		// entries[lo:j+1] >= pivot, entries[i:hi] <= pivot, and what is between equals it.
		switch {
		case k <= j:
			hi = j + 1
		case k > i:
			lo = i
		default:
			return slices.Min(entries[:k])
		}
	}
	slices.SortFunc(entries[lo:hi], func(a, b entry) int {
		if a > b {
			return -1
		}
		return 1
	})
	return entries[k-1]
}

func median(a, b, c entry) entry {
	return max(min(a, b), min(max(a, b), c))
}
