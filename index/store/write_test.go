package store

import (
	"context"
	"errors"
	"testing"
)

// TestOutputErrors fails each single write in turn.
func TestOutputErrors(t *testing.T) {
	drafts := []Draft{smallDraft(3), smallDraft(0), smallDraft(9)}
	broken := errors.New("no space left")
	for n := 0; ; n++ {
		out := &failingOutput{left: n, err: broken}
		err := write(context.Background(), out, 300, drafts, nil)
		if err == nil {
			if n < 3 {
				t.Errorf("only %d writes", n)
			}
			return
		}
		if !errors.Is(err, broken) {
			t.Fatalf("write %d: %v", n, err)
		}
	}
}

type failingOutput struct {
	memory
	left int
	err  error
}

func (f *failingOutput) Write(data []byte) (int, error) {
	if f.left--; f.left < 0 {
		return 0, f.err
	}
	return f.memory.Write(data)
}

func (f *failingOutput) WriteAt(data []byte, at int64) (int, error) {
	if f.left--; f.left < 0 {
		return 0, f.err
	}
	return f.memory.WriteAt(data, at)
}

// smallDraft is so many sections of a megabyte.
type smallDraft int

func (d smallDraft) Sections() int { return int(d) }
func (d smallDraft) Work() int64   { return 0 }
func (d smallDraft) Write(_ context.Context, w *Writer, _ func(int64)) error {
	for range d {
		w.AddOptional(999, -1, -1, make([]byte, 1<<20)) // nobody knows it
	}
	return w.Err()
}
