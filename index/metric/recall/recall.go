// Package recall says which share of the nearest neighbours an approximate search finds: it measures that with held-out objects, keeps it in
// a table, and chooses by the table how much a search has to do.
package recall

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/geniemq/geniemq/index/lsh"
)

// Table says which share of the k nearest neighbours was found, by k and by effort. An effort is what a method calls so: a fraction of the objects,
// a number of probes; more effort finds as much at least.
//
// # What was measured
//
// Each query is an object of the index that was held out: neither its neighbours nor what is looked at counts it, and nothing that was learned from
// objects (permutants, centroids) was learned from it. So queries are such as users ask, not members, whose nearest neighbour
// is always found. A neighbour is found when the search gives an object that is as near: of k hits those count that are at most as far as the k-th
// neighbour (permutation-index.txt, section 2.1). With ties at that distance it does not matter which of them are found.
//
// # What is promised
//
// The share is the mean over queries. Its lower bound is that of Wilson's interval of 95 %, where a query counts as one trial and not as k: the
// neighbours of one query are found or missed together. Shares of a query vary less than trials that succeed or fail, so the interval is rather too
// wide. So of forty independent tables one may have a bound above the truth; what two efforts or numbers of neighbours of one table say is not independent, since the same queries tell it. Who
// asks for a recall is given the least effort whose lower bound reaches it, with the same certainty, however many efforts there are to choose from: a query that finds an object with one
// effort finds it with all above, so an effort that falls short is chosen only if the last one that does has a bound that is too high. The share itself has no such certainty: it is above the
// truth as often as below. Between two numbers of neighbours of the table the lesser of
// both shares holds, of searches that look at as many objects as those for the upper one (Neighbours), between two efforts and beyond them that of the lesser effort. Of fewer and more neighbours, and of less effort, nothing is said.
//
// A table of no rows says nothing: the index had too few objects. It is immutable.
type Table struct {
	Objects uint32    // that each query was compared with
	Queries uint32    // that were held out
	Ks      []uint32  // numbers of neighbours, ascending
	Efforts []float64 // above 0, ascending
	Found   []uint64  // [k][effort]: neighbours that were found, of Queries x k
}

// Recall is a share of neighbours found. Low is the bound that the true one exceeds with a certainty of 97.5 %, as one of these numbers: of many tables some are wrong.
type Recall struct{ Share, Low float64 }

// At returns the recall of k neighbours with an effort. It is absent for what the table does not cover.
func (t *Table) At(k int, effort float64) (Recall, bool) {
	j, exact := slices.BinarySearch(t.Efforts, effort)
	if !exact {
		j--
	}
	if j < 0 {
		return Recall{}, false
	}
	return t.at(k, j)
}

// Least returns the least effort of the table whose recall of k neighbours is share at least, by its lower bound.
func (t *Table) Least(k int, share float64) (effort float64, r Recall, ok bool) {
	j := sort.Search(len(t.Efforts), func(j int) bool { // more effort finds as much at least
		at, ok := t.at(k, j)
		return ok && at.Low >= share
	})
	if j == len(t.Efforts) {
		return 0, Recall{}, false
	}
	r, ok = t.at(k, j)
	return t.Efforts[j], r, ok
}

// Neighbours is for how many neighbours a search for k has to look at objects: for as many as the next number of the table, beyond the last for k. A search looks at k objects at least, however
// little its effort is, and what it finds of ten by looking at ten, and of a hundred by looking at a hundred, says nothing of forty by looking at forty.
func (t *Table) Neighbours(k int) int {
	if t == nil || k < 1 || k > math.MaxUint32 {
		return k
	}
	i, _ := slices.BinarySearch(t.Ks, uint32(k))
	if i == 0 || i == len(t.Ks) {
		return k
	}
	return int(t.Ks[i])
}

// at is the recall of one effort: where k lies between two numbers of neighbours, the lesser.
func (t *Table) at(k, effort int) (Recall, bool) {
	if k < 1 || k > math.MaxUint32 {
		return Recall{}, false
	}
	i, exact := slices.BinarySearch(t.Ks, uint32(k))
	if i == len(t.Ks) || i == 0 && !exact {
		return Recall{}, false
	}
	r := t.row(i, effort)
	if !exact {
		if below := t.row(i-1, effort); below.Share < r.Share {
			r = below
		}
	}
	return r, true
}

func (t *Table) row(i, effort int) Recall {
	n := float64(t.Queries)
	share := float64(t.Found[i*len(t.Efforts)+effort]) / (n * float64(t.Ks[i]))
	low, _ := lsh.Wilson(share, n)
	return Recall{share, low}
}

// Limits of a table in a file.
const (
	maxKs      = 64
	maxEfforts = 1024
	headBytes  = 16
)

// Append appends the table's bytes: the numbers of objects, of queries, of Ks and of Efforts (u32 each), the Ks (u32), the efforts (f64), and what was
// found (u64, by k, then effort), all little-endian.
func (t *Table) Append(dst []byte) []byte {
	for _, v := range []uint32{t.Objects, t.Queries, uint32(len(t.Ks)), uint32(len(t.Efforts))} {
		dst = binary.LittleEndian.AppendUint32(dst, v)
	}
	for _, k := range t.Ks {
		dst = binary.LittleEndian.AppendUint32(dst, k)
	}
	for _, e := range t.Efforts {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(e))
	}
	for _, f := range t.Found {
		dst = binary.LittleEndian.AppendUint64(dst, f)
	}
	return dst
}

// Read reads a table that Append wrote, which is all of data, and checks it. No effort is more than most.
func Read(data []byte, most float64) (*Table, error) {
	if len(data) < headBytes {
		return nil, fmt.Errorf("a recall table of %d bytes, which has a head of %d", len(data), headBytes)
	}
	u32 := binary.LittleEndian.Uint32
	t := &Table{Objects: u32(data), Queries: u32(data[4:])}
	ks, efforts := u32(data[8:]), u32(data[12:])
	if ks > maxKs || efforts > maxEfforts {
		return nil, fmt.Errorf("a recall table of %d numbers of neighbours and %d efforts: at most %d and %d", ks, efforts, maxKs, maxEfforts)
	}
	if need := headBytes + 4*ks + 8*efforts + 8*ks*efforts; uint32(len(data)) != need || len(data) > 1<<24 {
		return nil, fmt.Errorf("a recall table of %d bytes, where %d numbers of neighbours and %d efforts have %d", len(data), ks, efforts, need)
	}
	data = data[headBytes:]
	for range ks {
		t.Ks, data = append(t.Ks, u32(data)), data[4:]
	}
	for range efforts {
		t.Efforts, data = append(t.Efforts, math.Float64frombits(binary.LittleEndian.Uint64(data))), data[8:]
	}
	for range ks * efforts {
		t.Found, data = append(t.Found, binary.LittleEndian.Uint64(data)), data[8:]
	}
	if err := t.check(most); err != nil {
		return nil, fmt.Errorf("a damaged recall table: %w", err)
	}
	return t, nil
}

// check finds what cannot have been measured.
func (t *Table) check(most float64) error {
	if (len(t.Ks) == 0) != (len(t.Efforts) == 0) || (len(t.Ks) == 0) != (t.Queries == 0) || (t.Queries == 0) != (t.Objects == 0) {
		return errors.New("it has a part of what a measurement has")
	}
	for i, k := range t.Ks {
		if k == 0 || k > t.Objects || i > 0 && k <= t.Ks[i-1] {
			return fmt.Errorf("the numbers of neighbours %v do not ascend, from 1 to %d", t.Ks, t.Objects)
		}
	}
	for j, e := range t.Efforts {
		if !(e > 0 && e <= most) || j > 0 && e <= t.Efforts[j-1] {
			return fmt.Errorf("the efforts %v do not ascend, from above 0 to %v", t.Efforts, most)
		}
	}
	for i, k := range t.Ks {
		row := t.Found[i*len(t.Efforts) : (i+1)*len(t.Efforts)]
		if !slices.IsSorted(row) || row[len(row)-1] > uint64(k)*uint64(t.Queries) {
			return fmt.Errorf("of %d x %d neighbours %v were found", t.Queries, k, row)
		}
	}
	return nil
}
