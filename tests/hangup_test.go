package tests

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit"
)

// SIGHUP does not end a worker that has no terminal, nor the demo: they say what they do instead, go on answering, and end with SIGTERM as
// ever. With files that are as they were it changes nothing.
func TestHangupEndsNothing(t *testing.T) {
	ofProcesses(t)
	t.Parallel()
	index := buildFile(t, t.TempDir(), "people.csv", peopleSchema, peopleData)
	for _, c := range []struct {
		name  string
		args  []string
		until string // what a line begins with that says where NATS is
		ask   string
		says  string // on SIGHUP
	}{
		{"serve", []string{"serve", "--index", index, "--admin", "off", "--nats-listen", "127.0.0.1:0", "--data-dir", t.TempDir()}, "NATS", "people", "an index's file is the one that is served"},
		{"demo", []string{"demo", "--admin", "off"}, "Still running. NATS listens on", "elements", "SIGHUP is ignored"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := run(t, c.args...)
			url := p.says(c.until)
			for n := 1; n <= 2; n++ {
				p.signal(syscall.SIGHUP)
				testkit.Eventually(t, func() error {
					if got := strings.Count(p.stderr.String(), c.says); got != n {
						return fmt.Errorf("said %d times %q:\n%s", got, c.says, p.stderr)
					}
					return nil
				})
				if out, said, code := command(t, "query", "--nats", url, "--index", c.ask, `{"row":{"age":30,"state":"gas"}}`); code != 0 || len(out) == 0 {
					t.Errorf("after SIGHUP a query ends with %d: %s", code, said)
				}
			}
			if strings.Contains(p.stderr.String(), "another index answers") {
				t.Errorf("something was swapped:\n%s", p.stderr)
			}
			p.signal(syscall.SIGTERM)
			if code := p.wait(); code != 0 {
				t.Errorf("exit code %d:\n%s", code, p.stderr)
			}
		})
	}
}
