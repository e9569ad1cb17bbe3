package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/geniemq/geniemq/internal/lock"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

func open(t testing.TB, path, run string) *Journal {
	t.Helper()
	j, err := Open(path, run, false)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

func all(t testing.TB, j *Journal) (rows []Row) {
	t.Helper()
	err := j.Each(func(r *Row) error {
		row := *r
		row.Pairs = append([]Pair(nil), r.Pairs...)
		rows = append(rows, row)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func closed(t testing.TB, j *Journal) {
	t.Helper()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

func rowOf(i int) Row {
	r := Row{Number: int64(i), Key: fmt.Sprintf("k\n%d", i)}
	for p := range i % 4 {
		r.Pairs = append(r.Pairs, Pair{ID: uint32(i * p), Key: "ö", Score: 1 / float64(p+3)})
	}
	return r
}

// TestCutAnywhere: wherever a file ends, or is damaged, the rows before are there, and a run that goes on ends with the same rows. One whose first line is damaged is
// taken for somebody else's.
func TestCutAnywhere(t *testing.T) {
	r := seeded.Rand(t)
	path := filepath.Join(t.TempDir(), "j")
	const n = 40
	var want []Row
	j := open(t, path, "run")
	for i := range n {
		want = append(want, rowOf(i))
	}
	if err := j.Append(want); err != nil {
		t.Fatal(err)
	}
	closed(t, j)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		text := append([]byte(nil), whole[:r.IntN(len(whole)+1)]...)
		damaged := len(text)
		if len(text) > 0 && r.IntN(2) == 0 {
			damaged = r.IntN(len(text))
			text[damaged] ^= 1 << r.IntN(8)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		j, err := Open(path, "run", false)
		if first := bytes.IndexByte(whole, '\n'); err != nil && damaged <= first && damaged < len(text) {
			if there, _ := os.ReadFile(path); !bytes.Equal(there, text) {
				t.Fatalf("%q is no journal, and was changed to %q", text, there)
			}
			continue
		} else if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if rows := all(t, j); !reflect.DeepEqual(rows, want[:j.Rows():j.Rows()]) && len(rows) > 0 {
			t.Fatalf("%d rows are %v", j.Rows(), rows)
		}
		if err := j.Append(want[j.Rows():]); err != nil {
			t.Fatal(err)
		}
		closed(t, j)
		if again, err := os.ReadFile(path); err != nil || string(again) != string(whole) {
			t.Fatalf("the file is another one: %v", err)
		}
	}
}

func TestRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := open(t, path, "one run")
	if err := j.Append([]Row{rowOf(1)}); err == nil {
		t.Error("a row is left out")
	}
	if err := j.Append([]Row{rowOf(0)}); err != nil {
		t.Fatal(err)
	}
	closed(t, j)
	if _, err := Open(path, "another", false); !errors.As(err, new(*OtherRun)) {
		t.Errorf("another run's journal: %v", err)
	}
	j = open(t, path, "one run")
	if j.Rows() != 1 {
		t.Errorf("%d rows", j.Rows())
	}
	if _, err := Open(path, "one run", false); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("two at once: %v", err)
	}
	closed(t, j)
	if j, err := Open(path, "another", true); err != nil || j.Rows() != 0 {
		t.Errorf("anew: %v", err)
	} else if err := j.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
	// What is no journal is left alone.
	const letter = "Dear Ann,\nall is well.\n"
	if err := os.WriteFile(path, []byte(letter), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, "one run", false); err == nil || !strings.Contains(err.Error(), "no journal") {
		t.Errorf("a letter: %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != letter {
		t.Errorf("the letter says %q: %v", text, err)
	}
}

// TestFull: rows that could not be written are not said to be done, and a run that goes on when there is room has each once.
func TestFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	j := open(t, path, "run")
	if err := j.Append([]Row{rowOf(0)}); err != nil {
		t.Fatal(err)
	}
	file := j.file
	var err error
	if j.file, err = os.OpenFile("/dev/full", os.O_RDWR, 0); err != nil {
		t.Skipf("no disk that is always full: %v", err)
	}
	if err := j.Append([]Row{rowOf(1), rowOf(2)}); !errors.Is(err, syscall.ENOSPC) || j.Rows() != 1 {
		t.Errorf("%d rows: %v", j.Rows(), err)
	}
	j.file.Close()
	file.Close()
	j = open(t, path, "run")
	if err := j.Append([]Row{rowOf(1), rowOf(2)}); err != nil || len(all(t, j)) != 3 {
		t.Errorf("%d rows: %v", j.Rows(), err)
	}
	closed(t, j)
}

// FuzzOpen: whatever a file has, what is read of it can be written and read again.
func FuzzOpen(f *testing.F) {
	path := filepath.Join(f.TempDir(), "seed")
	j := open(f, path, "run")
	if err := j.Append([]Row{rowOf(0), rowOf(1), rowOf(2)}); err != nil {
		f.Fatal(err)
	}
	closed(f, j)
	text, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(text[:len(text)/2])
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "j")
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		j, err := Open(path, "run", false)
		if err != nil {
			return
		}
		n := j.Rows()
		rows := all(t, j)
		if int64(len(rows)) != n {
			t.Fatalf("%d rows, said to be %d", len(rows), n)
		}
		if err := j.Append([]Row{{Number: n}}); err != nil {
			t.Fatal(err)
		}
		closed(t, j)
		if j = open(t, path, "run"); j.Rows() != n+1 {
			t.Fatalf("%d rows after %d", j.Rows(), n+1)
		}
		closed(t, j)
	})
}
