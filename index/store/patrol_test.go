package store

import (
	"errors"
	"os"
	"path/filepath"
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
	must(WriteFile(t.Context(), path, 0, []Draft{smallDraft(4)}, nil))
	x, err := Open(path, Effort{}, nil, func(*File) error { return nil })
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
	const step = 100_000
	steps := int(x.Size()/step) + 2*len(x.Sections())
	round := func() error {
		p := x.NewPatrol()
		for range steps {
			if err := p.Step(step); err != nil {
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
