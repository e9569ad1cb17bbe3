package batcher

import "time"

type entry[T any] struct {
	item    T
	cost    int64
	arrival uint64
}

// due is the time at which an entry wants to be cut.
type due struct {
	at      time.Time
	arrival uint64
}

// lane is a first-in-first-out queue that knows how many of its first entries make the next batch.
type lane[T any] struct {
	entries []entry[T] // entries[first:] wait
	first   int

	fit     int   // the next batch is the first fit entries
	fitCost int64 // and costs this
	full    bool  // no entry can join them

	// dues[0] is the earliest due time of all entries: an entry that comes later and is due earlier or at the
	// same time displaces those before it, which leaves the times ascending.
	dues []due
}

func (l *lane[T]) len() int { return len(l.entries) - l.first }

// head is the oldest entry; the lane must not be empty.
func (l *lane[T]) head() *entry[T] { return &l.entries[l.first] }

func (l *lane[T]) push(e entry[T], at time.Time, maxItems int, maxCost int64) {
	l.entries = append(l.entries, e)
	if !at.IsZero() {
		n := len(l.dues)
		for n > 0 && !l.dues[n-1].at.Before(at) {
			n--
		}
		l.dues = append(l.dues[:n], due{at, e.arrival})
	}
	l.grow(maxItems, maxCost)
}

// pop removes the oldest entry. The caller refits the lane afterwards.
func (l *lane[T]) pop() entry[T] {
	e := l.entries[l.first]
	l.entries[l.first] = entry[T]{} // the item must not live on here
	l.first++
	if len(l.dues) > 0 && l.dues[0].arrival == e.arrival {
		l.dues = l.dues[1:]
	}
	return e
}

// refit computes the next batch anew after entries were removed, and gives their room back.
func (l *lane[T]) refit(maxItems int, maxCost int64) {
	if 2*l.first >= len(l.entries) { // each entry is moved at most once for each one removed
		n := copy(l.entries, l.entries[l.first:])
		clear(l.entries[n:])
		l.entries, l.first = l.entries[:n], 0
	}
	l.fit, l.fitCost, l.full = 0, 0, false
	l.grow(maxItems, maxCost)
}

// grow lets waiting entries join the next batch while it has room.
func (l *lane[T]) grow(maxItems int, maxCost int64) {
	for !l.full {
		if l.fit > 0 && (l.fit >= maxItems || l.fitCost >= maxCost) {
			l.full = true
			return
		}
		if l.fit == l.len() {
			return
		}
		cost := l.entries[l.first+l.fit].cost
		if l.fit > 0 && cost > maxCost-l.fitCost {
			l.full = true
			return
		}
		l.fit++
		l.fitCost += cost
	}
}
