package index_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
)

// changedBuilder has n objects with keys, payloads and a category each.
func changedBuilder(t testing.TB, n int) *onebyone.Builder {
	t.Helper()
	s, err := index.Builtin().ParseSchema([]byte("name: c\nkind: rows\nkey: id\ncolumns: [{name: c, type: category}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := onebyone.NewBuilder(s, []schema.AttributeSpec{{Name: "c", Type: schema.Text}}, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		b.AddString(0, strings.Repeat("x", i%7))
		if err := b.EndObject("key"+strings.Repeat("0", 10)+string(rune('a'+i%26))+time.Duration(i).String(), []byte(`{"p":"`+strings.Repeat("y", 40)+`"}`), ""); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// openChanged opens a file of an index, and returns its bytes too.
func openChanged(t testing.TB) (x *index.Index, path string, content []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "c.gmq")
	if err := changedBuilder(t, 2000).WriteFile(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	x, err := index.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	if content, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return x, path, content
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// overwrite writes into a file as it is.
func overwrite(t testing.TB, path string, at int64, data []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteAt(data, at)
	must(t, errors.Join(err, f.Close()))
}

// quietFor is how long a file must have looked the same before its bytes are compared.
const quietFor = 250 * time.Millisecond

// reread calls Reread as its owner does, until check is satisfied.
func reread(t testing.TB, x *index.Index, check func(error) bool) error {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		err := x.Reread(t.Context())
		if check(err) {
			return err
		}
		if time.Now().After(deadline) {
			t.Fatalf("Reread goes on to return %v", err)
		}
	}
}

// Whatever is done to the bytes of a file ends the epoch, whatever else is done beside it; only the bytes that were
// opened begin another, which is another one.
func TestChangedBytes(t *testing.T) {
	changes := map[string]func(t *testing.T, path string, content []byte){
		"cut off":     func(t *testing.T, path string, c []byte) { must(t, os.Truncate(path, int64(len(c)/2))) },
		"emptied":     func(t *testing.T, path string, c []byte) { must(t, os.Truncate(path, 0)) },
		"made longer": func(t *testing.T, path string, c []byte) { must(t, os.Truncate(path, int64(len(c)+1))) },
		"one byte": func(t *testing.T, path string, c []byte) {
			overwrite(t, path, int64(len(c)/2), []byte{c[len(c)/2] ^ 1})
		},
		"written over": func(t *testing.T, path string, c []byte) {
			must(t, os.WriteFile(path, bytes.Repeat([]byte{7}, len(c)), 0))
		},
		"times set back": forged,
		"and chmod": func(t *testing.T, path string, c []byte) {
			overwrite(t, path, int64(len(c)/2), []byte{c[len(c)/2] ^ 1})
			must(t, os.Chmod(path, 0o600))
		},
		"and removed": func(t *testing.T, path string, c []byte) {
			overwrite(t, path, int64(len(c)/2), []byte{c[len(c)/2] ^ 1})
			must(t, os.Link(path, path+".link")) // to write the old bytes by
			must(t, os.Remove(path))
			must(t, os.Rename(path+".link", path))
		},
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, path, content := openChanged(t)
			before := x.Epoch()
			must(t, x.Unchanged(before))
			change(t, path, content)
			var changed *store.ChangedError
			if err := x.Unchanged(before); !errors.As(err, &changed) || changed.Path != path || changed.Reason == "" {
				t.Fatalf("the file was changed, and Unchanged says %v", err)
			}
			if x.Epoch() != 0 || x.Unchanged(0) == nil {
				t.Fatal("the epoch goes on")
			}
			for range 2 { // reading it does not help
				if err := reread(t, x, func(err error) bool { return err != nil }); !errors.As(err, &changed) {
					t.Fatal(err)
				}
				time.Sleep(quietFor)
			}
			must(t, os.WriteFile(path, content, 0))
			reread(t, x, func(err error) bool { return err == nil })
			after := x.Epoch()
			if after == 0 || after == before || x.Unchanged(after) != nil {
				t.Fatalf("with the old bytes epoch %d is %d, and %v", before, after, x.Unchanged(after))
			}
			if err := x.Unchanged(before); !errors.As(err, &changed) {
				t.Fatalf("what was read while the file was another is called sound: %v", err)
			}
			must(t, x.Validate())
		})
	}
}

// forged writes other bytes of the same number and sets the time of the last write back.
func forged(t *testing.T, path string, content []byte) {
	info, err := os.Stat(path)
	must(t, err)
	other := bytes.Clone(content)
	other[len(other)/2] ^= 1
	must(t, os.WriteFile(path, other, 0))
	must(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
	if now, err := os.Stat(path); err != nil || !now.ModTime().Equal(info.ModTime()) || now.Size() != info.Size() {
		t.Fatalf("the times are not set back: %v", err)
	}
}

// What leaves the bytes as they are either leaves the epoch as it is, or another begins by itself.
func TestUnchangedBytes(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(t *testing.T, path string, content []byte)
		goesOn bool
		named  bool
	}{
		{"nothing", func(*testing.T, string, []byte) {}, true, true},
		{"chmod", func(t *testing.T, path string, _ []byte) { must(t, os.Chmod(path, 0o600)) }, true, true},
		{"another name", func(t *testing.T, path string, _ []byte) { must(t, os.Link(path, path+".2")) }, true, true},
		{"removed", func(t *testing.T, path string, _ []byte) { must(t, os.Remove(path)) }, true, false},
		{"replaced", func(t *testing.T, path string, _ []byte) {
			must(t, changedBuilder(t, 10).WriteFile(t.Context(), path, nil))
		}, true, false},
		{"touch", func(t *testing.T, path string, _ []byte) { must(t, os.Chtimes(path, time.Now(), time.Now())) }, false, true},
		{"the same bytes", func(t *testing.T, path string, c []byte) { must(t, os.WriteFile(path, c, 0)) }, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x, path, content := openChanged(t)
			before := x.Epoch()
			c.change(t, path, content)
			if err := x.Unchanged(before); (err == nil) != c.goesOn {
				t.Fatalf("Unchanged says %v", err)
			}
			if c.goesOn && c.name != "nothing" && !x.Unverified() {
				t.Error("nobody is asked to read the bytes")
			}
			reread(t, x, func(err error) bool { return err == nil })
			if after := x.Epoch(); (after == before) != c.goesOn || x.Unchanged(after) != nil || x.Unverified() {
				t.Errorf("epoch %d is %d now, %v, unverified %v", before, after, x.Unchanged(after), x.Unverified())
			}
			if named, _ := x.Named(); named != c.named {
				t.Errorf("Named says %v", named)
			}
		})
	}
}

// A system call that changes what names a file changes the number of its links and a time, one after the other. Who looks in between must not
// take it for a write.
func TestLinksWhileLookedAt(t *testing.T) {
	x, path, _ := openChanged(t)
	epoch := x.Epoch()
	var looking sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	for range 2 {
		looking.Go(func() {
			for ctx.Err() == nil {
				if err := x.Unchanged(epoch); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 500 {
		must(t, os.Link(path, path+"."+strconv.Itoa(i)))
		time.Sleep(5 * time.Millisecond) // a tick of the clock of files
	}
	stop()
	looking.Wait()
}

// A write that comes at once after Open has another time than the one before Open, however coarse the clock is.
func TestWriteRightAfterOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.gmq")
	must(t, changedBuilder(t, 100).WriteFile(t.Context(), path, nil))
	content, err := os.ReadFile(path)
	must(t, err)
	for i := range 50 {
		must(t, os.WriteFile(path, content, 0o644))
		x, err := index.Open(path)
		must(t, err)
		overwrite(t, path, int64(len(content)-100), []byte{content[len(content)-100] ^ 1})
		if x.Unchanged(x.Epoch()) == nil {
			t.Fatalf("round %d: the write was not noticed", i)
		}
		must(t, x.Close())
	}
}

// A file that is being written is refused, and never ends the process, whatever state it is in.
func TestOpenWhileWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.gmq")
	must(t, changedBuilder(t, 20_000).WriteFile(t.Context(), path, nil))
	content, err := os.ReadFile(path)
	must(t, err)
	want, err := index.OpenBytes(content)
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ctx.Err() == nil; i++ {
			if i%2 == 0 {
				os.Truncate(path, int64(len(content)/(i%5+2)))
			} else {
				os.WriteFile(path, content, 0)
			}
			time.Sleep(time.Duration(i%7) * 10 * time.Millisecond)
		}
	}()
	opened, refused := 0, 0
	for start := time.Now(); time.Since(start) < 3*time.Second; {
		x, err := index.Open(path)
		if err != nil {
			refused++
			continue
		}
		if opened++; x.Version() != want.Version() {
			t.Errorf("opened version %s", x.Version())
		}
		must(t, x.Close())
	}
	stop()
	<-ended
	t.Logf("%d opened, %d refused", opened, refused)
	if refused == 0 {
		t.Error("the file was never found in the middle of a write")
	}
}

// Reads of what was cut off are errors where Recover is, and the rest goes on.
func TestRecoverFault(t *testing.T) {
	x, path, content := openChanged(t)
	read := func() (err error) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer x.Recover(x.Epoch(), &err)
		for id := range x.Objects() {
			io.WriteString(io.Discard, x.Key(id))
			_ = bytes.Contains(x.Payload(id), []byte("z"))
		}
		return nil
	}
	must(t, read())
	must(t, os.Truncate(path, 4096))
	var changed *store.ChangedError
	if err := read(); !errors.As(err, &changed) {
		t.Fatalf("reading what is not there returns %v", err)
	}
	must(t, os.WriteFile(path, content, 0))
	reread(t, x, func(err error) bool { return err == nil })
	must(t, read())
	defer func() {
		if value := recover(); value != "mine" {
			t.Errorf("a panic of another kind became %v", value)
		}
	}()
	var err error
	defer x.Recover(x.Epoch(), &err)
	panic("mine")
}

// A look costs no allocation: there is one for each answer.
func TestUnchangedAllocatesNothing(t *testing.T) {
	x, _, _ := openChanged(t)
	if n := testing.AllocsPerRun(100, func() {
		if x.Unchanged(x.Epoch()) != nil {
			t.Fatal("changed")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkUnchanged(b *testing.B) {
	x, _, _ := openChanged(b)
	for b.Loop() {
		if err := x.Unchanged(x.Epoch()); err != nil {
			b.Fatal(err)
		}
	}
}
