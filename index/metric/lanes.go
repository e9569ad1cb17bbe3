package metric

import (
	"math"
	"unicode/utf8"

	"github.com/geniemq/geniemq/index/levenshtein"
)

const (
	// textsScanned is how many texts are put in the order of their lengths at a time.
	textsScanned = 4096
	// fewInLanes queries are compared with each text by itself: to put texts into lanes takes about as long as to compare one query.
	fewInLanes = 3
)

// textLanes is the memory of an asker for comparing texts with many queries.
type textLanes struct {
	*levenshtein.Lanes
	ids       []uint32 // by length
	lengths   []uint8  // of the texts of a stretch; longText: more symbols than lanes take
	distances [32]int
	live      []int // queries that texts of some lengths may be near enough to
}

const longText = levenshtein.MostLanes + 1

// scan implements scanner: texts are put in the order of their lengths, so that those of a register have about the same and take the same lanes, and a register is passed over
// for queries from which its texts differ in length by more than the limit. What no lane takes, texts and queries of more than 64 symbols, is compared by itself.
func (a *textAsker) scan(askers []Asker, lo, hi uint32, limits []float64, found Found) bool {
	if len(askers) < fewInLanes {
		return false
	}
	p := textPass{a: a, limits: limits, found: found}
	for _, other := range askers {
		o, ok := other.(*textAsker)
		if !ok || o.space != a.space {
			return false
		}
		p.askers = append(p.askers, o)
	}
	if a.lanes == nil {
		lanes := levenshtein.NewLanes()
		if lanes == nil {
			return false
		}
		a.lanes = &textLanes{Lanes: lanes}
	}
	for lo < hi {
		n := min(textsScanned, hi-lo)
		p.stretch(lo, lo+n)
		lo += n
	}
	return true
}

// release implements scanner: nothing of others is kept.
func (*textAsker) release() {}

// textPass is texts that are compared with queries.
type textPass struct {
	a      *textAsker
	askers []*textAsker
	limits []float64
	found  Found
}

// stretch compares the texts lo to hi-1.
func (p *textPass) stretch(lo, hi uint32) {
	starts := p.sort(lo, hi)
	for length, first := range starts[:longText+1] {
		if length == 0 || length == longText {
			for _, id := range p.a.lanes.ids[first:starts[length+1]] {
				p.alone(id, nil)
			}
		}
	}
	for most := 1; most < longText; { // texts of lanes of each width
		bits := levenshtein.LaneBits(most)
		for at, end := starts[most], starts[bits+1]; at < end; {
			n := min(end-at, levenshtein.LanesOf(bits))
			p.register(bits, lo, p.a.lanes.ids[at:at+n])
			at += n
		}
		most = bits + 1
	}
}

// sort puts texts in the order of their lengths, and returns where those of each begin.
func (p *textPass) sort(lo, hi uint32) (starts [longText + 2]int) {
	l, space := p.a.lanes, p.a.space
	l.lengths = l.lengths[:0]
	for id := lo; id < hi; id++ {
		text := space.Text(id)
		length := longText
		if len(text) <= 4*levenshtein.MostLanes {
			length = min(longText, utf8.RuneCountInString(text))
		}
		l.lengths = append(l.lengths, uint8(length))
		starts[length+1]++
	}
	for i := range longText + 1 {
		starts[i+1] += starts[i]
	}
	if cap(l.ids) < len(l.lengths) {
		l.ids = make([]uint32, len(l.lengths))
	}
	l.ids = l.ids[:len(l.lengths)]
	next := starts
	for i, length := range l.lengths {
		l.ids[next[length]] = lo + uint32(i)
		next[length]++
	}
	return starts
}

// alone compares a text with some queries one by one; nil: with all.
func (p *textPass) alone(id uint32, queries []int) {
	text := p.a.space.Text(id)
	if queries == nil {
		for i := range p.askers {
			p.one(i, id, text)
		}
		return
	}
	for _, i := range queries {
		p.one(i, id, text)
	}
}

func (p *textPass) one(query int, id uint32, text string) {
	if d, ok := p.askers[query].within(text, edits(p.limits[query])); ok {
		p.found(query, id, float64(d))
	}
}

// register compares texts that fit a register, by ascending length.
func (p *textPass) register(bits int, first uint32, ids []uint32) {
	l, space := p.a.lanes, p.a.space
	least, most := int(l.lengths[ids[0]-first]), int(l.lengths[ids[len(ids)-1]-first])
	l.live = l.live[:0]
	for i, o := range p.askers {
		bound, length := edits(p.limits[i]), o.pattern.Len()
		switch {
		case bound < 0 || length-most > bound || least-length > bound:
		case o.query == nil:
			for _, id := range ids {
				p.one(i, id, space.Text(id))
			}
		default:
			l.live = append(l.live, i)
		}
	}
	if len(l.live) < fewInLanes {
		for _, id := range ids {
			if len(l.live) > 0 {
				p.alone(id, l.live)
			}
		}
		return
	}
	l.Reset(bits)
	for _, id := range ids {
		l.Add(space.Text(id))
	}
	for _, i := range l.live {
		l.Distances(p.askers[i].query, l.distances[:])
		limit := p.limits[i]
		if math.IsNaN(limit) {
			continue
		}
		for j, id := range ids {
			if v := float64(l.distances[j]); v <= limit {
				p.found(i, id, v)
				limit = p.limits[i]
			}
		}
	}
}
