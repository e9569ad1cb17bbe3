// Package judge says what came of a run of tests/faults. It knows the histories on disk and the seed, and nothing else: no server, no worker, no code of theirs.
//
// # The verdict
//
// Every query whose publish was acknowledged has an answer, or is lost, unless it is covered by an excuse. It has exactly one in each incarnation of the result stream, or is
// doubled; and each says what brute force says of the version that it names, or is wrong.
//
// # Clocks that were set
//
// What docs/delivery.md does not promise of servers whose clocks are set is no fault, and is counted apart. The judge takes as little as it can for that: a second
// answer needs a server that stored it by its own clock and can be shown to have forgotten the first (history.Timetable.Forgets); a timeout that was
// used up needs two clocks that were that far apart. It cannot know which server led a stream, nor when a worker looked at a clock, and takes the best for them.
package judge

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/geniemq/geniemq/tests/faults/crowd"
	"github.com/geniemq/geniemq/tests/faults/history"
)

// duplicateWindow is within which two answers to one query are a fault: the result stream's.
const duplicateWindow = 10 * time.Minute

// Verdict is what the judge finds.
type Verdict struct {
	Accepted, Answered, Withdrawn int
	Lost, Doubled, Wrong          int
	Expired                       int      // told that their time was over, which it was by a server's clock that was set
	Again                         int      // answered again when the duplicate window was over by a server's clock, or that server can be shown to have forgotten the first answer
	Versions                      int      // that answered
	Examples                      []string // of what is wrong, at most twenty
}

// Faulty says whether a promise was broken.
func (v *Verdict) Faulty() bool { return v.Lost+v.Doubled+v.Wrong > 0 }

// Add adds what was found of another run. Versions are those of the one that had the most.
func (v *Verdict) Add(o Verdict) {
	v.Accepted, v.Answered, v.Withdrawn = v.Accepted+o.Accepted, v.Answered+o.Answered, v.Withdrawn+o.Withdrawn
	v.Lost, v.Doubled, v.Wrong = v.Lost+o.Lost, v.Doubled+o.Doubled, v.Wrong+o.Wrong
	v.Expired, v.Again, v.Versions = v.Expired+o.Expired, v.Again+o.Again, max(v.Versions, o.Versions)
	v.Examples = append(v.Examples, o.Examples...)
}

func (v *Verdict) complain(count *int, format string, args ...any) {
	if *count++; len(v.Examples) < 20 {
		v.Examples = append(v.Examples, fmt.Sprintf(format, args...))
	}
}

// evidence is all that is known of a run.
type evidence struct {
	seed    uint64
	tables  map[string]crowd.Table // by version
	excuses []history.Excuse
	times   history.Timetable
	answers []history.Answered // as they were read, each once
	of      map[string][]int   // places in answers, by query
}

// Judge reads the histories in a folder.
func Judge(dir string, seed uint64) (*Verdict, error) {
	e, err := gather(dir, seed)
	if err != nil {
		return nil, err
	}
	v, used := &Verdict{}, make(map[string]bool)
	err = history.Read(dir, history.AcceptedLog, func(f []string) error {
		a, err := history.ParseAccepted(f)
		if err != nil {
			return err
		}
		v.Accepted++
		own := e.of[a.ID]
		delete(e.of, a.ID)
		switch {
		case len(own) > 0:
			v.Answered++
		case slices.ContainsFunc(e.excuses, func(x history.Excuse) bool { return x.Covers(a) }):
			v.Withdrawn++
		default:
			v.complain(&v.Lost, "%s, accepted at %v, has no answer", a.ID, a.Stored)
		}
		for i, at := range own {
			one := e.answers[at]
			used[one.Version] = true
			if i > 0 && one.Incarnation == e.answers[own[i-1]].Incarnation {
				v.repeated(e, a, own[i-1], at)
			}
			if err := v.compare(e, a, one); err != nil {
				return err
			}
		}
		return nil
	})
	for id := range e.of {
		v.complain(&v.Wrong, "%s is answered, and nobody asked it", id)
	}
	v.Versions = len(used)
	return v, err
}

func gather(dir string, seed uint64) (e *evidence, err error) {
	e = &evidence{seed: seed, tables: make(map[string]crowd.Table), of: make(map[string][]int)}
	if err := history.Read(dir, history.VersionsLog, func(f []string) error {
		of, err := strconv.ParseUint(f[1], 10, 64)
		e.tables[f[0]] = crowd.New(of)
		return err
	}); err != nil {
		return nil, err
	}
	if err := history.Read(dir, history.ExcusedLog, func(f []string) error {
		x, err := history.ParseExcuse(f)
		e.excuses = append(e.excuses, x)
		return err
	}); err != nil {
		return nil, err
	}
	if e.times, err = history.ReadTimetable(dir); err != nil {
		return nil, err
	}
	return e, e.readAnswers(dir)
}

// readAnswers takes what the reader wrote twice for one.
func (e *evidence) readAnswers(dir string) error {
	type place struct {
		incarnation string
		sequence    uint64
	}
	seen := make(map[place]bool)
	return history.Read(dir, history.AnswersLog, func(f []string) error {
		a, err := history.ParseAnswered(f)
		if err != nil {
			return err
		}
		if p := (place{a.Incarnation, a.Sequence}); !seen[p] {
			seen[p] = true
			e.of[a.ID] = append(e.of[a.ID], len(e.answers))
			e.answers = append(e.answers, a)
		}
		return nil
	})
}

// repeated judges an answer that is there beside one before it, both by their places.
func (v *Verdict) repeated(e *evidence, a history.Accepted, before, again int) {
	one, other := e.answers[before], e.answers[again]
	lowest := one.Stored
	for _, between := range e.answers[before:again] {
		if between.Incarnation == one.Incarnation && between.Stored.Before(lowest) {
			lowest = between.Stored
		}
	}
	if other.Stored.Sub(one.Stored) >= duplicateWindow || e.times.Forgets(a.Began, one, other, lowest, duplicateWindow) {
		v.Again++
		return
	}
	v.complain(&v.Doubled, "%s is answered at %v (%d) and at %v (%d)", a.ID, one.Stored, one.Sequence, other.Stored, other.Sequence)
}

// untilSeen is for how long a worker that a fault keeps busy may not know that a server's clock was set.
const untilSeen = 30 * time.Second

// expired says whether a query's time was over by a server's clock: stamped by one that was behind, and then another, or the same, was that far ahead. Workers learn of a
// clock that is set when they next look, so a time that was shown shortly before the query counts too.
func (e *evidence) expired(a history.Accepted, answer history.Answered, timeout time.Duration) bool {
	stamped, _ := e.times.Shown(a.Began, a.Stored)
	_, latest := e.times.Shown(a.Began.Add(-untilSeen), answer.Read)
	return latest.Sub(stamped) >= timeout
}

// compare judges what an answer says.
func (v *Verdict) compare(e *evidence, a history.Accepted, one history.Answered) error {
	n, err := strconv.Atoi(a.ID[strings.LastIndexByte(a.ID, '-')+1:])
	if err != nil {
		return fmt.Errorf("%s is no id of this run: %w", a.ID, err)
	}
	_, asked := crowd.Question(e.seed, n)
	if timeout := asked.Timeout(); one.Answer == crowd.TooLate && timeout > 0 && e.expired(a, one, timeout) {
		v.Expired++
	} else if t, known := e.tables[one.Version]; !known {
		v.complain(&v.Wrong, "%s is answered by an unknown version %q", a.ID, one.Version)
	} else if want := t.Answer(asked); want != one.Answer {
		v.complain(&v.Wrong, "%s by %s: %s, not %s", a.ID, one.Version, one.Answer, want)
	}
	return nil
}
