package admission

import (
	"math"
	"sync"
	"time"
)

// Quota bounds each user. Zero values bound nothing.
type Quota struct {
	// Rate is how many queries a user may ask per second, in the long run.
	Rate float64
	// Burst is how many at once, after a pause. Default: those of a second.
	Burst float64
	// InFlight is how many queries of a user the worker has at a time.
	InFlight int
}

// Quotas keep account of users, over all indexes and classes of a worker. They are safe for concurrent use. The user "" has no bounds: he is everybody.
type Quotas struct {
	quota Quota

	mu    sync.Mutex
	users map[string]*account
	sweep int // how many there may be before those are forgotten that have nothing
}

type account struct {
	tokens float64
	at     time.Time
	out    int
}

// NewQuotas makes accounts of the same quota for all users.
func NewQuotas(q Quota) *Quotas {
	if q.Rate > 0 && q.Burst <= 0 {
		q.Burst = max(q.Rate, 1)
	}
	return &Quotas{quota: q, users: make(map[string]*account), sweep: 1024}
}

// Bounded says whether a user has any bounds.
func (q *Quotas) Bounded(user string) bool {
	return q != nil && user != "" && (q.quota.Rate > 0 || q.quota.InFlight > 0)
}

// Spend takes so many queries from a user's rate. When he has used it up, nothing is taken and wait says when to ask again. A message of
// more queries than a burst is let in when the burst is there, and then paid for.
func (q *Quotas) Spend(user string, queries int, now time.Time) (wait time.Duration) {
	if !q.Bounded(user) || q.quota.Rate <= 0 {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.account(user, now)
	if need := min(float64(queries), q.quota.Burst) - a.tokens; need > 1e-9 {
		return time.Duration(math.Ceil(need / q.quota.Rate * float64(time.Second)))
	}
	a.tokens -= float64(queries)
	return 0
}

// Left is how many queries a user's rate allows now, and after how long it allows one when that is none.
func (q *Quotas) Left(user string, now time.Time) (queries int, wait time.Duration) {
	if !q.Bounded(user) || q.quota.Rate <= 0 {
		return math.MaxInt, 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.account(user, now)
	if a.tokens >= 1-1e-9 {
		return int(a.tokens + 1e-9), 0
	}
	return 0, time.Duration(math.Ceil((1 - a.tokens) / q.quota.Rate * float64(time.Second)))
}

// Most is how many queries of a user may be with the worker at a time.
func (q *Quotas) Most(user string) int {
	if !q.Bounded(user) || q.quota.InFlight <= 0 {
		return math.MaxInt
	}
	return q.quota.InFlight
}

// Room is how many queries of a user may begin now.
func (q *Quotas) Room(user string) int {
	most := q.Most(user)
	if most == math.MaxInt {
		return most
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if a := q.users[user]; a != nil {
		return max(0, most-a.out)
	}
	return most
}

// Enter takes note that queries of a user have begun, and Leave that they are done. TryEnter enters them only if there is room for all.
func (q *Quotas) Enter(user string, queries int, now time.Time) {
	if !q.Bounded(user) || q.quota.InFlight <= 0 {
		return
	}
	q.mu.Lock()
	q.account(user, now).out += queries
	q.mu.Unlock()
}

func (q *Quotas) TryEnter(user string, queries int, now time.Time) bool {
	if !q.Bounded(user) || q.quota.InFlight <= 0 {
		return true
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.account(user, now)
	if a.out+queries > q.quota.InFlight {
		return false
	}
	a.out += queries
	return true
}

func (q *Quotas) Leave(user string, queries int) {
	if !q.Bounded(user) || q.quota.InFlight <= 0 {
		return
	}
	q.mu.Lock()
	if a := q.users[user]; a != nil {
		a.out = max(0, a.out-queries)
	}
	q.mu.Unlock()
}

// account is a user's, with the tokens of now. q.mu is held.
func (q *Quotas) account(user string, now time.Time) *account {
	a := q.users[user]
	if a == nil {
		if len(q.users) >= q.sweep {
			q.forget(now)
		}
		a = &account{tokens: q.quota.Burst, at: now}
		q.users[user] = a
	}
	q.fill(a, now)
	return a
}

func (q *Quotas) fill(a *account, now time.Time) {
	if passed := now.Sub(a.at); passed > 0 {
		a.tokens = min(q.quota.Burst, a.tokens+passed.Seconds()*q.quota.Rate)
		a.at = now
	}
}

// forget drops the accounts that are as a new one would be, so that names that anybody may choose do not add up.
func (q *Quotas) forget(now time.Time) {
	for name, a := range q.users {
		if q.fill(a, now); a.out == 0 && a.tokens >= q.quota.Burst {
			delete(q.users, name)
		}
	}
	q.sweep = max(1024, 2*len(q.users))
}
