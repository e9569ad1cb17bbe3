package history

import (
	"fmt"
	"strconv"
	"time"
)

// What happens to a server.
const (
	Started  = "started"
	ClockSet = "clock set"
)

// Turn is a moment from which on a server's clock is so much ahead of the true time.
type Turn struct {
	At           time.Time
	Server, What string
	Ahead        time.Duration
}

// Line is how it is written.
func (t Turn) Line() string {
	return fmt.Sprintf("%d\t%s\t%s\t%d\n", t.At.UnixNano(), t.Server, t.What, t.Ahead)
}

// Timetable is what the clock of each server showed, as the conductor has set it.
type Timetable map[string]Turns

// Turns are those of one server, in order.
type Turns []Turn

// ReadTimetable reads the history of a run's servers.
func ReadTimetable(dir string) (Timetable, error) {
	all := make(Timetable)
	return all, Read(dir, ServersLog, func(f []string) error {
		if len(f) != 4 {
			return fmt.Errorf("%q is no line of %s", f, ServersLog)
		}
		at, err := Moment(f[0])
		if err != nil {
			return err
		}
		ahead, err := strconv.ParseInt(f[3], 10, 64)
		all[f[1]] = append(all[f[1]], Turn{at, f[1], f[2], time.Duration(ahead)})
		return err
	})
}

// blur is how far from the moment that is written down a step may have had its effect, on a machine that is busy.
const blur = time.Second

// Shown is between which times a server's clock was, from one true moment to another.
func (own Turns) Shown(from, to time.Time) (earliest, latest time.Time) {
	known := false
	if len(own) == 0 || own[0].At.Add(-blur).After(from) { // before the first turn it was right
		earliest, latest, known = from, to, true
	}
	for i, t := range own {
		begin, end := t.At.Add(-blur), to
		if i+1 < len(own) {
			end = own[i+1].At.Add(blur)
		}
		if begin.After(to) || end.Before(from) {
			continue
		}
		if begin.Before(from) {
			begin = from
		}
		if end.After(to) {
			end = to
		}
		if begin, end = begin.Add(t.Ahead), end.Add(t.Ahead); !known {
			earliest, latest, known = begin, end, true
		}
		earliest, latest = first(earliest, begin), last(latest, end)
	}
	return earliest, latest
}

// Shown is between which times the clocks of all servers were.
func (all Timetable) Shown(from, to time.Time) (earliest, latest time.Time) {
	earliest, latest = from, to
	for _, own := range all {
		e, l := own.Shown(from, to)
		earliest, latest = first(earliest, e), last(latest, l)
	}
	return earliest, latest
}

// Forgets says whether some server can have stored an answer though the same query's answer before it was in its stream, and stored there less than a window before by
// a clock that is right. Whoever stores it must lead the stream, so its time is that server's; and that server must have forgotten the id, for which there are two ways:
//
//   - Its clock once showed the end of the window. Then it dropped the id.
//   - It was started between the two, and looked for the begin of the window as if the times of messages ascended. It passes over the answer before only by way of a
//     message between the two that is stamped before that begin. lowest is the earliest stamp there, of the answer before too.
//
// asked is when the query was begun to be published, read when the second answer was read: both answers were stored between the two.
func (all Timetable) Forgets(asked time.Time, before, again Answered, lowest time.Time, window time.Duration) bool {
	for _, own := range all {
		if e, l := own.Shown(asked, again.Read); again.Stored.Before(e.Add(-blur)) || again.Stored.After(l.Add(blur)) {
			continue // it has not stored it
		} else if l.Sub(before.Stored) >= window {
			return true
		}
		for i, start := range own {
			if start.What != Started || start.At.Add(blur).Before(asked) || start.At.Add(-blur).After(again.Read) {
				continue
			}
			until := again.Read
			for _, next := range own[i+1:] {
				if next.What == Started {
					until = next.At
					break
				}
			}
			if _, shows := own.Shown(start.At, until); lowest.Before(shows.Add(-window)) {
				return true
			}
		}
	}
	return false
}

func first(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func last(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
