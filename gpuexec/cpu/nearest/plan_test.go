package nearest

import (
	"math"
	"testing"
	"time"
)

// What searches took corrects what is expected of the next, slowly and within bounds; what is not taken is forgotten.
func TestCorrections(t *testing.T) {
	c := corrections{byMethod: make(map[string]float64)}
	batch := func(method string, times float64) {
		c.learn(seen{{method, time.Duration(times * 1e6), 1e6}})
	}
	if f := c.now()("scan"); f != 1 {
		t.Errorf("nothing is known, and the factor is %v", f)
	}
	batch("scan", 1e9) // waited for its core
	if f := c.now()("scan"); f < 1.05 || f > 1.3 {
		t.Errorf("one search that took very long makes the factor %v", f)
	}
	for range 200 {
		batch("scan", 2)
	}
	if f := c.now()("scan"); math.Abs(f-2) > 0.01 || c.now()("tree") != 1 {
		t.Errorf("searches took twice as long, and the factor is %v", f)
	}
	for _, times := range []float64{100, 0.001} {
		for range 500 {
			batch("scan", times)
		}
		if f, want := c.now()("scan"), min(max(times, 1.0/mostFactor), mostFactor); math.Abs(f/want-1) > 1e-9 {
			t.Errorf("searches took %v times as long, and the factor is %v, not %v", times, f, want)
		}
	}
	for range 2000 {
		batch("tree", 1)
	}
	if f := c.now()("scan"); f < 0.9 || f > 1 {
		t.Errorf("a way that nobody takes keeps the factor %v", f)
	}
	batch("scan", 0)
	if f := c.now()("scan"); f < 0.9 || f > 1 {
		t.Errorf("a search that took no time makes the factor %v", f)
	}
}

// Of the lists of a text's n-grams the shortest are counted, as few as leave little to compare, and what leaves out nothing.
func TestCut(t *testing.T) {
	lists := func(lengths ...uint32) (all []gramList) {
		for _, n := range lengths {
			all = append(all, gramList{length: n})
		}
		return all
	}
	for _, x := range []struct {
		lists []gramList
		theta int
		take  int
		least uint16
	}{
		{lists(1, 2, 3), 4, 0, 0},                            // no object has four of three
		{lists(1, 1_000, 3_000), 3, 1, 1},                    // who has all three is in the shortest
		{lists(5, 5, 5, 2_000_000), 2, 3, 1},                 // at least one of any three
		{lists(1000, 1000, 1000, 1000, 1000, 1000), 4, 6, 4}, // of even lists all, since fewer are compared
	} {
		g := gramQuery{lists: x.lists}
		g.cut(x.theta)
		if g.take != x.take || g.take > 0 && (g.least != x.least || int(g.least) != x.theta-(len(g.lists)-g.take)) {
			t.Errorf("%v, theta %d: %d lists, of which an object has %d; want %d and %d", x.lists, x.theta, g.take, g.least, x.take, x.least)
		}
	}
}
