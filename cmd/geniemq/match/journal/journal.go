// Package journal keeps what a long run has found, so that one that was killed goes on where it was.
package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"time"

	"github.com/geniemq/geniemq/internal/lock"
)

// Pair is an object that was found for a row.
type Pair struct {
	ID    uint32  `json:"id"`
	Key   string  `json:"key,omitempty"`
	Score float64 `json:"score"`
	// Distance is how far away the object is, where it was found by that.
	Distance *float64 `json:"distance,omitempty"`
}

// Row is what was found for one row of an input, best first.
type Row struct {
	Number int64  `json:"row"` // from 0
	Key    string `json:"key,omitempty"`
	Pairs  []Pair `json:"pairs,omitempty"`
}

// Journal is a file with the rows that are done, in their order, each once.
//
// # What it promises
//
// A row that Append was given is there after the process was killed, or it and all after it are not: a line counts only if it is whole, by its checksum, and if the
// row before it is there. What follows the first line that does not count is cut off when the file is opened again. A power failure may take the last seconds, no more: the
// file is synced that often.
//
// The first line says of which run it is, so that nobody goes on with another one's rows. A file that does not begin as a journal does is somebody else's, and is left alone.
//
// It is for one goroutine, and for one process at a time: the file is locked while it is open, and with it whatever is written by the one who has it.
type Journal struct {
	file   *os.File
	path   string
	rows   int64
	buffer bytes.Buffer
	synced time.Time
}

// OtherRun says that a journal is not of the run that wants to go on with it.
type OtherRun struct{ Path, Is, Want string }

func (e *OtherRun) Error() string {
	return fmt.Sprintf("%s is of another run: it says %s, this is %s", e.Path, e.Is, e.Want)
}

const syncEvery = 5 * time.Second

// Open opens the journal at path of the run that a text of one line describes, or makes it; anew forgets what is there. The error is an *OtherRun where it is of
// another one, and wraps lock.ErrHeld where another process has it.
func Open(path, run string, anew bool) (j *Journal, err error) {
	file, err := locked(path)
	if err != nil {
		return nil, fmt.Errorf("the journal beside the output: %w", err)
	}
	j = &Journal{file: file, path: path, synced: time.Now()}
	defer func() {
		if err != nil {
			file.Close()
		}
	}()
	appendLine(&j.buffer, []byte(run))
	var good int64
	if !anew {
		var is string
		if good, is, err = j.read(nil); err != nil {
			return nil, err
		}
		if good > 0 && is != run {
			return nil, &OtherRun{path, is, run}
		}
		if good == 0 && !j.begins() {
			return nil, fmt.Errorf("%s is no journal, or its first line is damaged: remove it, or name another output", path)
		}
	}
	if err := file.Truncate(good); err != nil {
		return nil, fmt.Errorf("cutting what was not finished off the journal: %w", err)
	}
	if _, err := file.Seek(good, io.SeekStart); err != nil {
		return nil, fmt.Errorf("going on with the journal: %w", err)
	}
	if good == 0 {
		return j, j.flush()
	}
	j.buffer.Reset()
	return j, nil
}

// locked opens a file for this process alone. Whoever had it before may have removed it between its opening and its locking here: then it is another one.
func locked(path string) (*os.File, error) {
	for {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
		if err != nil {
			return nil, err
		}
		if err := lock.File(file); err != nil {
			return nil, errors.Join(err, file.Close())
		}
		mine, err := file.Stat()
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		if there, err := os.Stat(path); err == nil && os.SameFile(mine, there) {
			return file, nil
		} else if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, errors.Join(err, file.Close())
		}
		if err := file.Close(); err != nil {
			return nil, err
		}
	}
}

// begins says whether the file is what a power failure leaves of the first line: a part of it, and zeros.
func (j *Journal) begins() bool {
	text := make([]byte, j.buffer.Len()+1)
	n, err := j.file.ReadAt(text, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	return bytes.HasPrefix(j.buffer.Bytes(), bytes.TrimRight(text[:n], "\x00"))
}

// Rows is how many rows are done: those with the numbers before it.
func (j *Journal) Rows() int64 { return j.rows }

// Append adds the next rows.
func (j *Journal) Append(rows []Row) error {
	for i := range rows {
		if next := j.rows + int64(i); rows[i].Number != next {
			return fmt.Errorf("the journal has %d rows, so row %d cannot follow", next, rows[i].Number)
		}
		text, err := json.Marshal(&rows[i])
		if err != nil {
			return fmt.Errorf("writing the journal: %w", err)
		}
		appendLine(&j.buffer, text)
	}
	if err := j.flush(); err != nil {
		return err
	}
	j.rows += int64(len(rows))
	return nil
}

func (j *Journal) flush() error {
	_, err := j.buffer.WriteTo(j.file)
	if now := time.Now(); err == nil && now.Sub(j.synced) >= syncEvery {
		j.synced, err = now, j.file.Sync()
	}
	if err != nil {
		return fmt.Errorf("writing the journal %s: %w", j.path, err)
	}
	return nil
}

// Each gives all rows, in memory that is used again.
func (j *Journal) Each(each func(*Row) error) error {
	end, err := j.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return fmt.Errorf("reading the journal: %w", err)
	}
	if good, _, err := j.read(each); err != nil {
		return err
	} else if good != end {
		return fmt.Errorf("the journal %s is damaged after %d rows: delete it, and all begins anew", j.path, j.rows)
	}
	return nil
}

// Close closes the journal, for another run to go on with.
func (j *Journal) Close() error { return errors.Join(j.file.Sync(), j.file.Close()) }

// Remove ends it: what it has was written elsewhere.
func (j *Journal) Remove() error { return errors.Join(j.file.Close(), os.Remove(j.path)) }

// read reads the lines that count, up to the offset good. It counts rows and leaves the file at good.
func (j *Journal) read(each func(*Row) error) (good int64, run string, err error) {
	if _, err := j.file.Seek(0, io.SeekStart); err != nil {
		return 0, "", fmt.Errorf("reading the journal: %w", err)
	}
	lines := bufio.NewReaderSize(j.file, 256<<10)
	j.rows = 0
	var row Row
	for first := true; ; first = false {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, "", fmt.Errorf("reading the journal %s: %w", j.path, err)
		}
		text, ok := checked(line)
		switch {
		case !ok:
		case first:
			run = string(text)
		default:
			row = Row{Pairs: row.Pairs[:0]}
			if ok = json.Unmarshal(text, &row) == nil && row.Number == j.rows; ok && each != nil {
				if err := each(&row); err != nil {
					return 0, "", err
				}
			}
		}
		if !ok {
			_, err := j.file.Seek(good, io.SeekStart)
			return good, run, err
		}
		if !first {
			j.rows++
		}
		good += int64(len(line))
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumDigits are those of a checksum, in front of its line and a blank.
const sumDigits = 8

func appendLine(b *bytes.Buffer, text []byte) {
	fmt.Fprintf(b, "%s %s\n", sum(text), text)
}

func sum(text []byte) string { return fmt.Sprintf("%0*x", sumDigits, crc32.Checksum(text, castagnoli)) }

// checked returns the text of a whole line.
func checked(line []byte) (text []byte, ok bool) {
	if len(line) < sumDigits+2 || line[len(line)-1] != '\n' || line[sumDigits] != ' ' {
		return nil, false
	}
	text = line[sumDigits+1 : len(line)-1]
	return text, string(line[:sumDigits]) == sum(text)
}
