package tree

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// naive is the tree edit distance by its recursive definition over forests, remembered.
type naive map[[2]string]int

func (m naive) distance(f, g []*node) int {
	switch {
	case len(f) == 0 && len(g) == 0:
		return 0
	case len(f) == 0:
		return m.distance(nil, dropLast(g)) + 1
	case len(g) == 0:
		return m.distance(dropLast(f), nil) + 1
	}
	key := [2]string{forestText(f), forestText(g)}
	if d, ok := m[key]; ok {
		return d
	}
	v, w := f[len(f)-1], g[len(g)-1]
	change := 1
	if v.label == w.label {
		change = 0
	}
	d := min(m.distance(dropLast(f), g)+1, m.distance(f, dropLast(g))+1,
		m.distance(v.kids, w.kids)+m.distance(f[:len(f)-1], g[:len(g)-1])+change)
	m[key] = d
	return d
}

// dropLast is a forest without the root of its last tree.
func dropLast(f []*node) []*node {
	last := f[len(f)-1]
	return append(append([]*node(nil), f[:len(f)-1]...), last.kids...)
}

func forestText(f []*node) string {
	var b strings.Builder
	for _, n := range f {
		b.WriteString(n.text(nil))
	}
	return b.String()
}

// unbounded is the distance with a bound that no pair exceeds.
func unbounded(tb testing.TB, p *Pattern, stored string) int {
	tb.Helper()
	d, ok, err := p.Distance(stored, 2*MaxCompared, nil)
	if !ok || err != nil {
		tb.Fatalf("no distance without a bound: %v", err)
	}
	return d
}

func stored(tb testing.TB, n *node) string {
	tb.Helper()
	return string(mustParse(tb, n.text(nil)).Append(nil))
}

// TestKnown has the pair of Zhang and Shasha's paper, and roots that are deleted.
func TestKnown(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"{f{d{a}{c{b}}}{e}}", "{f{c{d{a}{b}}}{e}}", 2},
		{"{a}", "{a}", 0}, {"{a}", "{b}", 1}, {"{}", "{a}", 1}, {"{a{b}}", "{b}", 1}, {"{a{b}{c}}", "{a{c}{b}}", 2},
		{"{a{b{c{d}}}}", "{a{b}{c}{d}}", 4}, {"{x{a{b}{c}}}", "{a{b}{c}}", 1},
	} {
		var p Pattern
		p.Reset(mustParse(t, c.a))
		if d := unbounded(t, &p, string(mustParse(t, c.b).Append(nil))); d != c.want {
			t.Errorf("%s and %s: %d, want %d", c.a, c.b, d, c.want)
		}
	}
}

// TestDistance compares with the recursive definition, for every relation of the bound to the distance, on a Pattern that is used again and again.
func TestDistance(t *testing.T) {
	rng := seeded.Rand(t)
	var p Pattern
	for round := range 2500 {
		labels := [][]string{few, some, {"a"}, tricky}[rng.IntN(4)]
		a := random(rng, labels, 1+rng.IntN(11))
		b := random(rng, labels, 1+rng.IntN(11))
		if rng.IntN(2) == 0 {
			b = a.edited(rng, labels, rng.IntN(6))
		}
		want := naive{}.distance([]*node{a}, []*node{b})
		p.Reset(mustParse(t, a.text(nil)))
		code := stored(t, b)
		for _, bound := range []int{-1, 0, 1, want - 2, want - 1, want, want + 1, want + 2, want + 5, 40, 1 << 40} {
			d, ok, err := p.Distance(code, bound, nil)
			if err != nil || ok != (want <= bound) || ok && d != want {
				t.Fatalf("round %d, bound %d: %s and %s: %d %v %v, want %d", round, bound, a.text(nil), b.text(nil), d, ok, err, want)
			}
		}
	}
}

// TestDistanceLarge: there is no definition to compare with in time, but what bounds must not change, mirrors neither, and distances are
// a metric. A copy after e operations is at most e away.
func TestDistanceLarge(t *testing.T) {
	rng := seeded.Rand(t)
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	for round := range rounds {
		a := random(rng, some, 1+rng.IntN(200))
		e := rng.IntN(40)
		b := a.edited(rng, some, e)
		c := random(rng, some, 1+rng.IntN(200))
		var pa, pb, flipped Pattern
		pa.Reset(mustParse(t, a.text(nil)))
		pb.Reset(mustParse(t, b.text(nil)))
		ab, bc, ac := unbounded(t, &pa, stored(t, b)), unbounded(t, &pb, stored(t, c)), unbounded(t, &pa, stored(t, c))
		if ab > e || ac > ab+bc || bc > ab+ac || ab > ac+bc {
			t.Fatalf("round %d: %d after %d operations; %d %d %d is no triangle", round, ab, e, ab, bc, ac)
		}
		if back := unbounded(t, &pb, stored(t, a)); back != ab {
			t.Fatalf("round %d: %d one way, %d the other", round, ab, back)
		}
		flipped.Reset(mustParse(t, mirrored(a).text(nil)))
		if d := unbounded(t, &flipped, stored(t, mirrored(c))); d != ac {
			t.Fatalf("round %d: %d, mirrored %d", round, ac, d)
		}
		for _, pair := range []struct {
			code string
			want int
		}{{stored(t, b), ab}, {stored(t, c), ac}} {
			for _, bound := range []int{0, pair.want / 2, pair.want - 1, pair.want, pair.want + 1, 2*pair.want + 3} {
				d, ok, err := pa.Distance(pair.code, bound, nil)
				if err != nil || ok != (pair.want <= bound) || ok && d != pair.want {
					t.Fatalf("round %d, bound %d: %d %v %v, want %d", round, bound, d, ok, err, pair.want)
				}
			}
		}
	}
}

func mirrored(n *node) *node {
	c := &node{label: n.label}
	for i := len(n.kids) - 1; i >= 0; i-- {
		c.kids = append(c.kids, mirrored(n.kids[i]))
	}
	return c
}

// branches are the binary branches by the definition: first child and next sibling of each node.
func branches(n *node, next *node, into map[string]int) {
	name := func(n *node) string {
		if n == nil {
			return "-"
		}
		return fmt.Sprintf("%q", n.label)
	}
	var child *node
	for i, k := range n.kids {
		if i == 0 {
			child = k
		}
		var sibling *node
		if i+1 < len(n.kids) {
			sibling = n.kids[i+1]
		}
		branches(k, sibling, into)
	}
	into[name(n)+name(child)+name(next)]++
}

// keys are the keywords of a tree.
func keys(tb testing.TB, s *Scanner, t *Tree) map[string]bool {
	tb.Helper()
	m := map[string]bool{}
	for s.Reset(t); s.Next(); {
		m[string(s.Key())] = true
	}
	if len(m) != t.Len() {
		tb.Fatalf("%d keywords of %d nodes of %v", len(m), t.Len(), t)
	}
	return m
}

// TestBound: for tens of thousands of pairs keywords in common are the multiset intersection of branches by definition, and the bound
// holds. With distinct branches in place of (branch, occurrence) it does not, and it is met with equality.
func TestBound(t *testing.T) {
	rng := seeded.Rand(t)
	rounds := 30000
	if testing.Short() {
		rounds = 5000
	}
	var p Pattern
	var s Scanner
	plain, tight := 0, 0
	for round := range rounds {
		labels := [][]string{few, some, {"a"}, tricky}[rng.IntN(4)]
		a := random(rng, labels, 1+rng.IntN(12))
		b := random(rng, labels, 1+rng.IntN(12))
		if rng.IntN(4) > 0 {
			b = a.edited(rng, labels, rng.IntN(4))
		}
		ta, tb := mustParse(t, a.text(nil)), mustParse(t, b.text(nil))
		p.Reset(ta)
		code := string(tb.Append(nil))
		ba, bb := map[string]int{}, map[string]int{}
		branches(a, nil, ba)
		branches(b, nil, bb)
		want, distinct := 0, 0
		for branch, n := range ba {
			want += min(n, bb[branch])
			distinct += min(1, bb[branch])
		}
		got := 0
		kb := keys(t, &s, tb)
		for key := range keys(t, &s, ta) {
			if kb[key] {
				got++
			}
		}
		if got != want {
			t.Fatalf("round %d: %v and %v: %d keywords in common, want %d", round, ta, tb, got, want)
		}
		ted := unbounded(t, &p, code)
		most := max(ta.Len(), tb.Len())
		if most-want > Factor*ted || lowerBound(ta.Len(), tb.Len(), want) > ted {
			t.Fatalf("round %d: %v and %v: %d branches in common, and the distance is %d", round, ta, tb, want, ted)
		}
		if ted > 0 && most-want == Factor*ted {
			tight++
		}
		if most-distinct > Factor*ted {
			plain++
		}
		for tau := range 8 {
			if want < Threshold(ta.Len(), tau) && ted < tau {
				t.Fatalf("round %d: %v and %v: %d branches in common certify %d, and the distance is %d", round, ta, tb, want, tau, ted)
			}
		}
	}
	t.Logf("distinct branches break the bound for %d of %d pairs; it is met with equality by %d", plain, rounds, tight)
	if plain < rounds/20 || tight == 0 {
		t.Errorf("of %d pairs %d show that occurrences are needed, and %d that 3 is the least factor", rounds, plain, tight)
	}
}

// TestKeysAreInjective: labels that look like parts of other keys, and empty ones, are no other branch.
func TestKeysAreInjective(t *testing.T) {
	rng := seeded.Rand(t)
	labels := []string{"", "\x00", "\x01", "\x01\x00", "\x02a", "a", "a\x00", "\x00a", "aa", "\x01\x01"}
	seen := map[string]string{}
	var s Scanner
	for range 4000 {
		n := random(rng, labels, 1+rng.IntN(8))
		tree := mustParse(t, n.text(nil))
		definition := map[string]int{}
		for s.Reset(tree); s.Next(); {
			name := func(id uint32) string {
				if id == none {
					return "-"
				}
				return strings.ReplaceAll(fmt.Sprintf("%q", tree.labels.Names[id]), "-", "--")
			}
			branch := name(s.branch[0]) + name(s.branch[1]) + name(s.branch[2])
			full := fmt.Sprintf("%s %d", branch, definition[branch])
			definition[branch]++
			if other, ok := seen[string(s.Key())]; ok && other != full {
				t.Fatalf("the key %q is that of %s and %s", s.Key(), other, full)
			}
			seen[string(s.Key())] = full
		}
	}
	names := map[string]bool{}
	for _, full := range seen {
		names[full] = true
	}
	if len(names) != len(seen) {
		t.Errorf("%d keys for %d keywords", len(seen), len(names))
	}
}

func TestName(t *testing.T) {
	var s Scanner
	var got []string
	for s.Reset(mustParse(t, `{a{b}{b}{b{\{}{}}}`)); s.Next(); {
		got = append(got, Name(string(s.Key())))
	}
	want := `a(b)|b b|b b #2|b(\{)|\{ |`
	if text := strings.Join(got, "|"); text != want {
		t.Errorf("%q, want %q", text, want)
	}
	for _, key := range []string{"", "x", "\x05a", "\x02a\x00", "\x02a\x00\x00\x00", "\x02a\x00\x00\x01\x01", "\x80\x80"} {
		if name := Name(key); name != key {
			t.Errorf("%q, which is no key, is named %q", key, name)
		}
	}
}

// zigzag is a comb whose teeth lie on both sides: neither it nor its mirror image is cheap.
func zigzag(n int) *node {
	root := &node{label: "a"}
	at := root
	for i := 1; i+1 < n; i += 2 {
		spine, tooth := &node{label: string(rune('a' + i%3))}, &node{label: "t"}
		at.kids = []*node{spine, tooth}
		if i%4 == 1 {
			at.kids = []*node{tooth, spine}
		}
		at = spine
	}
	return root
}

// TestPace: a comparison that is stopped at every question goes on to the same result, and is asked often enough.
func TestPace(t *testing.T) {
	a, b := zigzag(160), zigzag(150)
	var p Pattern
	p.Reset(mustParse(t, a.text(nil)))
	code := stored(t, b)
	var other Pattern // so that p remembers nothing
	other.Reset(mustParse(t, a.text(nil)))
	want := unbounded(t, &other, code)
	stop := errors.New("stop")
	asked := 0
	d, ok, err := p.Distance(code, 400, func() error { asked++; return stop })
	stops := 0
	for ; err != nil; stops++ {
		if !errors.Is(err, stop) {
			t.Fatal(err)
		}
		if stops%2 == 0 {
			d, ok, err = p.Resume(func() error { return stop }) // at once
			continue
		}
		first := true
		d, ok, err = p.Resume(func() error {
			if asked++; first {
				first = false
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
	p.Distance(code, 400, func() error { return stop })
	if d := unbounded(t, &p, code); d != want {
		t.Errorf("%d after one that was given up, want %d", d, want)
	}
	p.Distance(code, 400, func() error { return stop })
	p.Reset(mustParse(t, "{a}"))
	if _, _, err := p.Resume(nil); err == nil {
		t.Error("a comparison with another pattern goes on")
	}
}

func TestTooLarge(t *testing.T) {
	path := func(n int) string { return strings.Repeat("{", n) + strings.Repeat("}", n) }
	most, more := mustParse(t, path(MaxCompared)), mustParse(t, path(MaxCompared+1))
	var p Pattern
	p.Reset(most)
	if _, _, err := p.Distance(string(more.Append(nil)), 9, nil); !errors.Is(err, ErrTooLarge) {
		t.Errorf("513 stored nodes: %v", err)
	}
	if d := unbounded(t, &p, string(most.Append(nil))); d != 0 {
		t.Errorf("a path is %d from itself", d)
	}
	p.Reset(more)
	if _, _, err := p.Distance(string(most.Append(nil)), 9, nil); !errors.Is(err, ErrTooLarge) {
		t.Errorf("513 nodes of a query: %v", err)
	}
	if _, _, err := p.Distance("", 9, nil); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%v", err)
	}
	p.Reset(most)
	if _, _, err := p.Distance("", 9, nil); !errors.Is(err, ErrDamaged) {
		t.Errorf("no bytes: %v", err)
	}
	// The largest distance there is does not overflow.
	star := mustParse(t, "{x"+strings.Repeat("{y}", MaxCompared-1)+"}")
	if d := unbounded(t, &p, string(star.Append(nil))); d < MaxCompared {
		t.Errorf("a path and a star of other labels: %d", d)
	}
}

func TestDoesNotAllocate(t *testing.T) {
	rng := seeded.Rand(t)
	var p Pattern
	p.Reset(mustParse(t, random(rng, some, 60).text(nil)))
	codes := []string{stored(t, random(rng, tricky, 80)), stored(t, random(rng, some, 50)), stored(t, zigzag(61))}
	pace := func() error { return nil }
	if n := testing.AllocsPerRun(20, func() {
		for _, code := range codes {
			if _, _, err := p.Distance(code, 1000, pace); err != nil {
				t.Error(err)
			}
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
	tree := mustParse(t, random(rng, some, 60).text(nil))
	var s Scanner
	var code []byte
	if n := testing.AllocsPerRun(20, func() {
		for s.Reset(tree); s.Next(); {
			s.Key()
		}
		code = tree.Append(code[:0])
	}); n != 0 {
		t.Errorf("%v allocations for keywords and encoding, want none", n)
	}
}

func BenchmarkDistance(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct {
		name  string
		a, b  *node
		bound int
	}{
		{name: "20", a: random(rng, some, 20), b: random(rng, some, 20), bound: 100},
		{name: "100", a: random(rng, some, 100), b: random(rng, some, 100), bound: 1000},
		{name: "100-bound-10", a: random(rng, few, 100), b: random(rng, few, 100), bound: 60},
		{name: "512", a: random(rng, some, 512), b: random(rng, some, 512), bound: 2000},
		{name: "512-zigzag", a: zigzag(512), b: zigzag(512), bound: 2000},
	} {
		b.Run(c.name, func(b *testing.B) {
			var p Pattern
			p.Reset(mustParse(b, c.a.text(nil)))
			code := stored(b, c.b)
			b.ReportAllocs()
			for b.Loop() {
				p.Distance(code, c.bound, nil)
			}
		})
	}
}
