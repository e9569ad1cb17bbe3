package index

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// A Patrol finds bytes that changed without a trace, in any section, and in the header.
func TestPatrol(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "c.gmq")
	b, err := NewBuilder(&Schema{Name: "t", Kind: Rows, Columns: []Column{{Name: "c", Type: CategoryColumn}}},
		[]AttributeSpec{{Name: "c", Type: Text}}, BuilderOptions{})
	must(err)
	for i := range 2000 {
		b.AddString(0, strconv.Itoa(i%7))
		must(b.EndObject("key "+strconv.Itoa(i), []byte(`{"a":1}`), ""))
	}
	must(b.WriteFile(t.Context(), path, nil))
	x, err := Open(path)
	must(err)
	defer x.Close()
	content, err := os.ReadFile(path)
	must(err)
	put := func(at int64, data []byte) { // into the file as it is
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		must(err)
		_, err = f.WriteAt(data, at)
		must(errors.Join(err, f.Close()))
	}
	steps := int(x.Size()/1000) + 2*len(x.Sections())
	round := func() error {
		p := x.NewPatrol()
		for range steps {
			if err := p.Step(1000); err != nil {
				return err
			}
		}
		return nil
	}
	places := []int64{10}
	for _, s := range x.Sections() {
		places = append(places, s.Offset+s.Length/2)
	}
	for _, at := range places {
		must(round())
		put(at, []byte{content[at] ^ 1})
		state, err := stateOf(x.mapped.file)
		must(err)
		x.mapped.trust.Store(&trust{x.Epoch(), state}) // as if the times did not tell
		must(x.Unchanged(x.Epoch()))
		var changed *ChangedError
		if err := round(); !errors.As(err, &changed) {
			t.Fatalf("byte %d is another, and the patrol says %v", at, err)
		}
		if x.Epoch() != 0 {
			t.Fatal("the epoch goes on")
		}
		put(at, content[at:at+1])
		for deadline := time.Now().Add(30 * time.Second); x.Reread(t.Context()) != nil; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the old bytes are not trusted again")
			}
		}
	}
}
