// Package admission decides whose queries are next, and how many somebody may have: by class, by user, by weight.
package admission

import (
	"container/heap"

	"github.com/geniemq/geniemq/wire"
)

// Flow is who asks: a class and, where that is known, a user of it.
type Flow struct {
	Class wire.Class
	User  string
}

// Weights are the shares of classes where there is more work than time. Classes that are not named have weight 1.
type Weights map[wire.Class]float64

// DefaultWeights are those of a worker that was told none: who waits for an answer goes before bulk, and bulk never stands still.
func DefaultWeights() Weights {
	return Weights{wire.ClassDirect: 8, wire.ClassQuery: 8, wire.ClassUsers: 8, wire.ClassBulk: 1}
}

// Queue holds what waits, each item with some queries, and says which are next. It is pure: no clock, no lock, no goroutine; the same calls give the
// same order.
//
// # The order
//
// Fair queueing in two levels, by virtual time. Each class has a time that advances by what was taken of it, divided by its weight; the class that is
// least far is next. Within a class the same holds for its users, all of the same weight. Who begins to ask after a pause begins at the present of the
// others: a pause earns no credit, and whoever asks for little is nearly always next. Items of one user leave in the order in which they came.
//
// So over any stretch in which classes have something waiting they get shares by weight, to within one Take; and no user of a class gets more than another
// who wants more. Ties go to the class that is named first and to the user who came first.
//
// # Large items
//
// An item need not leave at once. Items of one flow that are no larger than a grain leave in the order of their arrival, whole before the next is begun. Larger
// ones give up to a grain each in turn, behind the small ones, which they would keep waiting; but after some grains of small ones they have a turn.
type Queue[T any] struct {
	weights Weights
	grain   int
	classes []*class[T] // in the order of wire.Classes
	now     float64     // the virtual time of the class that was chosen last
	items   int
	arrived uint64
}

type class[T any] struct {
	name  wire.Class
	at    float64 // virtual time
	now   float64 // that of the user who was chosen last
	users map[string]*user[T]
	order byTime[T] // users that have something waiting
	rest  map[string]float64
}

type user[T any] struct {
	name   string
	at     float64
	since  uint64 // breaks ties
	small  line[T]
	large  line[T]
	passed int // queries of small items since a large one had its turn
	place  int // in order
}

// patience is how many grains of small items a large one of the same flow lets pass.
const patience = 8

// front is the line whose first item is next.
func (u *user[T]) front(grain int) *line[T] {
	if u.large.len() > 0 && (u.small.len() == 0 || u.passed >= patience*grain) {
		return &u.large
	}
	return &u.small
}

func (u *user[T]) empty() bool { return u.small.len()+u.large.len() == 0 }

// line is a queue of items.
type line[T any] struct {
	items []item[T]
	first int
}

func (l *line[T]) len() int         { return len(l.items) - l.first }
func (l *line[T]) push(own item[T]) { l.items = append(l.items, own) }
func (l *line[T]) pop() (own item[T]) {
	own = l.items[l.first]
	l.items[l.first] = item[T]{}
	if l.first++; 2*l.first >= len(l.items) { // each is moved at most once for each that left
		n := copy(l.items, l.items[l.first:])
		clear(l.items[n:])
		l.items, l.first = l.items[:n], 0
	}
	return own
}

type item[T any] struct {
	value   T
	queries int
	cost    float64 // of each
}

// NewQueue makes an empty queue. Items of more queries than a grain are large.
func NewQueue[T any](weights Weights, grain int) *Queue[T] {
	if weights == nil {
		weights = DefaultWeights()
	}
	q := &Queue[T]{weights: weights, grain: grain}
	for _, name := range wire.Classes() {
		q.classes = append(q.classes, &class[T]{name: name, users: make(map[string]*user[T]), rest: make(map[string]float64)})
	}
	return q
}

// Len is the number of items.
func (q *Queue[T]) Len() int { return q.items }

// Push adds an item of so many queries, at least one, of an estimated cost each. A query that counts matches costs 1.
func (q *Queue[T]) Push(f Flow, value T, queries int, cost float64) {
	c := q.class(f.Class)
	if len(c.order) == 0 {
		c.at = max(c.at, q.now)
	}
	u := c.users[f.User]
	if u == nil {
		q.arrived++
		u = &user[T]{name: f.User, at: max(c.rest[f.User], c.now), since: q.arrived}
		delete(c.rest, f.User)
		c.users[f.User] = u
		heap.Push(&c.order, u)
	}
	own := item[T]{value, max(queries, 1), cost}
	if own.queries > q.grain {
		u.large.push(own)
	} else {
		u.small.push(own)
	}
	q.items++
}

// Take takes up to most queries of the item that is next. allow says how many queries of a flow may leave now; with 0 the next
// flow is looked at. last says that none is left of the item.
func (q *Queue[T]) Take(most int, allow func(Flow) int) (value T, f Flow, n int, last, ok bool) {
	var passed []*class[T]
	for {
		c := q.next(passed)
		if c == nil {
			return value, f, 0, false, false
		}
		u, room := c.next(allow)
		if u == nil {
			passed = append(passed, c)
			continue
		}
		line := u.front(q.grain)
		front := &line.items[line.first]
		value, f, n = front.value, Flow{c.name, u.name}, min(most, room, front.queries, q.grain)
		front.queries -= n
		last = front.queries == 0
		q.charge(c, u, float64(n)*front.cost)
		switch {
		case line == &u.small:
			u.passed += n
		case !last:
			line.push(line.pop())
			u.passed = 0
		default:
			u.passed = 0
		}
		if last {
			q.items--
			line.pop()
			c.settle(u)
		}
		return value, f, n, last, true
	}
}

// Drop removes an item of which Take has just left a rest.
func (q *Queue[T]) Drop(f Flow) {
	c := q.class(f.Class)
	u := c.users[f.User]
	if u.passed > 0 {
		u.small.pop()
	} else { // a large one, which went behind the others
		last := len(u.large.items) - 1
		u.large.items[last] = item[T]{}
		u.large.items = u.large.items[:last]
	}
	q.items--
	c.settle(u)
}

// next is the class that is least far and has something waiting, but for those that were passed over.
func (q *Queue[T]) next(passed []*class[T]) (first *class[T]) {
next:
	for _, c := range q.classes {
		if len(c.order) == 0 || first != nil && c.at >= first.at {
			continue
		}
		for _, p := range passed {
			if p == c {
				continue next
			}
		}
		first = c
	}
	return first
}

// next is the user of a class who is least far among those who may have something.
func (c *class[T]) next(allow func(Flow) int) (found *user[T], room int) {
	var barred []*user[T]
	for len(c.order) > 0 {
		u := c.order[0]
		if room = allow(Flow{c.name, u.name}); room > 0 {
			found = u
			break
		}
		barred = append(barred, heap.Pop(&c.order).(*user[T]))
	}
	for _, u := range barred {
		heap.Push(&c.order, u)
	}
	return found, room
}

// charge moves class and user on by what was taken.
func (q *Queue[T]) charge(c *class[T], u *user[T], cost float64) {
	weight := q.weights[c.name]
	if weight <= 0 {
		weight = 1
	}
	q.now, c.now = max(q.now, c.at), max(c.now, u.at)
	c.at += cost / weight
	u.at += cost
	heap.Fix(&c.order, u.place)
}

// settle forgets a user of whom nothing waits, but for how far he is ahead of the others: else who asks in small pieces would never be charged.
func (c *class[T]) settle(u *user[T]) {
	if !u.empty() {
		return
	}
	heap.Remove(&c.order, u.place)
	delete(c.users, u.name)
	if u.at > c.now {
		c.rest[u.name] = u.at
	}
	if len(c.rest) > 2*len(c.users)+64 {
		for name, at := range c.rest {
			if at <= c.now {
				delete(c.rest, name)
			}
		}
	}
}

func (q *Queue[T]) class(name wire.Class) *class[T] {
	for _, c := range q.classes {
		if c.name == name {
			return c
		}
	}
	return q.classes[len(q.classes)-1]
}

// byTime is a heap of users.
type byTime[T any] []*user[T]

func (h byTime[T]) Len() int { return len(h) }
func (h byTime[T]) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].since < h[j].since
}
func (h byTime[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}
func (h *byTime[T]) Push(x any) {
	u := x.(*user[T])
	u.place = len(*h)
	*h = append(*h, u)
}
func (h *byTime[T]) Pop() any {
	old := *h
	u := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return u
}
