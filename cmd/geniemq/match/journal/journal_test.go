package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

func open(t testing.TB, path, run string) *Journal {
	t.Helper()
	j, err := Open(path, run)
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

// TestCutAnywhere: wherever a file ends, or is damaged, the rows before are there, and a run that goes on ends with the same rows.
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
		if len(text) > 0 && r.IntN(2) == 0 {
			text[r.IntN(len(text))] ^= 1 << r.IntN(8)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		j, err := Open(path, "run")
		if other := (*OtherRun)(nil); errors.As(err, &other) {
			t.Fatalf("%q: %v", text, err)
		} else if err != nil {
			t.Fatal(err)
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
	if _, err := Open(path, "another"); !errors.As(err, new(*OtherRun)) {
		t.Errorf("another run's journal: %v", err)
	}
	j = open(t, path, "one run")
	if j.Rows() != 1 {
		t.Errorf("%d rows", j.Rows())
	}
	if err := j.Remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
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
		j, err := Open(path, "run")
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
