// Package spill keeps what is collected one after the other and wanted as one run of bytes later: in memory as long as that is little, in a temporary
// file beyond.
package spill

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/edsrzf/mmap-go"
)

// Budget is the memory that some runs share.
type Budget struct {
	Limit int64 // bytes that all of them hold in memory at most, about; a run that would exceed it goes to a file
	held  int64
}

// Run is bytes that were appended to one another.
//
// Memory is bounded by its budget: beyond it a run is in a file that has no name from the beginning on, so that it goes with the process, or once the run is
// no longer used. The file lies in the folder for temporary files (TMPDIR). What is in it is seen through a map, whose pages the system drops when it needs
// them. Where files cannot lose their names, all stays in memory. Whether bytes are in memory or in a file shows in nothing that is read.
//
// A Run is not safe for concurrent use, but what Bytes returned may be read by many.
type Run struct {
	budget *Budget
	data   []byte
	file   *os.File
	writer *bufio.Writer
	size   int64
	mapped mmap.MMap
}

// New begins a run.
func New(budget *Budget) *Run { return &Run{budget: budget} }

// Append adds bytes. The error says what to do; the run is of no use after it.
func (r *Run) Append(data []byte) error {
	r.size += int64(len(data))
	if r.file == nil {
		if r.budget.held+int64(len(data)) <= r.budget.Limit || runtime.GOOS == "windows" {
			r.budget.held += int64(len(data))
			if r.data == nil {
				r.data = make([]byte, 0, max(4096, len(data))) // which begins where numbers of any size may
			}
			r.data = append(r.data, data...)
			return nil
		}
		if err := r.spill(); err != nil {
			return fault(err)
		}
	}
	if _, err := r.writer.Write(data); err != nil {
		return fault(err)
	}
	return nil
}

// spill moves what is in memory to a file.
func (r *Run) spill() error {
	f, err := os.CreateTemp("", "geniemq-build-")
	if err == nil {
		err = os.Remove(f.Name())
	}
	if err != nil {
		return err
	}
	r.file, r.writer = f, bufio.NewWriterSize(f, 1<<20)
	runtime.SetFinalizer(r, func(r *Run) { _ = r.unmap() }) // the file's own closes it
	_, err = r.writer.Write(r.data)
	r.budget.held -= int64(len(r.data))
	r.data = nil
	return err
}

func fault(err error) error {
	return fmt.Errorf("a temporary file for values that access paths are built of (TMPDIR says where): %w", err)
}

// Len is how many bytes there are.
func (r *Run) Len() int64 { return r.size }

// Bytes are all that was appended, at a multiple of eight. They must not change, and are good until the next call of Append, and as long as the run is
// reachable: who reads them keeps it alive.
func (r *Run) Bytes() ([]byte, error) {
	if r.file == nil || r.size == 0 {
		return r.data, nil
	}
	if int64(len(r.mapped)) == r.size {
		return r.mapped, nil
	}
	if err := r.unmap(); err != nil {
		return nil, fault(err)
	}
	if err := r.writer.Flush(); err != nil {
		return nil, fault(err)
	}
	// A map of a file that is shorter than it was would end the process where it is read.
	if info, err := r.file.Stat(); err != nil || info.Size() != r.size {
		return nil, fault(errors.Join(err, errors.New("it is not as long as it was written")))
	}
	m, err := mmap.Map(r.file, mmap.RDONLY, 0)
	if err != nil {
		return nil, fault(err)
	}
	r.mapped = m
	return m, nil
}

func (r *Run) unmap() error {
	if r.mapped == nil {
		return nil
	}
	m := r.mapped
	r.mapped = nil
	return m.Unmap()
}
