package page

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// worker is a geniemq process that serves two indexes, with a server of its own.
type worker struct {
	admin string // the address of its page
	next  string // a file with a newer version of people
	nc    *nats.Conn
}

const schema = `name: %s
kind: rows
columns:
  - {name: age, type: number, buckets: 1024, store: true}
  - {name: city, type: category, store: true}
`

// startWorker builds geniemq and two indexes, and serves them until the end of the test.
func startWorker(t *testing.T) *worker {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "geniemq")
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = filepath.Join("..", "..")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
	}
	run("go", "build", "-o", program, "./cmd/geniemq")
	build := func(file, index string, rows int) string {
		t.Helper()
		var data strings.Builder
		data.WriteString("age,city\n")
		for i := range rows {
			fmt.Fprintf(&data, "%d,%s\n", 18+i*7%60, []string{"Oslo", "Rome", "Bern", "Kyiv"}[i%4])
		}
		input, spec, output := filepath.Join(dir, file+".csv"), filepath.Join(dir, file+".yaml"), filepath.Join(dir, file+".gmq")
		for path, text := range map[string]string{input: data.String(), spec: fmt.Sprintf(schema, index)} {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		run(program, "build", "--schema", spec, "--input", input, "--output", output)
		return output
	}
	people, towns := build("people", "people", 2000), build("towns", "towns", 500)
	w := &worker{next: build("newer", "people", 3000)}
	cmd := exec.Command(program, "serve", "--index", "people="+people, "--index", "towns="+towns, "--nats-listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "data"), "--log-level", "warn")
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var reading sync.WaitGroup
	t.Cleanup(func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		reading.Wait()
		if err := cmd.Wait(); err != nil {
			t.Errorf("geniemq ends with %v", err)
		}
	})
	var server string
	for w.admin == "" && lines.Scan() {
		switch words := strings.Fields(lines.Text()); {
		case len(words) == 2 && words[0] == "NATS":
			server = words[1]
		case len(words) == 2 && words[0] == "admin":
			w.admin = words[1]
		}
	}
	reading.Go(func() {
		for lines.Scan() { // the log of warnings
			t.Log(lines.Text())
		}
	})
	if w.nc, err = nats.Connect(server); err != nil {
		t.Fatalf("geniemq says that it serves at %q: %v", server, err)
	}
	t.Cleanup(w.nc.Close)
	return w
}

// load asks both indexes, directly and through the stream, until the end of the test.
func (w *worker) load(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for _, index := range []string{"people", "towns"} {
		group.Go(func() {
			for rng := rand.New(rand.NewPCG(1, 1)); ctx.Err() == nil; {
				body := fmt.Appendf(nil, `{"k":5,"row":{"age":%d,"city":"Oslo"}}`, 18+rng.IntN(60))
				err := w.nc.Publish("genie.query."+index, body)
				if err == nil {
					_, err = w.nc.RequestWithContext(ctx, "genie.search."+index, body)
				}
				if err != nil && ctx.Err() == nil {
					t.Errorf("asking %s: %v", index, err)
					return
				}
				select {
				case <-ctx.Done():
				case <-time.After(time.Duration(2+rng.IntN(8)) * time.Millisecond):
				}
			}
		})
	}
	t.Cleanup(func() { stop(); group.Wait() })
}
