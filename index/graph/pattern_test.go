package graph

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// enumerated is the edit distance by its definition: the least of all mappings, each vertex of a to one of b or to none.
func enumerated(a, b *plain) int {
	n, m := len(a.labels), len(b.labels)
	image, used := make([]int, n), make([]bool, m)
	best := 1 << 30
	var visit func(v int)
	visit = func(v int) {
		if v < n {
			image[v] = -1
			visit(v + 1)
			for u := range m {
				if !used[u] {
					used[u], image[v] = true, u
					visit(v + 1)
					used[u] = false
				}
			}
			return
		}
		cost, kept := 0, 0
		for v := range n {
			if image[v] < 0 {
				cost++
				continue
			}
			if a.labels[v] != b.labels[image[v]] {
				cost++
			}
		}
		for u := range m {
			if !used[u] {
				cost++
			}
		}
		for v := range n {
			for w := range v {
				if !a.joined[v][w] {
					continue
				}
				if image[v] >= 0 && image[w] >= 0 && b.joined[image[v]][image[w]] {
					kept++
				} else {
					cost++
				}
			}
		}
		for u := range m {
			for w := range u {
				if b.joined[u][w] {
					cost++
				}
			}
		}
		best = min(best, cost-kept)
	}
	visit(0)
	return best
}

func unbounded(tb testing.TB, p *Pattern, code string) int {
	tb.Helper()
	d, ok, err := p.Distance(code, 1000, nil)
	if !ok || err != nil {
		tb.Fatalf("no distance without a bound: %v", err)
	}
	return d
}

// TestDistance compares with all mappings, for every relation of the bound to the distance, on a Pattern that is used again and again.
func TestDistance(t *testing.T) {
	rng := seeded.Rand(t)
	var p Pattern
	rounds := 3000
	if testing.Short() {
		rounds = 500
	}
	for round := range rounds {
		labels := [][]string{few, some, {"C"}, tricky}[rng.IntN(4)]
		a, b := random(rng, labels, 1+rng.IntN(6)), random(rng, labels, 1+rng.IntN(6))
		switch rng.IntN(4) {
		case 0:
			b = a.edited(rng, labels, rng.IntN(5), 6)
		case 1:
			b = random(rng, some, 1+rng.IntN(6)) // labels of which the other has none
		}
		want := enumerated(a, b)
		p.Reset(built(t, a))
		code := stored(t, b)
		for _, bound := range []int{-1, 0, 1, want - 2, want - 1, want, want + 1, want + 2, 100, 1 << 40} {
			d, ok, err := p.Distance(code, bound, nil)
			if err != nil || ok != (want <= bound) || ok && d != want {
				t.Fatalf("round %d, bound %d: %+v and %+v: %d %v %v, want %d", round, bound, a, b, d, ok, err, want)
			}
		}
	}
}

// TestDistanceLarge: up to 10 vertices there are too many mappings to enumerate, but distances are a metric that numbering does not change,
// a copy after e operations is at most e away, and no bound changes them.
func TestDistanceLarge(t *testing.T) {
	rng := seeded.Rand(t)
	rounds := 100
	if testing.Short() {
		rounds = 10
	}
	for round := range rounds {
		labels := [][]string{few, some}[rng.IntN(2)]
		e := rng.IntN(6)
		a := random(rng, labels, 6+rng.IntN(5))
		b := a.edited(rng, labels, e, MaxCompared)
		c := random(rng, labels, 6+rng.IntN(5))
		var pa, pb, renumbered Pattern
		pa.Reset(built(t, a))
		pb.Reset(built(t, b))
		renumbered.Reset(built(t, a.renumbered(rng)))
		ab, bc, ac := unbounded(t, &pa, stored(t, b)), unbounded(t, &pb, stored(t, c)), unbounded(t, &pa, stored(t, c))
		if ab > e || ac > ab+bc || bc > ab+ac {
			t.Fatalf("round %d: %d after %d operations; %d %d %d is no triangle", round, ab, e, ab, bc, ac)
		}
		if d, f := unbounded(t, &pb, stored(t, a)), unbounded(t, &renumbered, stored(t, c)); d != ab || f != ac {
			t.Fatalf("round %d: %d one way, %d the other; %d, numbered anew %d", round, ab, d, ac, f)
		}
		for _, bound := range []int{0, ac / 2, ac - 1, ac, ac + 1} {
			if d, ok, err := pa.Distance(stored(t, c), bound, nil); err != nil || ok != (ac <= bound) || ok && d != ac {
				t.Fatalf("round %d, bound %d: %d %v %v, want %d", round, bound, d, ok, err, ac)
			}
		}
	}
}

// starsOf are the stars by their definition.
func starsOf(p *plain) map[string]int {
	m := map[string]int{}
	for v, label := range p.labels {
		var near []string
		for u := range p.labels {
			if p.joined[v][u] {
				near = append(near, fmt.Sprintf("%q", p.labels[u]))
			}
		}
		slices.Sort(near)
		m[fmt.Sprintf("%q %s", label, near)]++
	}
	return m
}

// TestBound: keywords in common are the multiset intersection of stars by definition, and the bound holds with the
// smaller of both degrees and with the query's. With distinct stars, or with the factor 2 alone, it does not.
func TestBound(t *testing.T) {
	rng := seeded.Rand(t)
	rounds := 20000
	if testing.Short() {
		rounds = 4000
	}
	var p Pattern
	var s Scanner
	keys := func(g *Graph) map[string]bool {
		m := map[string]bool{}
		for s.Reset(g); s.Next(); {
			m[string(s.Key())] = true
		}
		if len(m) != g.Len() {
			t.Fatalf("%d keywords of %d vertices", len(m), g.Len())
		}
		return m
	}
	distinctWrong, twoWrong, tight := 0, 0, 0
	for round := range rounds {
		labels := [][]string{few, some, {"C"}, tricky}[rng.IntN(4)]
		a, b := random(rng, labels, 1+rng.IntN(7)), random(rng, labels, 1+rng.IntN(7))
		if rng.IntN(4) > 0 {
			b = a.edited(rng, labels, rng.IntN(4), 8)
		}
		ga, gb := built(t, a), built(t, b)
		p.Reset(ga)
		code := string(gb.Append(nil))
		want, distinct, got := 0, 0, 0
		of := starsOf(b)
		for star, n := range starsOf(a) {
			want += min(n, of[star])
			distinct += min(1, of[star])
		}
		kb := keys(gb)
		for key := range keys(ga) {
			if kb[key] {
				got++
			}
		}
		if got != want {
			t.Fatalf("round %d: %+v and %+v: %d keywords in common, want %d", round, a, b, got, want)
		}
		ged := unbounded(t, &p, code)
		most, degree := max(ga.Len(), gb.Len()), min(ga.Degree(), gb.Degree())
		if most-want > max(2, 1+degree)*ged || lowerBound(ga.Len(), gb.Len(), want, degree) > ged || lowerBound(ga.Len(), gb.Len(), want, ga.Degree()) > ged {
			t.Fatalf("round %d: %+v and %+v: %d stars in common, and the distance is %d", round, a, b, want, ged)
		}
		for tau := range 8 {
			if want < Threshold(ga.Len(), ga.Degree(), tau) && ged < tau {
				t.Fatalf("round %d: %+v and %+v: %d stars in common certify %d, and the distance is %d", round, a, b, want, tau, ged)
			}
		}
		if ged > 0 && most-want == max(2, 1+degree)*ged {
			tight++
		}
		if most-want > 2*ged {
			twoWrong++
		}
		if most-distinct > max(2, 1+degree)*ged {
			distinctWrong++
		}
	}
	t.Logf("of %d pairs distinct stars break the bound for %d, the factor 2 for %d; it is met with equality by %d", rounds, distinctWrong, twoWrong, tight)
	if distinctWrong < rounds/50 || twoWrong == 0 || tight == 0 {
		t.Error("the test shows too little")
	}
}

// TestKeysAreInjective: labels that look like parts of other keys, and empty ones, are no other star.
func TestKeysAreInjective(t *testing.T) {
	rng := seeded.Rand(t)
	seen, back := map[string]string{}, map[string]string{}
	var s Scanner
	for range 4000 {
		p := random(rng, tricky, 1+rng.IntN(6))
		count := map[string]int{}
		for s.Reset(built(t, p)); s.Next(); {
			v := s.stars.order[s.next-1]
			var near []string
			for u := range p.labels {
				if p.joined[v][u] {
					near = append(near, fmt.Sprintf("%q", p.labels[u]))
				}
			}
			slices.Sort(near)
			star := fmt.Sprintf("%q %s", p.labels[v], near)
			full := fmt.Sprintf("%s %d", star, count[star])
			count[star]++
			key := string(s.Key())
			if other, ok := seen[key]; ok && other != full {
				t.Fatalf("the key %q is that of %s and %s", key, other, full)
			}
			if other, ok := back[full]; ok && other != key {
				t.Fatalf("%s has the keys %q and %q", full, key, other)
			}
			seen[key], back[full] = full, key
		}
	}
}

func TestName(t *testing.T) {
	p := newPlain(5)
	copy(p.labels, []string{"H", "C", "H", "O", ""})
	p.join(1, 0, true)
	p.join(1, 2, true)
	p.join(1, 3, true)
	var s Scanner
	var got []string
	for s.Reset(built(t, p)); s.Next(); {
		got = append(got, Name(string(s.Key())))
	}
	if text := strings.Join(got, "|"); text != "()|C(H H O)|H(C)|H(C) #2|O(C)" {
		t.Errorf("%q", text)
	}
	for _, key := range []string{"", "x", "\x05a", "\x00", "\x02a", "\x02a\x00\x00", "\x02a\x00\x01\x01", "\x80\x80"} {
		if name := Name(key); name != key {
			t.Errorf("%q, which is no key, is named %q", key, name)
		}
	}
}

// hard are two graphs that look the same to all bounds: the Petersen graph, and another of ten vertices with three neighbours each.
func hard() (a, b *plain) {
	a, b = newPlain(10), newPlain(10)
	for v := range 5 {
		a.join(v, (v+1)%5, true)
		a.join(v, v+5, true)
		a.join(v+5, (v+2)%5+5, true)
	}
	for v := range 10 {
		b.join(v, (v+1)%10, true)
		b.join(v, (v+5)%10, true)
	}
	return a, b
}

// TestPace: a comparison that is stopped at every question goes on to the same result.
func TestPace(t *testing.T) {
	a, b := hard()
	var p, other Pattern
	p.Reset(built(t, a))
	other.Reset(built(t, a))
	code := stored(t, b)
	want := unbounded(t, &other, code)
	stop := errors.New("stop")
	d, ok, err := p.Distance(code, 100, func() error { return stop })
	stops := 0
	for ; err != nil; stops++ {
		if !errors.Is(err, stop) {
			t.Fatal(err)
		}
		if stops%2 == 0 {
			d, ok, err = p.Resume(func() error { return stop }) // at once
			continue
		}
		asked := false
		d, ok, err = p.Resume(func() error {
			if !asked {
				asked = true
				return nil
			}
			return stop
		})
	}
	if d != want || !ok || stops < 10 {
		t.Errorf("%d %v after %d stops, want %d", d, ok, stops, want)
	}
	if _, _, err := p.Resume(nil); err == nil {
		t.Error("a comparison that is done goes on")
	}
	p.Distance(code, 100, func() error { return stop })
	p.Reset(built(t, b))
	if _, _, err := p.Resume(nil); err == nil {
		t.Error("a comparison with another pattern goes on")
	}
	if d := unbounded(t, &p, code); d != 0 {
		t.Errorf("a graph is %d from itself", d)
	}
	if _, _, err := p.Distance("", 9, nil); !errors.Is(err, ErrDamaged) {
		t.Errorf("no bytes: %v", err)
	}
	if _, _, err := p.Distance(stored(t, newPlain(11)), 9, nil); !errors.Is(err, ErrTooLarge) {
		t.Errorf("11 vertices: %v", err)
	}
}

func TestDoesNotAllocate(t *testing.T) {
	rng := seeded.Rand(t)
	var p Pattern
	g := built(t, random(rng, some, 8))
	p.Reset(g)
	codes := []string{stored(t, random(rng, tricky, 9)), stored(t, random(rng, some, 7))}
	pace := func() error { return nil }
	var s Scanner
	var code []byte
	if n := testing.AllocsPerRun(20, func() {
		for _, code := range codes {
			if _, _, err := p.Distance(code, 8, pace); err != nil {
				t.Error(err)
			}
		}
		for s.Reset(g); s.Next(); {
			s.Key()
		}
		code = g.Append(code[:0])
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func BenchmarkDistance(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	petersen, ladder := hard()
	one := []string{"C"}
	for _, c := range []struct {
		name  string
		a, b  *plain
		bound int
	}{
		{"10-some", random(rng, some, 10), random(rng, some, 10), 100},
		{"10-few", random(rng, few, 10), random(rng, few, 10), 100},
		{"10-one", random(rng, one, 10), random(rng, one, 10), 100},
		{"10-regular", petersen, ladder, 100},
		{"10-some-bound", random(rng, some, 10), random(rng, some, 10), 6},
	} {
		b.Run(c.name, func(b *testing.B) {
			var p Pattern
			p.Reset(built(b, c.a))
			code := stored(b, c.b)
			b.ReportAllocs()
			for b.Loop() {
				p.Distance(code, c.bound, nil)
			}
		})
	}
}
