package tests

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/internal/testkit/program"
)

// command runs geniemq to its end and returns what it wrote and its exit code.
func command(t testing.TB, args ...string) (stdout, stderr []byte, code int) {
	t.Helper()
	var out, err bytes.Buffer
	cmd := exec.CommandContext(within(t), program.Path(t), args...)
	cmd.Stdout, cmd.Stderr = &out, &err
	var exit *exec.ExitError
	if fault := cmd.Run(); fault != nil && !errors.As(fault, &exit) {
		t.Fatalf("running geniemq %v: %v", args, fault)
	}
	return out.Bytes(), err.Bytes(), cmd.ProcessState.ExitCode()
}

// buildCommand builds an index with the command and returns its path, and what the command said.
func buildCommand(t testing.TB, schema string, args ...string) (path, said string) {
	t.Helper()
	dir := t.TempDir()
	path = filepath.Join(dir, "index.gmq")
	_, stderr, code := command(t, append([]string{"build", "--schema", writeFile(t, dir, "schema.yaml", []byte(schema)), "--output", path}, args...)...)
	if code != 0 {
		t.Fatalf("building: exit code %d\n%s", code, stderr)
	}
	return path, string(stderr)
}

func writeFile(t testing.TB, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// serveCommand starts geniemq serve with a server of its own on free ports, and returns when it is ready.
func serveCommand(t testing.TB, args ...string) (p *process, natsURL, adminURL string) {
	t.Helper()
	p = run(t, append([]string{"serve", "--nats-listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data-dir", t.TempDir()}, args...)...)
	natsURL, adminURL = p.says("NATS"), p.says("admin")
	testkit.Eventually(t, func() error {
		resp, err := http.Get(adminURL + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("readyz: %s", resp.Status)
		}
		return nil
	})
	return p, natsURL, adminURL
}

// hit is an object of an answer, and what brute force expects.
type hit struct{ id, count int }

// topK is the k hits that a query has by the total order, count descending and id ascending, out of the counts of
// all objects, and the count of the k-th.
func topK(counts []int, k, minCount int) (hits []hit, mcK int) {
	var byCount [][]int
	for id, count := range counts {
		if count < max(1, minCount) {
			continue
		}
		for len(byCount) <= count {
			byCount = append(byCount, nil)
		}
		byCount[count] = append(byCount[count], id)
	}
	for count := len(byCount) - 1; count > 0; count-- {
		for _, id := range byCount[count] {
			if hits = append(hits, hit{id, count}); len(hits) == k {
				return hits, count
			}
		}
	}
	return hits, 0
}

func mustMatch(t testing.TB, what, text, pattern string) {
	t.Helper()
	if !regexp.MustCompile(pattern).MatchString(text) {
		t.Errorf("%s: %q does not match %s", what, text, pattern)
	}
}
