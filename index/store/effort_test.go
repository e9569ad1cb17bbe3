package store

import (
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// Opening a file ends with the error of who is asked whether to go on, whenever that is, and looks at so many sections at a time
// at most.
func TestEffort(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.gmq")
	if err := WriteFile(t.Context(), path, 0, []Draft{smallDraft(40)}, nil); err != nil {
		t.Fatal(err)
	}
	var asked, visiting, most atomic.Int32
	var after int32 // so many questions
	enough := errors.New("enough")
	open := func(workers int) error {
		asked.Store(0)
		x, err := Open(path, Effort{Workers: workers, Given: func() error {
			if n := asked.Add(1); after > 0 && n > after {
				return enough
			}
			return nil
		}}, nil, func(f *File) error {
			return f.Each(func(*Section) bool { return true }, func(*Section, []byte) error {
				now := visiting.Add(1)
				for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
				}
				time.Sleep(100 * time.Microsecond) // others come if they may
				visiting.Add(-1)
				return nil
			})
		})
		if err == nil {
			err = x.Close()
		}
		return err
	}
	for _, workers := range []int{1, 3} {
		most.Store(0)
		if err := open(workers); err != nil {
			t.Fatal(err)
		}
		if n := int(most.Load()); n > workers {
			t.Errorf("%d sections at a time, where %d may be", n, workers)
		}
	}
	questions := asked.Load()
	if questions < 40 {
		t.Fatalf("asked %d times: nothing is shown", questions)
	}
	for after = 1; after < questions; after++ {
		if err := open(2); !errors.Is(err, enough) {
			t.Errorf("after %d questions: %v", after, err)
		}
	}
}
