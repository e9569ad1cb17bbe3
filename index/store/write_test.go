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

// TestCancelledAtTheEnd: who cancels while a draft has all of its parts, so that it ends well, is still told so.
func TestCancelledAtTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	err := write(ctx, &memory{}, 300, []Draft{smallDraft(3)}, func(int64, int64) { cancel() })
	if ctx.Err() == nil {
		t.Fatal("no progress is told")
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
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
func smallDraft(n int) Draft {
	return Draft{Sections: n, Work: int64(n), Write: func(_ context.Context, w *Writer, progress func(int64)) error {
		for i := range n {
			w.BeginOptional(999, -1, -1) // nobody knows it
			w.Append(make([]byte, 1<<20))
			w.End()
			progress(int64(i + 1))
		}
		return w.Err()
	}}
}
