package batcher

import "time"

type entry[T any] struct {
	item T
	cost int64
	due  time.Time // the time at which it has lingered long enough
}

// queue is a first-in-first-out queue that knows how many of its first entries make the next batch.
type queue[T any] struct {
	entries []entry[T] // entries[first:] wait
	first   int

	fit     int   // the next batch is the first fit entries
	fitCost int64 // and costs this
	full    bool  // no entry can join them
}

func (q *queue[T]) len() int { return len(q.entries) - q.first }

// head is the oldest entry; the queue must not be empty.
func (q *queue[T]) head() *entry[T] { return &q.entries[q.first] }

func (q *queue[T]) push(e entry[T], maxItems int, maxCost int64) {
	q.entries = append(q.entries, e)
	q.grow(maxItems, maxCost)
}

// pop removes the oldest entry. The caller refits the queue afterwards.
func (q *queue[T]) pop() entry[T] {
	e := q.entries[q.first]
	q.entries[q.first] = entry[T]{} // the item must not live on here
	q.first++
	return e
}

// refit computes the next batch anew after entries were removed, and gives their room back.
func (q *queue[T]) refit(maxItems int, maxCost int64) {
	if 2*q.first >= len(q.entries) { // each entry is moved at most once for each one removed
		n := copy(q.entries, q.entries[q.first:])
		clear(q.entries[n:])
		q.entries, q.first = q.entries[:n], 0
	}
	q.fit, q.fitCost, q.full = 0, 0, false
	q.grow(maxItems, maxCost)
}

// grow lets waiting entries join the next batch while it has room.
func (q *queue[T]) grow(maxItems int, maxCost int64) {
	for !q.full {
		if q.fit > 0 && (q.fit >= maxItems || q.fitCost >= maxCost) {
			q.full = true
			return
		}
		if q.fit == q.len() {
			return
		}
		cost := q.entries[q.first+q.fit].cost
		if q.fit > 0 && cost > maxCost-q.fitCost {
			q.full = true
			return
		}
		q.fit++
		q.fitCost += cost
	}
}
