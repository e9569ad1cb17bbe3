package depot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testkit.StoredObject()) }

func start(t *testing.T) (*Depot, jetstream.JetStream) {
	t.Helper()
	b := testkit.StartBroker(t)
	js := testkit.JetStream(t, b.URL())
	return New(js, wire.Subjects{}), js
}

// push pushes an index of so many rows as "people", and returns its version and bytes.
func push(t *testing.T, d *Depot, rows int) (version string, data []byte) {
	t.Helper()
	path := testkit.RowsFile(t, "people", rows)
	name, v, err := d.Push(t.Context(), "", path)
	if err != nil || name != "people" {
		t.Fatal(name, err)
	}
	if data, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return v.Version, data
}

func TestPushFetchRollback(t *testing.T) {
	d, _ := start(t)
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "fetched")
	if _, err := d.Shelf(ctx, "people"); !errors.Is(err, ErrNothing) {
		t.Fatalf("before any push: %v", err)
	}
	var versions []string
	contents := make(map[string][]byte)
	for n := range Keep + 2 {
		v, data := push(t, d, 100+n)
		versions, contents[v] = append(versions, v), data
	}
	s, err := d.Shelf(ctx, "people")
	if err != nil || s.Current != versions[Keep+1] || len(s.Versions) != Keep {
		t.Fatalf("%+v, %v", s, err)
	}
	for i, v := range versions {
		path, err := d.Fetch(ctx, "people", v, dir)
		if kept := i >= 2; !kept {
			if !errors.Is(err, ErrNoVersion) {
				t.Errorf("version %d, which is not kept: %v", i, err)
			}
			continue
		}
		got, _ := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, contents[v]) {
			t.Errorf("version %d: %d bytes, %v", i, len(got), err)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) != kept {
		t.Errorf("%d files stay of %d versions", len(files), len(versions))
	}
	was, is, err := d.Rollback(ctx, "people", "")
	if err != nil || was != versions[Keep+1] || is != versions[Keep] {
		t.Fatal(was, is, err)
	}
	if _, is, err = d.Rollback(ctx, "people", ""); err != nil || is != versions[Keep-1] {
		t.Fatalf("a second one goes on: %s, %v", is, err)
	}
	if _, is, err = d.Rollback(ctx, "people", versions[Keep+1]); err != nil || is != versions[Keep+1] {
		t.Fatal(is, err)
	}
	if _, _, err = d.Rollback(ctx, "people", versions[0]); !errors.Is(err, ErrNoVersion) {
		t.Errorf("to a version that is not kept: %v", err)
	}
	if _, _, err = d.Rollback(ctx, "others", ""); !errors.Is(err, ErrNothing) {
		t.Errorf("of an index that was never pushed: %v", err)
	}
	if names, err := d.Names(ctx); err != nil || !slices.Equal(names, []string{"people"}) {
		t.Error(names, err)
	}
}

// What lies in the folder is looked at, and a file in the store that is not what was pushed is refused.
func TestDamage(t *testing.T) {
	d, js := start(t)
	ctx, dir := t.Context(), t.TempDir()
	version, data := push(t, d, 100)
	path, err := d.Fetch(ctx, "people", version, dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{"cut": data[:len(data)/2], "empty": nil, "changed": append(slices.Clone(data[:len(data)-1]), data[len(data)-1]^1)} {
		if err := os.WriteFile(path, bad, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Fetch(ctx, "people", version, dir); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, _ := os.ReadFile(path); !bytes.Equal(got, data) {
			t.Errorf("%s: it is not fetched again", name)
		}
	}
	os.Remove(path)
	files, err := js.ObjectStore(ctx, "genie-index-files")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := files.PutBytes(ctx, object("people", version), data[:len(data)-1]); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Fetch(ctx, "people", version, dir); err == nil {
		t.Error("a file is taken that is not what was pushed")
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%v are left", left)
	}
	if _, _, err := d.Push(ctx, "", filepath.Join(dir, "none.gmq")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if _, _, err := d.Push(ctx, "a.b", testkit.RowsFile(t, "people", 10)); err == nil {
		t.Error("a name is taken that no index can have")
	}
}

// A store without room refuses a push, and what was served stays.
func TestNoRoom(t *testing.T) {
	d, js := start(t)
	ctx := t.Context()
	if _, err := js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: "genie-index-files", MaxBytes: 64 << 10}); err != nil {
		t.Fatal(err)
	}
	version, _ := push(t, d, 100)
	if _, _, err := d.Push(ctx, "", testkit.RowsFile(t, "people", 100_000)); err == nil {
		t.Fatal("a file is stored that there is no room for")
	}
	if s, err := d.Shelf(ctx, "people"); err != nil || s.Current != version {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := d.Fetch(ctx, "people", version, t.TempDir()); err != nil {
		t.Error(err)
	}
}

// Pushes at the same time follow one another: all are on the shelf.
func TestPushesAtTheSameTime(t *testing.T) {
	d, _ := start(t)
	var all sync.WaitGroup
	want := make([]string, Keep)
	for i := range want {
		all.Go(func() { want[i], _ = push(t, d, 200+i) })
	}
	all.Wait()
	s, err := d.Shelf(t.Context(), "people")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range want {
		if s.place(v) < 0 {
			t.Errorf("version %s is not on the shelf %+v", v, s)
		}
	}
}

// Follow gives each version once, tries again what failed for a while, and leaves what failed for good.
func TestFollow(t *testing.T) {
	d, _ := start(t)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	calls, done := make(chan string), make(chan struct{})
	answers := make(chan error)
	go func() {
		defer close(done)
		_ = d.Follow(ctx, "people", "", slog.New(slog.DiscardHandler), func(ctx context.Context, version string) error {
			calls <- version
			return <-answers
		})
	}()
	first, _ := push(t, d, 100) // after the follower began to wait
	for _, err := range []error{errors.New("for a while"), nil} {
		if got := <-calls; got != first {
			t.Fatalf("%s is not %s", got, first)
		}
		answers <- err
	}
	second, _ := push(t, d, 101)
	if got := <-calls; got != second {
		t.Fatalf("%s is not %s", got, second)
	}
	answers <- &FinalError{fmt.Errorf("for good")}
	if _, _, err := d.Rollback(ctx, "people", ""); err != nil {
		t.Fatal(err)
	}
	if got := <-calls; got != first {
		t.Fatalf("%s is not %s", got, first)
	}
	answers <- nil
	end()
	<-done
}
