package main

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

// The histories of a run. A line is written whole, at once, and never changed.
const (
	acceptedLog = "accepted.log" // id, when its publishing began, when it was acknowledged
	answersLog  = "answers.log"  // incarnation of the stream, sequence, when it was stored by the server's clock, when it was read, id, version of the index, answer
	excusedLog  = "excused.log"  // a moment: what was accepted before it, and not answered, may have been withdrawn
	versionsLog = "versions.log" // version of the index, seed of its table
	serversLog  = "servers.log"  // a moment, a server, what happened to it, by how much its clock is ahead from then on
)

type accepted struct {
	id            string
	began, stored time.Time
}

func (a accepted) line() string {
	return fmt.Sprintf("%s\t%d\t%d\n", a.id, a.began.UnixNano(), a.stored.UnixNano())
}

type answered struct {
	incarnation string
	sequence    uint64
	stored      time.Time // by the clock of the server that led the stream
	read        time.Time
	id, version string
	answer      string
}

func (a answered) line() string {
	return fmt.Sprintf("%s\t%d\t%d\t%d\t%s\t%s\t%s\n", a.incarnation, a.sequence, a.stored.UnixNano(), a.read.UnixNano(), a.id, a.version, a.answer)
}

func parseAccepted(fields []string) (a accepted, err error) {
	if len(fields) != 3 {
		return a, fmt.Errorf("%q is no line of %s", fields, acceptedLog)
	}
	a.id = fields[0]
	if a.began, err = moment(fields[1]); err == nil {
		a.stored, err = moment(fields[2])
	}
	return a, err
}

func parseAnswered(fields []string) (a answered, err error) {
	if len(fields) != 7 {
		return a, fmt.Errorf("%q is no line of %s", fields, answersLog)
	}
	a = answered{incarnation: fields[0], id: fields[4], version: fields[5], answer: fields[6]}
	if a.sequence, err = strconv.ParseUint(fields[1], 10, 64); err == nil {
		a.stored, err = moment(fields[2])
	}
	if err == nil {
		a.read, err = moment(fields[3])
	}
	return a, err
}

func moment(text string) (time.Time, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	return time.Unix(0, n), err
}

func openHistory(dir, name string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
}

// follower reads what was appended to a history since it last looked.
type follower struct {
	path string
	at   int64
}

func (f *follower) next(each func(fields []string) error) error {
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

// readHistory gives all lines of a history.
func readHistory(dir, name string, each func(fields []string) error) error {
	return (&follower{path: filepath.Join(dir, name)}).next(each)
}
