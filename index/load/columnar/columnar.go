// Package columnar reads fields of Parquet files by column, some rows at a time.
//
// Of each field that is wanted there is a reader of its own, and several read at a time; other fields are not read. What is read is copied out of the library's memory, so that
// it may be decoded elsewhere while the next rows are read. Memory: the rows at hand, and a page of each field.
package columnar

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/parquet-go/parquet-go"
)

const (
	// mostRows, mostValues and mostBytes bound the rows of a part, by what the file says of an average row.
	mostRows   = 1024
	mostValues = 1 << 13
	mostBytes  = 1 << 20
)

// File is an open file. The caller closes what is below.
type File struct{ file *parquet.File }

// size is how many bytes fields have in a group of rows, not compressed.
func (f *File) size(group int, fields []int) (bytes int64) {
	for _, field := range fields {
		bytes += f.file.Metadata().RowGroups[group].Columns[field].MetaData.TotalUncompressedSize
	}
	return bytes
}

// Open opens a Parquet file.
func Open(file *os.File, size int64) (f *File, err error) {
	defer Damaged(&err)
	opened, err := parquet.OpenFile(file, size, parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("is not a Parquet file or damaged: %w", err)
	}
	return &File{opened}, nil
}

// Schema is the file's.
func (f *File) Schema() *parquet.Schema { return f.file.Schema() }

// Damaged makes an error of a panic of the library, which trusts what a file says of itself.
func Damaged(err *error) {
	if fault := recover(); fault != nil {
		*err = fmt.Errorf("is a damaged Parquet file: %v", fault)
	}
}

// Reader reads the rows of a file in order. It is for one goroutine; Next has others while it runs.
type Reader struct {
	file    *File
	begun   int   // groups of rows
	fields  []int // columns of the file that are read
	workers int
	columns []*column // of the group at hand, by field
	left    int64     // rows of it
	part    int       // rows
	err     error     // stays
}

// Reader returns one of some columns of the file.
func (f *File) Reader(fields []int, workers int) *Reader {
	return &Reader{file: f, fields: fields, workers: workers}
}

// Rows are some rows. They may be used again by another Next, which overwrites them.
type Rows struct {
	n      int
	values []stretch // by field
}

// stretch is what a column has of some rows.
type stretch struct {
	values []parquet.Value
	starts []int // by row, where its values begin
	texts  []byte
}

// Len is how many rows there are.
func (r *Rows) Len() int { return r.n }

// Values are those of a row in a field, by its place among those that are read.
func (r *Rows) Values(row, field int) []parquet.Value {
	s := &r.values[field]
	if end := row + 1; end < len(s.starts) {
		return s.values[s.starts[row]:s.starts[end]]
	}
	return s.values[s.starts[row]:]
}

// Next reads the next rows, one at least. The error is io.EOF after the last ones, and any stays.
func (r *Reader) Next(to *Rows) error {
	to.n = 0
	if r.err == nil {
		r.err = r.next(to)
	}
	if r.err != nil {
		to.n = 0
	}
	return r.err
}

func (r *Reader) next(to *Rows) error {
	for r.left == 0 {
		if err := r.close(); err != nil {
			return err
		}
		if err := r.begin(); err != nil {
			return err
		}
	}
	to.n = int(min(r.left, int64(r.part)))
	if len(to.values) < len(r.columns) {
		to.values = make([]stretch, len(r.columns))
	}
	if err := r.each(func(field int) error { return r.columns[field].read(&to.values[field], to.n) }); err != nil {
		return err
	}
	r.left -= int64(to.n)
	return nil
}

// each does something for all fields, several at a time.
func (r *Reader) each(do func(field int) error) error {
	faults := make([]error, len(r.columns))
	one := func(field int) {
		defer Damaged(&faults[field])
		faults[field] = do(field)
	}
	workers := min(r.workers, len(r.columns))
	var group sync.WaitGroup
	for w := 1; w < workers; w++ {
		group.Go(func() {
			for field := w; field < len(r.columns); field += workers {
				one(field)
			}
		})
	}
	for field := 0; field < len(r.columns); field += max(1, workers) {
		one(field)
	}
	group.Wait()
	for _, err := range faults { // the first in the order of the file, whoever came first
		if err != nil {
			return err
		}
	}
	return nil
}

// begin begins the next group of rows.
func (r *Reader) begin() (err error) {
	defer Damaged(&err)
	groups := r.file.file.RowGroups()
	if r.begun == len(groups) {
		return io.EOF
	}
	group := groups[r.begun]
	chunks, values, bytes := group.ColumnChunks(), int64(0), r.file.size(r.begun, r.fields)
	r.begun++
	for _, field := range r.fields {
		r.columns = append(r.columns, &column{pages: chunks[field].Pages(), texts: textual(chunks[field].Type().Kind())})
		values += chunks[field].NumValues()
	}
	r.left = group.NumRows()
	r.part = mostRows
	for _, limit := range [][2]int64{{mostValues, values}, {mostBytes, bytes}} {
		if each := limit[1] / max(1, r.left); each > 0 {
			r.part = max(1, min(r.part, int(limit[0]/each)))
		}
	}
	return nil
}

// close ends a group.
func (r *Reader) close() (err error) {
	defer Damaged(&err)
	for _, c := range r.columns {
		c.release()
		err = errors.Join(err, c.pages.Close())
	}
	r.columns = r.columns[:0]
	return err
}

// column reads the values of a field in a group.
type column struct {
	pages  parquet.Pages
	texts  bool // values are in memory of a page
	page   parquet.Page
	values parquet.ValueReader // of the page
	room   [256]parquet.Value
	ready  []parquet.Value // read and not yet taken
}

func textual(k parquet.Kind) bool {
	return k == parquet.ByteArray || k == parquet.FixedLenByteArray || k == parquet.Int96
}

// read reads the values of so many rows.
func (c *column) read(to *stretch, rows int) error {
	to.values, to.starts, to.texts = to.values[:0], to.starts[:0], to.texts[:0]
	for {
		if len(c.ready) == 0 {
			switch err := c.fill(); {
			case errors.Is(err, io.EOF) && len(to.starts) == rows:
				return nil
			case errors.Is(err, io.EOF):
				return errors.New("is a damaged Parquet file: a field has fewer rows than the file says")
			case err != nil:
				return err
			}
		}
		for i, v := range c.ready {
			if v.RepetitionLevel() == 0 {
				if len(to.starts) == rows {
					c.ready = c.ready[i:]
					return nil
				}
				to.starts = append(to.starts, len(to.values))
			} else if len(to.starts) == 0 {
				return errors.New("is a damaged Parquet file: a row begins within a list")
			}
			if c.texts && !v.IsNull() {
				v = to.own(v)
			}
			to.values = append(to.values, v)
		}
		c.ready = nil
	}
}

// own copies what a value points to.
func (s *stretch) own(v parquet.Value) parquet.Value {
	first := len(s.texts)
	s.texts = append(s.texts, v.ByteArray()...)
	text := s.texts[first:len(s.texts):len(s.texts)]
	copied := parquet.ByteArrayValue(text)
	if v.Kind() == parquet.FixedLenByteArray {
		copied = parquet.FixedLenByteArrayValue(text)
	}
	return copied.Level(v.RepetitionLevel(), v.DefinitionLevel(), v.Column())
}

// fill sees to it that values are ready; io.EOF where there are no more.
func (c *column) fill() error {
	for {
		if c.values == nil {
			page, err := c.pages.ReadPage()
			if err != nil {
				return err
			}
			c.page, c.values = page, page.Values()
		}
		n, err := c.values.ReadValues(c.room[:])
		if c.ready = c.room[:n]; n > 0 {
			return nil
		}
		switch {
		case err == nil:
			return io.ErrNoProgress
		case !errors.Is(err, io.EOF):
			return err
		}
		c.release()
	}
}

func (c *column) release() {
	if c.page != nil {
		parquet.Release(c.page)
		c.page, c.values = nil, nil
	}
}
