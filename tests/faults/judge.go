package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// duplicateWindow is within which two answers to one query are a fault: the result stream's.
const duplicateWindow = 10 * time.Minute

// Verdict is what the judge finds.
type Verdict struct {
	Accepted, Answered, Withdrawn int
	Lost, Doubled, Wrong          int
	Expired                       int      // told that their time was over, which it was by a server's clock that was set
	Again                         int      // answered again after a server's clock that was set had ended the duplicate window
	Versions                      int      // that answered
	Examples                      []string // of what is wrong, at most twenty
}

func (v *Verdict) complain(count *int, format string, args ...any) {
	if *count++; len(v.Examples) < 20 {
		v.Examples = append(v.Examples, fmt.Sprintf(format, args...))
	}
}

// judgeRole reads the histories of a run and prints what it finds as JSON.
func judgeRole(args []string) error {
	flags := pflag.NewFlagSet("judge", pflag.ContinueOnError)
	dir, seed := flags.String("dir", "", ""), flags.Uint64("seed", 0, "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	v, err := judge(*dir, *seed)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(v)
}

func judge(dir string, seed uint64) (*Verdict, error) {
	tables := make(map[string]crowd)
	if err := readHistory(dir, versionsLog, func(f []string) error {
		of, err := strconv.ParseUint(f[1], 10, 64)
		tables[f[0]] = newCrowd(of)
		return err
	}); err != nil {
		return nil, err
	}
	var excuse time.Time
	if err := readHistory(dir, excusedLog, func(f []string) (err error) {
		excuse, err = moment(f[0])
		return err
	}); err != nil {
		return nil, err
	}
	times, err := readTimetable(dir)
	if err != nil {
		return nil, err
	}
	answers, err := readAnswers(dir)
	if err != nil {
		return nil, err
	}
	v, used := &Verdict{}, make(map[string]bool)
	err = readHistory(dir, acceptedLog, func(f []string) error {
		a, err := parseAccepted(f)
		if err != nil {
			return err
		}
		v.Accepted++
		own := answers[a.id]
		delete(answers, a.id)
		switch {
		case len(own) > 0:
			v.Answered++
		case a.began.Before(excuse):
			v.Withdrawn++
		default:
			v.complain(&v.Lost, "%s, accepted at %v, has no answer", a.id, a.stored)
		}
		for i, one := range own {
			used[one.version] = true
			if i > 0 && one.incarnation == own[i-1].incarnation {
				v.repeated(a, own[i-1], one, times)
			}
			if err := v.compare(a, one, seed, tables, times); err != nil {
				return err
			}
		}
		return nil
	})
	for id := range answers {
		v.complain(&v.Wrong, "%s is answered, and nobody asked it", id)
	}
	v.Versions = len(used)
	return v, err
}

// used says whether a query's time was over by a server's clock: stamped by one that was behind, and then another, or the same, was that far ahead. Workers learn of a
// clock that is set when they next look, so a time that was shown shortly before the query counts too.
func (all timetable) used(a accepted, answer answered, timeout time.Duration) bool {
	stamped, _ := all.shown(a.began, a.stored)
	_, latest := all.shown(a.began.Add(-untilSeen), answer.read)
	return latest.Sub(stamped) >= timeout
}

// untilSeen is for how long a worker that a fault keeps busy may not know that a server's clock was set.
const untilSeen = 30 * time.Second

// readAnswers groups answers by query. What the reader wrote twice is one.
func readAnswers(dir string) (map[string][]answered, error) {
	seen, answers := make(map[place]bool), make(map[string][]answered)
	err := readHistory(dir, answersLog, func(f []string) error {
		a, err := parseAnswered(f)
		if err != nil {
			return err
		}
		if p := (place{a.incarnation, a.sequence}); !seen[p] {
			seen[p] = true
			answers[a.id] = append(answers[a.id], a)
		}
		return nil
	})
	return answers, err
}

// repeated judges an answer that is there beside one before it.
func (v *Verdict) repeated(a accepted, before, one answered, times timetable) {
	switch _, latest := times.shown(a.began, one.read); {
	case one.stored.Sub(before.stored) >= duplicateWindow: // by the server's clock, right or set
	case latest.Sub(before.stored) >= duplicateWindow || times.forgot(a.began, one.read):
		v.Again++
	default:
		v.complain(&v.Doubled, "%s is answered at %v (%d) and at %v (%d)", a.id, before.stored, before.sequence, one.stored, one.sequence)
	}
}

// compare judges what an answer says.
func (v *Verdict) compare(a accepted, one answered, seed uint64, tables map[string]crowd, times timetable) error {
	n, err := strconv.Atoi(a.id[strings.LastIndexByte(a.id, '-')+1:])
	if err != nil {
		return fmt.Errorf("%s is no id of this run: %w", a.id, err)
	}
	_, asked := question(seed, n)
	if one.answer == tooLate && asked.timeout > 0 && times.used(a, one, asked.timeout) {
		v.Expired++
	} else if t, known := tables[one.version]; !known {
		v.complain(&v.Wrong, "%s is answered by an unknown version %q", a.id, one.version)
	} else if want := t.answer(asked); want != one.answer {
		v.complain(&v.Wrong, "%s by %s: %s, not %s", a.id, one.version, one.answer, want)
	}
	return nil
}
