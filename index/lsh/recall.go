package lsh

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Table says which share of the nearest neighbours was among the candidates, measured with held-out queries. It holds for as many objects as
// it was measured with: with more of them more come before a neighbour.
type Table struct {
	Objects uint64
	Queries uint32
	Rows    []Row // ascending by reach, k, candidates
}

// Row is what was found with one reach: of the K nearest neighbours of each query, how many were among the first Candidates objects by match count, of all queries.
type Row struct {
	K, Candidates, Reach uint32
	Found                uint64
}

func (r Row) compare(o Row) int {
	return cmp.Or(cmp.Compare(r.Reach, o.Reach), cmp.Compare(r.K, o.K), cmp.Compare(r.Candidates, o.Candidates))
}

// Recall is a share of neighbours found, with a confidence interval of 95 %.
type Recall struct{ Share, Low, High float64 }

// Lookup returns the recall for k neighbours among so many candidates with a reach. Between tabulated values it is that of the row which promises least: more neighbours are harder to find and more
// candidates find more, so of the two numbers of neighbours around k the lesser share holds, each with the largest number of candidates that is not above what is asked. Of the reaches it is
// the largest that is not above. It is absent outside of the table.
func (t *Table) Lookup(k, candidates, reach uint32) (Recall, bool) {
	below, ok := t.around(k, candidates, reach)
	if !ok {
		return Recall{}, false
	}
	least := t.recall(below)
	if below.K < k {
		above := Row{}
		for _, r := range t.Rows {
			// Where even the fewest candidates of the upper number are more than what is asked, they stand for it: so many neighbours want as many candidates.
			if r.Reach == below.Reach && r.K >= k && (above.K == 0 || r.K == above.K && r.Candidates <= candidates) {
				above = r
			}
		}
		if upper := t.recall(above); upper.Share < least.Share {
			least = upper
		}
	}
	return least, true
}

// around is the row of the largest reach, then k, then number of candidates, that are not above what is asked. ok: what is asked lies at or between values of the table.
func (t *Table) around(k, candidates, reach uint32) (below Row, ok bool) {
	for _, r := range t.Rows {
		fits := r.Reach <= reach && r.K <= k && r.Candidates <= candidates
		if fits && r.compare(below) > 0 {
			below = r
		}
	}
	if below.K == 0 {
		return Row{}, false
	}
	var reaches, ks, all bool
	for _, r := range t.Rows {
		reaches = reaches || r.Reach >= reach
		ks = ks || r.Reach == below.Reach && r.K >= k
		all = all || r.Reach == below.Reach && r.K == below.K && r.Candidates >= candidates
	}
	return below, reaches && ks && all
}

// Of is what a table says of one reach.
func (t *Table) Of(reach int) Table {
	of := Table{Objects: t.Objects, Queries: t.Queries}
	for _, r := range t.Rows {
		if r.Reach == uint32(reach) {
			of.Rows = append(of.Rows, r)
		}
	}
	return of
}

// recall is a row's share with Wilson's interval. A query counts as one trial and not as k: neighbours of one query are found or missed together. The variance of shares is at most that of
// trials that succeed or fail, so the interval is rather too wide.
func (t *Table) recall(r Row) Recall {
	n := float64(t.Queries)
	share := float64(r.Found) / (n * float64(r.K))
	low, high := Wilson(share, n)
	return Recall{share, low, high}
}

// Wilson returns the interval of 95 % for a probability of which a share was seen in n trials (E. B. Wilson 1927).
func Wilson(share, n float64) (low, high float64) {
	const z = 1.959963984540054 // of the normal distribution, for 97.5 %
	centre := share + z*z/(2*n)
	half := z * math.Sqrt(share*(1-share)/n+z*z/(4*n*n))
	return math.Max(0, (centre-half)/(1+z*z/n)), math.Min(1, (centre+half)/(1+z*z/n))
}

// check returns the faults of a table.
func (t *Table) check() []error {
	if len(t.Rows) == 0 {
		if t.Objects != 0 || t.Queries != 0 {
			return []error{errors.New("a recall table without rows names objects or queries")}
		}
		return nil
	}
	var faults []error
	if len(t.Rows) > maxRows {
		faults = append(faults, fmt.Errorf("a recall table of %d rows: at most %d", len(t.Rows), maxRows))
	}
	if t.Queries == 0 || t.Objects == 0 {
		faults = append(faults, errors.New("a recall table that was measured with nothing"))
	}
	for i, r := range t.Rows {
		if r.K == 0 || r.Candidates < r.K || r.Reach > MaxReach || r.Found > uint64(t.Queries)*uint64(r.K) {
			faults = append(faults, fmt.Errorf("row %d of the recall table is impossible: %d of %d x %d neighbours among %d candidates with reach %d",
				i, r.Found, t.Queries, r.K, r.Candidates, r.Reach))
			break
		}
	}
	if !slices.IsSortedFunc(t.Rows, func(a, b Row) int {
		if c := a.compare(b); c != 0 {
			return c
		}
		return -1 // twice the same
	}) {
		faults = append(faults, errors.New("the rows of the recall table do not ascend"))
	}
	return faults
}
