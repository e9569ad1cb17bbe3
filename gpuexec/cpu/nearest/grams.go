package nearest

import (
	"math"
	"slices"
	"sort"

	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/cost"
	"github.com/geniemq/geniemq/index/ngram"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// gramQuery finds the texts within a radius r of a text Q of an index of n-grams.
//
// A text within r shares theta = |Q| + n - 1 - n r n-grams with Q at least (distance.Column.Theta). Of the lists of Q's n-grams, shortest first, it is in at least
// t = theta - (lists that are left out) of the first s, for any s that leaves t at 1 or more. So the longest lists are not read at all: s is chosen so that
// what is read and what is compared then take least. Every object that is in t lists is compared with Q, up to r, so the answer is exact, and in the order of (value, id).
//
// Where theta is below 1 counts prove nothing, and there is no gramQuery.
type gramQuery struct {
	lists    []gramList // ascending by length
	tiles    int
	take     int     // lists that are counted: s
	least    uint16  // of which an object has so many: t
	postings float64 // of the matcher's objects in those lists
	compared float64 // of these objects as many are expected to be in enough lists
}

// gramList is the list of an n-gram: its number among the rare ones, which are of all objects, else among those in the directories of tiles.
type gramList struct {
	number, length uint32 // in all tiles of the index, whichever are the matcher's
	rare           bool
}

// gramTerms is what looking a text's n-grams up takes: memory of one goroutine.
type gramTerms struct {
	scanner  ngram.Scanner
	keys     []byte // end to end
	ends     []int
	list     []string
	keywords []uint32
	known    []gramList
	order    []uint64 // of known ones: length, and number
}

// lookUp returns the keywords of a text's n-grams, which are good until the next call; unknown ones are postings.NoKeyword.
func (t *gramTerms) lookUp(lists *postings.Lists, attr int, text string, n int) []uint32 {
	t.keys, t.ends, t.list = t.keys[:0], t.ends[:0], t.list[:0]
	for t.scanner.Reset([]rune(text), n); t.scanner.Next(); t.ends = append(t.ends, len(t.keys)) {
		t.keys = append(t.keys, t.scanner.Key()...)
	}
	all, begin := string(t.keys), 0
	for _, end := range t.ends {
		t.list = append(t.list, all[begin:end])
		begin = end
	}
	t.keywords = lists.LookupAll(t.keywords[:0], attr, t.list)
	clear(t.list) // not to keep the text alive
	return t.keywords
}

// gramAttribute is the attribute of a column's n-grams, -1 where it has none that can be read list by list.
func gramAttribute(x *postings.Lists, c *distance.Column) int {
	if c.Grams == 0 {
		return -1
	}
	return slices.IndexFunc(x.Attributes(), func(a postings.Attribute) bool {
		return a.Name == c.Name && a.Type == schema.Text && a.Layout != schema.LayoutSliced && a.Distinct
	})
}

// gramsOf prepares a job whose query may be answered by n-grams; nil: it may not.
func (m *Matcher) gramsOf(job *run.Job) *gramQuery {
	q := job.Query.(*distance.Query)
	if q.Method != distance.Auto && q.Method != distance.Ngram {
		return nil
	}
	attr, theta := m.scanned[m.position(q.Column)].grams, q.Column.Theta(q)
	if attr < 0 || theta < 1 || theta > math.MaxUint16 {
		return nil
	}
	terms := m.terms.Get()
	defer m.terms.Put(terms)
	keywords := terms.lookUp(m.index.Lists, attr, q.Text, q.Column.Grams)
	terms.known, terms.order = terms.known[:0], terms.order[:0]
	for _, keyword := range keywords {
		if keyword != postings.NoKeyword {
			l := m.gramList(attr, keyword)
			terms.order = append(terms.order, uint64(l.length)<<32|uint64(len(terms.known)))
			terms.known = append(terms.known, l)
		}
	}
	slices.Sort(terms.order)
	g := &gramQuery{tiles: m.tiles.Len(), lists: make([]gramList, len(terms.order))}
	for i, at := range terms.order {
		g.lists[i] = terms.known[uint32(at)]
	}
	g.cut(theta)
	own := float64(m.tiles.Len()) / float64(max(1, m.index.Lists.Tiles()))
	g.postings, g.compared = own*g.postings, own*g.compared
	return g
}

func (m *Matcher) gramList(attr int, keyword uint32) gramList {
	x := m.index.Lists
	l := gramList{number: keyword, length: x.Frequency(attr, keyword)}
	if x.Attribute(attr).Layout == schema.LayoutRare {
		r := x.Rare(attr)
		l.number = r.Frequent(keyword)
		if l.rare = l.number == r.Frequent(keyword+1); l.rare {
			l.number = keyword - l.number
		}
	}
	return l
}

// compareCost is what comparing a candidate takes, in postings.
const compareCost = 64

// cut chooses how many lists are counted. An object in t of s lists is in one of the first s-t+1, whatever s is, which bounds how many there are; so does that each is in t. Of these
// half as many are guessed for each list more that they have to be in.
func (g *gramQuery) cut(theta int) {
	if len(g.lists) < theta {
		g.lists = nil // no object shares as many
		return
	}
	best, read, first, share := math.Inf(1), 0.0, 0.0, 1.0
	for _, l := range g.lists[:len(g.lists)-theta+1] {
		first += float64(l.length)
	}
	for s, l := range g.lists {
		read += float64(l.length)
		t := theta - (len(g.lists) - s - 1)
		if t < 1 {
			continue
		}
		objects := min(first, read/float64(t)) * share
		share /= 2
		if all := read + compareCost*objects; all < best {
			best, g.take, g.least, g.postings, g.compared = all, s+1, uint16(t), read, objects
		}
	}
}

// price is what it takes, in nanoseconds: above 0.
func (g *gramQuery) price(d cost.Distance, posting float64) float64 {
	const (
		begin = 3000 // whatever there is to count
		run   = 20   // postings, to find a list in a tile
	)
	return begin + (g.postings+run*float64(g.take*g.tiles))*posting + g.compared*(d.Alone+posting*compareCost/4)
}

// counters count the lists that objects of a tile are in. All are 0 between uses.
type counters [1 << 16]uint16

// gramSearch is a search by n-grams: tile by tile, the objects that are in enough lists, and then the values of these.
type gramSearch struct {
	*Matcher
	query *gramQuery
	q     *distance.Query
	of    *scanned
	asker metric.Asker

	tile   int      // that is counted next, of the matcher's
	found  []uint32 // objects that are to be compared
	best   part
	bound  float64 // up to which the first of found is compared, if it was stopped
	paused bool
	did    distance.Answer
}

func (u *pathUnit) beginGrams(n int, q *distance.Query) (distance.Searching, error) {
	s := &gramSearch{Matcher: u.Matcher, query: u.grams[n], q: q, of: &u.scanned[u.position(q.Column)]}
	s.best = part{best: heap{k: min(q.K, int(u.hi-u.lo))}, most: math.Inf(1)}
	s.did = distance.Answer{Method: distance.Ngram, Exact: true, Counted: q.Total || q.K == 0}
	if s.query.take == 0 {
		s.tile = u.tiles.Len()
		return s, nil
	}
	var err error
	s.asker, err = q.Asker(s.of.space)
	return s, err
}

// Run implements distance.Searching.
func (s *gramSearch) Run(pass func(id uint32) bool, meter metric.Meter) (done bool) {
	long, end := metric.Pausing(nil), func() {}
	if s.asker != nil {
		long, end = metric.Metered(s.asker, meter)
	}
	defer end()
	each := s.of.space.Metric().Work(1)
	for len(s.found) > 0 || s.tile < s.tiles.Len() {
		if len(s.found) == 0 {
			meter.Did(s.count(pass))
			s.tile++
		} else if !s.compare(long) {
			return false
		} else {
			meter.Did(each)
		}
		if meter.Stop() {
			return false
		}
	}
	return true
}

// count finds the objects of the next tile that are in enough lists and may be hits, and says what work it was.
func (s *gramSearch) count(pass func(id uint32) bool) (work int) {
	counts := s.counters.Get()
	base := uint32(s.tiles.First+s.tile) * store.TileObjects
	s.did.Blocks++
	work = s.countGrams(s.query, s.of.grams, s.tiles.First+s.tile, counts, func(local uint16) {
		if id := base + uint32(local); (s.of.present == nil || s.of.present.Has(id)) && (pass == nil || pass(id)) {
			s.found = append(s.found, id)
		}
	})
	s.counters.Put(counts) // after a fault they are not all 0, and given up
	return work
}

// compare compares the next object that was found; false: it was stopped.
func (s *gramSearch) compare(long metric.Pausing) bool {
	id, p := s.found[0], &s.best
	if !s.paused {
		s.bound = p.limit(s.q)
	}
	var value [1]float64
	metric.ValuesTo(s.asker, id, id+1, s.bound, value[:])
	if s.paused = long != nil && long.Paused(); s.paused {
		return false
	}
	s.did.Distances++
	if value[0] <= s.bound {
		p.take(s.q, metric.Hit{Value: value[0], ID: id}, s.bound)
	}
	if s.found = s.found[1:]; len(s.found) == 0 {
		s.found = nil
	}
	return true
}

// End implements distance.Searching.
func (s *gramSearch) End(did *distance.Answer, hits []metric.Hit) []metric.Hit {
	*did = s.did
	if did.Counted {
		did.Within = s.best.within
	}
	slices.SortFunc(s.best.best.hits, metric.Hit.Compare)
	return append(hits, s.best.best.hits...)
}

// countGrams calls found for each object of a tile that is in enough of the lists, and says how many postings it looked at.
func (m *Matcher) countGrams(g *gramQuery, attr, tile int, counts *counters, found func(local uint16)) (work int) {
	lists := m.index.Lists.Postings(tile, attr)
	_, starts, all := m.index.Lists.Rare(attr).Arrays()
	base := uint32(tile) * store.TileObjects
	var runs [][]uint16
	var rare [][]uint32
	for _, l := range g.lists[:g.take] {
		if l.rare {
			ids := all[starts[l.number]:starts[l.number+1]]
			first := sort.Search(len(ids), func(i int) bool { return ids[i] >= base })
			end := first + sort.Search(len(ids)-first, func(i int) bool { return ids[first+i]-base >= store.TileObjects })
			rare = append(rare, ids[first:end])
			continue
		}
		runs = append(runs, lists.Run(l.number, l.number+1))
	}
	for _, ids := range runs {
		work += len(ids)
		for _, id := range ids {
			counts[id]++
		}
	}
	for _, ids := range rare {
		for _, id := range ids {
			counts[uint16(id-base)]++
		}
	}
	take := func(id uint16) {
		n := counts[id]
		counts[id] = 0
		if n >= g.least {
			found(id)
		}
	}
	for _, ids := range runs {
		for _, id := range ids {
			take(id)
		}
	}
	for _, ids := range rare {
		for _, id := range ids {
			take(uint16(id - base))
		}
	}
	return work
}
