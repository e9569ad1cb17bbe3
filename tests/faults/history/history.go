// Package history is what a run of tests/faults writes down. It is all that the judge knows, so it imports nothing of the run.
//
// A history is a file of lines, each written whole, at once, by one process, and never changed.
package history

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The histories of a run.
const (
	AcceptedLog = "accepted.log" // id, when its publishing began, when it was acknowledged
	AnswersLog  = "answers.log"  // incarnation of the stream, sequence, when it was stored by the server's clock, when it was read, id, version of the index, answer
	ExcusedLog  = "excused.log"  // two moments: what was accepted after the first, and published before the second, may have been withdrawn
	VersionsLog = "versions.log" // version of the index, seed of its table
	ServersLog  = "servers.log"  // a moment, a server, what happened to it, by how much its clock is ahead from then on
)

// Accepted is a query whose publish was acknowledged.
type Accepted struct {
	ID            string
	Began, Stored time.Time
}

// Line is how it is written.
func (a Accepted) Line() string {
	return fmt.Sprintf("%s\t%d\t%d\n", a.ID, a.Began.UnixNano(), a.Stored.UnixNano())
}

// Answered is an answer that the result stream has.
type Answered struct {
	Incarnation string
	Sequence    uint64
	Stored      time.Time // by the clock of the server that led the stream
	Read        time.Time
	ID, Version string
	Answer      string
}

// Line is how it is written.
func (a Answered) Line() string {
	return fmt.Sprintf("%s\t%d\t%d\t%d\t%s\t%s\t%s\n", a.Incarnation, a.Sequence, a.Stored.UnixNano(), a.Read.UnixNano(), a.ID, a.Version, a.Answer)
}

// Excuse is for queries that a fault withdrew on purpose, such as a purge: those that were accepted from a moment on when all before were answered, and whose publishing
// had begun at another.
type Excuse struct{ From, To time.Time }

// Line is how it is written.
func (e Excuse) Line() string { return fmt.Sprintf("%d\t%d\n", e.From.UnixNano(), e.To.UnixNano()) }

// Covers says whether a query may have been withdrawn.
func (e Excuse) Covers(a Accepted) bool { return !a.Stored.Before(e.From) && a.Began.Before(e.To) }

// ParseAccepted reads what Line has written.
func ParseAccepted(fields []string) (a Accepted, err error) {
	if len(fields) != 3 {
		return a, fmt.Errorf("%q is no line of %s", fields, AcceptedLog)
	}
	a.ID = fields[0]
	if a.Began, err = Moment(fields[1]); err == nil {
		a.Stored, err = Moment(fields[2])
	}
	return a, err
}

// ParseAnswered reads what Line has written.
func ParseAnswered(fields []string) (a Answered, err error) {
	if len(fields) != 7 {
		return a, fmt.Errorf("%q is no line of %s", fields, AnswersLog)
	}
	a = Answered{Incarnation: fields[0], ID: fields[4], Version: fields[5], Answer: fields[6]}
	if a.Sequence, err = strconv.ParseUint(fields[1], 10, 64); err == nil {
		a.Stored, err = Moment(fields[2])
	}
	if err == nil {
		a.Read, err = Moment(fields[3])
	}
	return a, err
}

// ParseExcuse reads what Line has written.
func ParseExcuse(fields []string) (e Excuse, err error) {
	if len(fields) != 2 {
		return e, fmt.Errorf("%q is no line of %s", fields, ExcusedLog)
	}
	if e.From, err = Moment(fields[0]); err == nil {
		e.To, err = Moment(fields[1])
	}
	return e, err
}

// Moment reads a number of nanoseconds.
func Moment(text string) (time.Time, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(0, n), err
}

// Open opens a history to append to it.
func Open(dir, name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
}

// Append adds one line.
func Append(dir, name, line string) error {
	log, err := Open(dir, name)
	if err != nil {
		return err
	}
	defer log.Close()
	_, err = log.WriteString(line)
	return err
}

// Follower reads what was appended to a history since it last looked.
type Follower struct {
	path string
	at   int64
}

// Follow begins at the first line of a history, which may not be there yet.
func Follow(dir, name string) Follower { return Follower{path: filepath.Join(dir, name)} }

// Next gives each line that is new.
func (f *Follower) Next(each func(fields []string) error) error {
	file, err := os.Open(f.path)
	if os.IsNotExist(err) {
		return nil
	} else if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Seek(f.at, io.SeekStart); err != nil {
		return err
	}
	r := bufio.NewReader(file)
	for {
		line, err := r.ReadBytes('\n')
		if err == io.EOF { // the rest of a line is still to come
			return nil
		} else if err != nil {
			return err
		}
		f.at += int64(len(line))
		if err := each(strings.Split(string(bytes.TrimSuffix(line, []byte("\n"))), "\t")); err != nil {
			return err
		}
	}
}

// Read gives all lines of a history.
func Read(dir, name string, each func(fields []string) error) error {
	f := Follow(dir, name)
	return f.Next(each)
}
