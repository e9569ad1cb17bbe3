package metric

import (
	"math"

	"github.com/geniemq/geniemq/index/levenshtein"
)

// Texts are a space of texts under Edit: the distance in code points, bytes that are not UTF-8 counting as U+FFFD. It is immutable.
type Texts struct {
	n     uint32
	text  func(i uint32) string
	order []uint32
}

// NewTexts makes a space of n texts. Object i is the text at order[i]; without an order, at i. The order is kept, and many goroutines may ask
// for texts.
func NewTexts(n uint32, text func(i uint32) string, order []uint32) (*Texts, error) {
	if order != nil {
		if err := checkOrder(order, int(n)); err != nil {
			return nil, err
		}
		n = uint32(len(order))
	}
	return &Texts{n, text, order}, nil
}

// Len implements Space.
func (s *Texts) Len() uint32 { return s.n }

// Metric implements Space.
func (s *Texts) Metric() Metric { return Metric{Kind: Edit} }

// Text is object i.
func (s *Texts) Text(i uint32) string {
	if s.order != nil {
		i = s.order[i]
	}
	return s.text(i)
}

// Permuted is a space of the same texts, of which object i is object order[i] of this one. The order is kept.
func (s *Texts) Permuted(order []uint32) (*Texts, error) { return NewTexts(s.n, s.Text, order) }

// Of implements Space.
func (s *Texts) Of(i uint32) Asker { return s.Query(s.Text(i)) }

// Query makes a text a query.
func (s *Texts) Query(text string) Asker {
	a, symbols := &textAsker{space: s}, []rune(text)
	a.pattern.Reset(symbols)
	a.query, _ = levenshtein.NewQuery(symbols)
	return a
}

type textAsker struct {
	space   *Texts
	pattern levenshtein.Pattern
	query   *levenshtein.Query // nil: it cannot be compared in lanes
	runes   []rune
	lanes   *textLanes // of the first asker of a scan
	seen    byte       // of texts that were touched
}

// Pausing is an Asker whose comparisons may take long, so that they can be stopped in the middle. It is one of a text of more than 64 symbols: shorter ones take
// no longer than to read the other.
type Pausing interface {
	Cutter
	// SetMeter is told of the work, and may stop a comparison.
	SetMeter(m levenshtein.Meter)
	// Paused says that the last comparison was stopped. Its value is math.Inf(1), and means nothing; the same call of ValuesTo, of one object, goes on with it.
	Paused() bool
}

// Pausable is the asker as one that can be stopped; nil: it need not be.
func Pausable(a Asker) Pausing {
	if t, ok := a.(*textAsker); ok && t.pattern.Len() > 64 {
		return t
	}
	return nil
}

// SetMeter implements Pausing.
func (a *textAsker) SetMeter(m levenshtein.Meter) { a.pattern.Meter = m }

// Paused implements Pausing.
func (a *textAsker) Paused() bool { return a.pattern.Paused() }

// Value implements Asker.
func (a *textAsker) Value(i uint32) float64 {
	d, _ := a.pattern.DistanceString(a.space.Text(i), math.MaxInt32, &a.runes)
	return float64(d)
}

// Values implements Asker.
func (a *textAsker) Values(lo, hi uint32, dst []float64) {
	for i := lo; i < hi; i++ {
		dst[i-lo] = a.Value(i)
	}
}

// ValuesTo implements Cutter.
func (a *textAsker) ValuesTo(lo, hi uint32, most float64, dst []float64) {
	bound := edits(most)
	for i := lo; i < hi; i++ {
		dst[i-lo] = a.valueTo(a.space.Text(i), bound)
	}
}

// valueTo is the value of a text, if it is at most bound.
func (a *textAsker) valueTo(text string, bound int) float64 {
	if d, ok := a.within(text, bound); ok {
		return float64(d)
	}
	return math.Inf(1)
}

// edits is the largest distance that is a value of most at most; -1: there is none.
func edits(most float64) int {
	if !(most >= 0) {
		return -1
	}
	return int(min(most, math.MaxInt32))
}

// within is the distance of a text, if it is at most bound.
func (a *textAsker) within(text string, bound int) (int, bool) {
	length := a.pattern.Len()
	if len(text) < length-bound || len(text) > 4*(length+bound) {
		return 0, false // a code point is 1 to 4 bytes
	}
	return a.pattern.DistanceString(text, bound, &a.runes)
}
