package admission

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/wire"
)

func all(Flow) int { return math.MaxInt }

// names takes queries one by one and returns who had them.
func names(q *Queue[string], n int) string {
	var order []string
	for range n {
		value, _, _, _, ok := q.Take(1, all)
		if !ok {
			break
		}
		order = append(order, value)
	}
	return strings.Join(order, " ")
}

// A class with eight times the weight has eight times the queries, and who asks for little is next whatever waits for the others.
func TestSharesOfClasses(t *testing.T) {
	q := NewQueue[string](DefaultWeights(), 1000)
	bulk, own := Flow{Class: wire.ClassBulk}, Flow{Class: wire.ClassQuery}
	q.Push(bulk, "B", 10_000_000, 1)
	if got := names(q, 3); got != "B B B" {
		t.Errorf("bulk alone: %s", got)
	}
	q.Push(own, "q", 1, 1)
	if got := names(q, 2); got != "q B" { // at once, whatever bulk has had
		t.Errorf("one query beside bulk: %s", got)
	}
	for range 900 {
		q.Push(own, "q", 1, 1)
	}
	had := 0
	for i := range 100 {
		if had += strings.Count(names(q, 9), "B"); had < i || had > i+2 {
			t.Errorf("after %d queries bulk had %d", 9*(i+1), had)
		}
	}
}

// Users of a class take turns, whatever they have; and a query that is more work counts for more.
func TestSharesOfUsers(t *testing.T) {
	q := NewQueue[string](nil, 1000)
	flow := func(user string) Flow { return Flow{wire.ClassUsers, user} }
	for range 100 {
		q.Push(flow("bob"), "b", 1, 1)
	}
	names(q, 50)
	for range 3 {
		q.Push(flow("ann"), "a", 1, 1)
	}
	if got := names(q, 8); got != "a b a b a b b b" && got != "b a b a b a b b" {
		t.Errorf("the order is %s", got)
	}
	for range 4 {
		q.Push(flow("eve"), "e", 1, 9) // which compares texts
	}
	if got := names(q, 22); strings.Count(got, "e") > 3 {
		t.Errorf("heavy ones beside light ones: %s", got)
	}
	// Nobody gains by asking in small pieces, each when the one before it is gone.
	q = NewQueue[string](nil, 1000)
	q.Push(flow("bob"), "b", 1000, 1)
	count := map[string]int{}
	for range 100 {
		if !strings.Contains(fmt.Sprint(q.class(wire.ClassUsers).users), "eve") {
			q.Push(flow("eve"), "e", 1, 1)
		}
		count[names(q, 1)]++
	}
	if count["e"] > 52 || count["b"] > 52 {
		t.Errorf("shares %v", count)
	}
}

// Large items of one flow share it in turns, small ones go before them, and do not keep them waiting for ever.
func TestLargeItems(t *testing.T) {
	q := NewQueue[string](nil, 10)
	f := Flow{Class: wire.ClassQuery}
	q.Push(f, "X", 25, 1)
	q.Push(f, "Y", 25, 1)
	q.Push(f, "s", 3, 1)
	var order []string
	for {
		value, _, n, last, ok := q.Take(10, all)
		if !ok {
			break
		}
		order = append(order, fmt.Sprintf("%s%d%v", value, n, last))
	}
	if got := strings.Join(order, " "); got != "s3true X10false Y10false X10false Y10false X5true Y5true" {
		t.Errorf("order %s", got)
	}
	q.Push(f, "X", 25, 1)
	seen := 0
	for range 30 {
		q.Push(f, "s", 10, 1)
		value, _, _, last, _ := q.Take(10, all)
		if value == "X" {
			if seen++; !last && seen == 2 {
				q.Drop(f)
			}
		}
	}
	if seen != 2 {
		t.Errorf("the large item had %d turns among thirty small ones", seen)
	}
	for q.Len() > 0 {
		if value, _, _, _, ok := q.Take(10, all); !ok || value == "X" {
			t.Fatalf("%s is there, %v", value, ok)
		}
	}
}

// Whatever is pushed and taken: nothing is lost or repeated, small items of a flow stay in order, and over every stretch in which two flows have something waiting
// and may have it, they get shares by weight.
func TestQueueAgainstItsDefinition(t *testing.T) {
	rng := seeded.Rand(t)
	for range 40 {
		weights := Weights{}
		for _, class := range wire.Classes() {
			weights[class] = float64(1 + rng.IntN(8))
		}
		const grain = 50
		q := NewQueue[int](weights, grain)
		var flows []Flow
		for _, class := range wire.Classes() {
			for u := range 1 + rng.IntN(4) {
				flows = append(flows, Flow{class, fmt.Sprint("u", u)})
			}
		}
		left, of, pushed := make(map[int]int), make(map[int]Flow), 0
		waiting, lastOf := make(map[Flow]int), make(map[Flow]int)
		got := make(map[wire.Class]float64)
		barred := Flow{}
		most := 1 + rng.IntN(2*grain)
		for step := 0; step < 3000 || q.Len() > 0; step++ {
			if step < 3000 && rng.IntN(3) == 0 {
				f, n := flows[rng.IntN(len(flows))], 1+rng.IntN(grain)
				q.Push(f, pushed, n, 1)
				left[pushed], of[pushed] = n, f
				waiting[f] += n
				pushed++
				continue
			}
			if barred = (Flow{}); rng.IntN(4) == 0 {
				barred = flows[rng.IntN(len(flows))]
			}
			value, f, n, last, ok := q.Take(most, func(f Flow) int {
				if f == barred {
					return 0
				}
				return math.MaxInt
			})
			total := 0
			for flow, n := range waiting {
				if flow != barred {
					total += n
				}
			}
			if ok != (total > 0) {
				t.Fatalf("step %d: taken %v of %d that wait", step, ok, total)
			}
			if !ok {
				continue
			}
			if of[value] != f || f == barred || n < 1 || n > left[value] || last != (n == left[value]) || value < lastOf[f] {
				t.Fatalf("step %d: %d queries of item %d of %v, which has %d (last %v) after item %d", step, n, value, f, left[value], last, lastOf[f])
			}
			lastOf[f] = value
			left[value] -= n
			waiting[f] -= n
			got[f.Class] += float64(n)
		}
		for value, n := range left {
			if n != 0 {
				t.Fatalf("%d queries of item %d are left", n, value)
			}
		}
		// Now all want more than they get.
		got = make(map[wire.Class]float64)
		users := make(map[Flow]float64)
		for _, f := range flows {
			for range 400 {
				q.Push(f, 0, grain, 1)
			}
		}
		for range 600 {
			_, f, n, _, _ := q.Take(most, all)
			got[f.Class] += float64(n)
			users[f] += float64(n)
		}
		for _, a := range flows {
			for _, b := range flows {
				if d := got[a.Class]/weights[a.Class] - got[b.Class]/weights[b.Class]; math.Abs(d) > 2*grain {
					t.Errorf("classes %s and %s are %v apart", a.Class, b.Class, d)
				}
				if d := users[a] - users[b]; a.Class == b.Class && math.Abs(d) > 4*grain {
					t.Errorf("users %v and %v are %v apart", a, b, d)
				}
			}
		}
	}
}

// An interactive user beside a bulk user with ten million queries: counted in batches, an interactive query waits for one slice of bulk at most, where
// it would have waited for ten million queries in one stream.
func TestInteractiveBesideTenMillion(t *testing.T) {
	const batch, perQuery = 1024, 10 * time.Microsecond
	q := NewQueue[string](DefaultWeights(), batch)
	slices := NewSlices(2*time.Millisecond, batch)
	q.Push(Flow{Class: wire.ClassBulk, User: "carl"}, "bulk", 10_000_000, 1)
	now := time.Unix(1, 0) // of a clock of our own
	next := func() (who string, n int) {
		who, f, n, _, ok := q.Take(batch, func(f Flow) int {
			if f.Class == wire.ClassBulk {
				return slices.Room(now)
			}
			return batch
		})
		if ok && f.Class == wire.ClassBulk {
			slices.Begin()
			slices.End(n, time.Duration(n)*perQuery)
		}
		return who, n
	}
	for range 10 { // alone, bulk has whole batches
		if who, n := next(); who != "bulk" || n != batch {
			t.Fatalf("%s has a batch of %d", who, n)
		}
	}
	longest, bulk := 0, 0
	for i := range 10_000 {
		slices.Others(now)
		q.Push(Flow{Class: wire.ClassQuery}, "interactive", 1, 1)
		if who, _ := next(); who != "interactive" {
			t.Fatalf("query %d is behind %s", i, who)
		}
		who, n := next()
		if who != "bulk" {
			t.Fatalf("bulk stands still at query %d", i)
		}
		if i > 10 { // it has learned
			longest = max(longest, n)
		}
		bulk += n
		now = now.Add(time.Duration(n+1) * perQuery)
	}
	if took := time.Duration(longest) * perQuery; took > 2*time.Millisecond+perQuery {
		t.Errorf("an interactive query may wait for %d queries of bulk, which take %v", longest, took)
	}
	if bulk < 10_000*190 {
		t.Errorf("bulk had %d queries beside 10,000 others", bulk)
	}
}
