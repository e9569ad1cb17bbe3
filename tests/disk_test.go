package tests

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
)

// smallDisk mounts a file system of its own, which a test can fill without harming anyone.
func smallDisk(t testing.TB, size string) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "geniemq-test", dir).CombinedOutput(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("a full disk needs a file system of its own, and mounting one fails: %v\n%s", err, out)
		}
		t.Skipf("a full disk needs a file system of its own, which only root may mount: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("unmounting %s: %v\n%s", dir, err, out)
		}
	})
	return dir
}

// fill takes all room that a file system has, and returns how to free it.
func fill(t testing.TB, dir string) (free func()) {
	t.Helper()
	path := filepath.Join(dir, "ballast")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for block := make([]byte, 1<<20); len(block) > 0; {
		if _, err := file.Write(block); err != nil {
			block = block[:len(block)/2]
		}
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}

// The disk under the embedded server is full: neither queries nor answers can be stored, and the service says so. When there is
// room again it goes on by itself, on the same address; what was accepted before, meanwhile and afterwards is answered exactly
// once.
func TestFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes: not when tests are to be short")
	}
	disk := smallDisk(t, "96m")
	rng := seeded.Rand(t)
	table := newCrowd(rng, 500)
	queries := make([]crowdQuery, 6000)
	for i := range queries {
		queries[i] = table.query(rng, fmt.Sprintf("q%d", i))
	}
	engine := newFaulty()
	r := start(t, config.Config{
		Indexes: []config.IndexSource{{Path: buildFile(t, t.TempDir(), "crowd.csv", crowdSchema, table.csv())}},
		DataDir: filepath.Join(disk, "data"), Admin: "127.0.0.1:0",
	}, service.Options{OpenEngine: engine.open})
	url := r.srv.NATSURL()

	const waiting = 100 // for the engine; their answers find no room
	for _, q := range queries[:waiting] {
		if err := publishUntilAcked(t.Context(), r.js, q); err != nil {
			t.Fatal(err)
		}
	}
	rest, next := make(chan error, 1), make(chan int, 2)
	publishing := waiting
	go func() { // goes on whatever happens to the server: what is refused is published again
		ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
		defer cancel()
		for upTo := range next {
			for ; publishing < upTo; publishing++ {
				if err := publishUntilAcked(ctx, r.js, queries[publishing]); err != nil {
					rest <- err
					return
				}
				if publishing > len(queries)/2 {
					time.Sleep(time.Millisecond) // so that there is a flow, for some seconds
				}
			}
			rest <- nil
		}
	}()
	defer close(next)

	free := fill(t, disk)
	close(engine.gate)
	next <- len(queries) / 2
	testkit.Eventually(t, func() error { return unready(r, "cannot write to its disk", "no space left") })
	select {
	case err := <-rest:
		t.Fatalf("everything was accepted on a full disk: the test shows nothing (%v)", err)
	case <-time.After(3 * time.Second):
	}
	if err := unready(r, "cannot write to its disk", "no space left"); err != nil {
		t.Error(err)
	}
	if got := r.get("/healthz"); !strings.Contains(got, "ok") {
		t.Errorf("healthz says %q of what will pass", got)
	}
	free()
	if err := <-rest; err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, r.ready)

	// Once more, in the middle of a flow: acknowledgements are lost with the disk, too.
	next <- len(queries)
	testkit.Eventually(t, func() error {
		if n := r.count("GENIE_RESULTS", "genie.result.crowd"); n < len(queries)/2+50 {
			return fmt.Errorf("%d results", n)
		}
		return nil
	})
	free = fill(t, disk)
	testkit.Eventually(t, func() error { return unready(r, "cannot write to its disk") })
	free()
	if err := <-rest; err != nil {
		t.Fatal(err)
	}
	checkAnswers(t, r.js, "crowd", queries)
	testkit.Eventually(t, r.ready)
	if now := r.srv.NATSURL(); now != url {
		t.Errorf("the server was at %s and is at %s", url, now)
	}
}

// unready is nil when the service says that it is not ready, for a reason with these words.
func unready(r *running, words ...string) error {
	err := r.ready()
	if err == nil {
		return errors.New("the service says that it is ready")
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			return fmt.Errorf("the service is not ready, but for another reason: %w", err)
		}
	}
	return nil
}
