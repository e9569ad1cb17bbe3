package verify

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/geniemq/geniemq/index/forward"
	"github.com/geniemq/geniemq/index/levenshtein"
)

// edit is the edit distance of a record's string and the query's. A missing string compares as the empty one.
//
// The bound is that of the package comment, with floor(count/unit) in place of the match count: that has at least the common grams of the column,
// whatever other columns were asked for. Only of an empty query it says nothing here: a candidate need not share a gram with it, as one of
// sequences has to.
type edit struct {
	column *forward.Column
	text   []rune
	n      int
	unit   uint32
}

func newEdit(_ *Measure, a *Asked) (measure, error) {
	if a.NGram < 1 {
		return nil, fmt.Errorf("grams of %d symbols in column %q", a.NGram, a.Column.Name)
	}
	if err := validText(a); err != nil {
		return nil, err
	}
	return &edit{column: a.Column, text: []rune(a.Text), n: a.NGram, unit: a.Unit}, nil
}

func (e *edit) bytes() int64 { return int64(cap(e.text)) * int64(unsafe.Sizeof(rune(0))) }

func (e *edit) cost() int64 {
	return 50 + 5*int64(len(e.text)/64+1)*e.column.Average()
}

func (e *edit) certified(last *ranked, count uint32) bool {
	if e.unit == 0 || len(e.text) == 0 {
		return false
	}
	n := int64(e.n)
	return int64(count/e.unit) < int64(len(e.text))+n-1-n*(int64(last.key)-1)
}

func (e *edit) empty() bool { return false }

func (e *edit) report(r *ranked) float64 { return r.key }

func (e *edit) comparer(old comparer) comparer {
	c := reused[editComparer](old)
	c.edit, c.resuming = e, false
	c.pattern.Reset(e.text)
	return c
}

type editComparer struct {
	*edit
	pattern  levenshtein.Pattern
	runes    []rune
	paused   uint32 // the object whose comparison stopped,
	resuming bool   // if one did
}

func (c *editComparer) block() int { return 1 }

func (c *editComparer) compare(dst []ranked, candidates []Candidate, limit float64, m *meter) ([]ranked, error) {
	p := &c.pattern
	p.Meter = m
	for _, o := range candidates {
		if c.resuming && c.paused != o.ID {
			p.Forget()
		}
		c.resuming = false
		bound := math.MaxInt32
		if limit < math.MaxInt32 {
			bound = int(math.Floor(limit))
		}
		text := c.column.Text(o.ID)
		m.Did(textWork)
		if bound < 0 || len(text) < p.Len()-bound || len(text) > 4*(p.Len()+bound) {
			continue
		}
		m.Did(len(text))
		d, ok := p.DistanceString(text, bound, &c.runes)
		if p.Paused() {
			c.paused, c.resuming = o.ID, true
			return dst, m.take()
		}
		if ok {
			dst = append(dst, ranked{id: o.ID, count: o.Count, key: float64(d)})
		}
	}
	return dst, nil
}
