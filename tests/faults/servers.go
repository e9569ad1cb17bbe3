package main

import (
	"fmt"
	"strconv"
	"time"
)

// What happened to a server.
const (
	started  = "started"
	clockSet = "clock set"
)

// turn is a moment from which on a server's clock is so much ahead of the true time.
type turn struct {
	at           time.Time
	server, what string
	ahead        time.Duration
}

func (t turn) line() string {
	return fmt.Sprintf("%d\t%s\t%s\t%d\n", t.at.UnixNano(), t.server, t.what, t.ahead)
}

// timetable is what the clocks of all servers showed, as the conductor has set them.
type timetable map[string][]turn

func readTimetable(dir string) (timetable, error) {
	all := make(timetable)
	return all, readHistory(dir, serversLog, func(f []string) error {
		if len(f) != 4 {
			return fmt.Errorf("%q is no line of %s", f, serversLog)
		}
		at, err := moment(f[0])
		if err != nil {
			return err
		}
		ahead, err := strconv.ParseInt(f[3], 10, 64)
		all[f[1]] = append(all[f[1]], turn{at, f[1], f[2], time.Duration(ahead)})
		return err
	})
}

// blur is how far from the moment that is written down a step may have had its effect, on a machine that is busy.
const blur = time.Second

// shown is between which times the clocks of the servers were, from one true moment to another. Servers whose clocks were never touched show these two.
func (all timetable) shown(from, to time.Time) (earliest, latest time.Time) {
	earliest, latest = from, to
	for _, turns := range all {
		for i, t := range turns {
			begin, end := t.at.Add(-blur), to
			if i+1 < len(turns) {
				end = turns[i+1].at.Add(blur)
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
			if shows := begin.Add(t.ahead); shows.Before(earliest) {
				earliest = shows
			}
			if shows := end.Add(t.ahead); shows.After(latest) {
				latest = shows
			}
		}
	}
	return earliest, latest
}

// forgot says whether a server that started between two moments may not have known the ids of a window before it, because the times of the messages in its
// stream do not ascend: it looks for the begin of the window as if they did, and may find one that is later.
func (all timetable) forgot(from, to time.Time) bool {
	for _, own := range all {
		for _, start := range own {
			if start.what != started || start.at.Add(blur).Before(from) || start.at.Add(-blur).After(to) {
				continue
			}
			for _, turns := range all { // any of which may have led the stream
				for i := 1; i < len(turns); i++ {
					if back := turns[i]; back.ahead < turns[i-1].ahead && back.at.Before(start.at.Add(blur)) && start.at.Sub(back.at) < duplicateWindow+largestStep {
						return true
					}
				}
			}
		}
	}
	return false
}
