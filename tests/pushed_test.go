package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/client"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/service/depot"
	"github.com/geniemq/geniemq/wire"
)

// editionOf builds people with one person more, and returns the file and its version.
func editionOf(t *testing.T, dir string, people int) (path, version string) {
	t.Helper()
	data := peopleData
	for i := range people {
		data += fmt.Sprintf("p%d,%d,Male,WA,more\n", i, 20+i)
	}
	path = buildFile(t, dir, "people.csv", peopleSchema, data)
	x, err := index.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	return path, x.Version()
}

// answersOf asks until the answers are of a version, and fails on any that is an error.
func answersOf(t *testing.T, c *client.Client, version string) {
	t.Helper()
	testkit.Eventually(t, func() error {
		r, err := c.Request(within(t), "people", client.Query{K: 1, Row: client.Conditions(client.Equal("state", "WA"))})
		if err != nil {
			t.Fatal(err)
		}
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		if r.Version != version {
			return fmt.Errorf("answered by %s, not %s", r.Version, version)
		}
		return nil
	})
}

// logs waits until a worker has logged something.
func logs(t *testing.T, w *process, text string) {
	t.Helper()
	testkit.Eventually(t, func() error {
		if said := w.stderr.String(); !strings.Contains(said, text) {
			return fmt.Errorf("%q is not in the log:\n%s", text, said)
		}
		return nil
	})
}

// Workers on other machines get an index from the server that it was pushed to, follow what is pushed, and go back. Nothing that is asked
// meanwhile fails.
func TestPushedIndexes(t *testing.T) {
	ofProcesses(t)
	t.Parallel()
	server := startServer(t)
	nc, _ := connect(t, server.url)
	c, err := client.New(nc, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	admin := func(want int, args ...string) string {
		t.Helper()
		p := run(t, append(args, "--nats", server.url)...)
		if code := p.wait(); code != want {
			t.Fatalf("geniemq %v: exit code %d\n%s", args, code, p.stderr)
		}
		return p.stderr.String()
	}
	first, v1 := editionOf(t, t.TempDir(), 1)
	second, v2 := editionOf(t, t.TempDir(), 2)
	if said := admin(1, "rollback", "people"); !strings.Contains(said, "nothing was pushed") {
		t.Errorf("it says %s", said)
	}
	var workers []*process
	var folders []string
	for range 2 { // before there is anything to serve
		folders = append(folders, t.TempDir())
		workers = append(workers, run(t, "serve", "--index", "people=nats:", "--nats", server.url, "--admin", "off", "--data-dir", folders[len(folders)-1]))
	}
	logs(t, workers[0], "waiting for a first version")
	admin(0, "push", first)
	for _, w := range workers {
		w.says("NATS")
	}
	answersOf(t, c, v1)
	admin(0, "push", second)
	answersOf(t, c, v2)
	admin(0, "rollback", "people")
	answersOf(t, c, v1)
	if said := admin(1, "rollback", "people", "--to", "0123456789abcdef"); !strings.Contains(said, "geniemq versions people") {
		t.Errorf("it says %s", said)
	}
	admin(0, "versions")
	for i, w := range workers {
		w.signal(syscall.SIGTERM)
		if code := w.wait(); code != 0 {
			t.Errorf("exit code %d:\n%s", code, w.stderr)
		}
		if files, err := os.ReadDir(filepath.Join(folders[i], "indexes")); err != nil || len(files) != 2 {
			t.Errorf("%v, %v", files, err)
		}
	}
	// What was fetched is there when the worker comes again.
	again := run(t, "serve", "--index", "nats:people", "--nats", server.url, "--admin", "off", "--data-dir", folders[0])
	again.says("NATS")
	answersOf(t, c, v1)
	p := run(t, "serve", "--index", "people=nats:", "--admin", "off")
	if code := p.wait(); code != 2 || !strings.Contains(p.stderr.String(), "give --nats too") {
		t.Errorf("exit code %d:\n%s", code, p.stderr)
	}
}

// With --watch a file that takes the name of a served one is served, whether it was renamed or written there, and one that is no index is not.
func TestWatchedFiles(t *testing.T) {
	ofProcesses(t)
	t.Parallel()
	dir := t.TempDir()
	path, v1 := editionOf(t, dir, 1)
	second, v2 := editionOf(t, t.TempDir(), 2)
	third, v3 := editionOf(t, t.TempDir(), 3)
	w := run(t, "serve", "--index", "people="+path, "--watch", "--admin", "off", "--nats-listen", "127.0.0.1:0", "--data-dir", t.TempDir())
	url := strings.Fields(w.says("NATS"))
	nc, _ := connect(t, url[len(url)-1])
	c, err := client.New(nc, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	answersOf(t, c, v1)
	if err := os.Rename(second, path); err != nil {
		t.Fatal(err)
	}
	answersOf(t, c, v2)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("no index"), 0o644); err != nil {
		t.Fatal(err)
	}
	logs(t, w, "not a geniemq index")
	answersOf(t, c, v2)
	data, err := os.ReadFile(third)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data[:len(data)/2], 0o644); err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Millisecond) // a copy that takes its time
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	answersOf(t, c, v3)
	if said := w.stderr.String(); strings.Contains(said, "SIGHUP") {
		t.Errorf("it says to do what it does by itself:\n%s", said)
	}
}

// What was pushed is added to a worker that runs, followed and rolled back, also under another name, until it is removed.
func TestPushedIndexesAreAdded(t *testing.T) {
	t.Parallel()
	r := start(t, config.Config{Indexes: []config.IndexSource{{Name: "other", Path: buildFile(t, t.TempDir(), "people.csv", peopleSchema, peopleData)}}}, service.Options{})
	js, err := jetstream.New(r.nc)
	if err != nil {
		t.Fatal(err)
	}
	store := depot.New(js, wire.Subjects{})
	first, v1 := editionOf(t, t.TempDir(), 1)
	second, v2 := editionOf(t, t.TempDir(), 2)
	if _, _, err := r.srv.Add(within(t), "people", "nats:"); err == nil || !strings.Contains(err.Error(), "geniemq push") {
		t.Errorf("nothing was pushed: %v", err)
	}
	push := func(file string) {
		t.Helper()
		if _, _, err := store.Push(within(t), "people", file); err != nil {
			t.Fatal(err)
		}
	}
	push(first)
	for _, wrong := range [][2]string{{"", "nats:"}, {"other", "nats:people"}, {"people", "nats:none"}, {"people", "nats:a.b"}} {
		if _, _, err := r.srv.Add(within(t), wrong[0], wrong[1]); err == nil {
			t.Errorf("%q was added", wrong)
		}
	}
	for i, as := range [][2]string{{"people", "nats:"}, {"", "nats:people"}} { // the second time after it was removed
		name, version, err := r.srv.Add(within(t), as[0], as[1])
		if err != nil || name != "people" || version != v1 {
			t.Fatalf("%q: %s %s, %v", as, name, version, err)
		}
		c := newClient(t, r.srv.NATSURL(), client.Options{})
		answersOf(t, c, v1)
		push(second)
		answersOf(t, c, v2)
		if _, _, err := store.Rollback(within(t), "people", v1); err != nil {
			t.Fatal(err)
		}
		answersOf(t, c, v1)
		if i == 0 {
			if name, version, err := r.srv.Add(within(t), "towns", "nats:people"); err != nil || name != "towns" || version != v1 {
				t.Fatalf("another name: %s %s, %v", name, version, err)
			}
		}
		if _, note, err := r.srv.Remove(within(t), "people"); err != nil || note != nil {
			t.Fatal(note, err)
		}
	}
	// The one that is left goes on to follow.
	push(second)
	testkit.Eventually(t, func() error {
		for _, x := range r.srv.Status().Indexes {
			if x.Name == "towns" && x.Version == v2 {
				return nil
			}
		}
		return fmt.Errorf("towns is not %s: %+v", v2, r.srv.Status().Indexes)
	})
}
