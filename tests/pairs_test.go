package tests

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/geniemq/geniemq/internal/testkit/program"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

const titlesSchema = `
name: titles
key: id
columns:
  - {name: title, type: text, stop_words: none, idf: true, store: true}
  - {name: price, type: number, store: true}
`

// titled draws rows of a few words, many of them nearly alike.
func titled(r *rand.Rand, rows int) string {
	words := strings.Fields("red blue green canvas leather shoes boots kettle copper garden hose long short small large old new piano chair table lamp")
	var b strings.Builder
	b.WriteString("id,title,price\n")
	var title []string
	for i := range rows {
		if i%3 == 0 {
			title = nil
			for range 4 + r.IntN(4) {
				title = append(title, words[r.IntN(len(words))])
			}
		} else {
			title[r.IntN(len(title))] = words[r.IntN(len(words))]
		}
		fmt.Fprintf(&b, "k%d,%s,%d\n", i, strings.Join(title, " "), 10+r.IntN(90))
	}
	return b.String()
}

// pairsWorld is where pairs are looked for: a catalogue, the index of it, and a file that is like it.
type pairsWorld struct {
	t                          testing.TB
	dir, temporary             string
	index, catalogue, asked    string
	schema                     string
	output, journal, unwritten string
}

func newPairsWorld(t testing.TB, r *rand.Rand, rows int, output string) *pairsWorld {
	w := &pairsWorld{t: t, dir: t.TempDir(), temporary: t.TempDir()}
	text := titled(r, rows)
	w.catalogue = writeFile(t, w.dir, "titles.csv", []byte(text))
	w.asked = writeFile(t, w.dir, "asked.csv", []byte(titled(r, rows)))
	w.schema = writeFile(t, w.dir, "titles.yaml", []byte(titlesSchema))
	w.index = buildFile(t, w.dir, "titles.csv", titlesSchema, text)
	w.into(filepath.Join(w.dir, output))
	return w
}

// into says where the output goes.
func (w *pairsWorld) into(output string) {
	w.output, w.journal, w.unwritten = output, output+".part", output+".new"
}

// match are the arguments of a run that serves the index itself.
func (w *pairsWorld) match(more ...string) []string {
	return append([]string{"match", "--index", "titles=" + w.index, "--input", w.asked, "--schema", w.schema, "--output", w.output}, more...)
}

func (w *pairsWorld) run(args ...string) *process {
	return runWith(w.t, []string{"TMPDIR=" + w.temporary}, args...)
}

// undisturbed runs to the end, takes the output away and returns it, and how large the journal became.
func (w *pairsWorld) undisturbed(args ...string) (output []byte, journal int64) {
	w.t.Helper()
	p := w.run(args...)
	w.until(p, func() bool {
		journal = max(journal, size(w.journal))
		return false
	})
	return w.taken(p), journal
}

// taken is the output of a run that succeeds, and that leaves nothing else. It is removed.
func (w *pairsWorld) taken(p *process) []byte {
	w.t.Helper()
	if code := p.wait(); code != 0 {
		w.t.Fatalf("exit code %d:\n%s", code, p.stderr)
	}
	text, err := os.ReadFile(w.output)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.Remove(w.output); err != nil {
		w.t.Fatal(err)
	}
	w.nothingLeft()
	return text
}

func (w *pairsWorld) nothingLeft() {
	w.t.Helper()
	for _, path := range []string{w.output, w.journal, w.unwritten} {
		if size(path) >= 0 {
			w.t.Errorf("%s is there", path)
		}
	}
	if left, err := os.ReadDir(w.temporary); err != nil || len(left) > 0 {
		w.t.Errorf("%v are left: %v", left, err)
	}
}

// until waits for something that a running command does. It is false if the command has ended.
func (w *pairsWorld) until(p *process, happened func() bool) bool {
	for p.running() {
		if happened() {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

// fails says that a run ends with an error, and what it says.
func (w *pairsWorld) fails(p *process, says ...string) {
	w.t.Helper()
	code := p.wait()
	for _, text := range says {
		if code == 0 || !strings.Contains(p.stderr.String(), text) {
			w.t.Fatalf("exit code %d; it should say %q:\n%s", code, text, p.stderr)
		}
	}
}

// size of a file, -1 where there is none.
func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return -1
	}
	return info.Size()
}

// Killed wherever it is, again and again, a run of match or dedupe that is repeated until it ends makes the file that an undisturbed one makes, to the byte, and
// leaves nothing else behind.
func TestPairsKilled(t *testing.T) {
	ofProcesses(t)
	r := seeded.Rand(t)
	for _, c := range []struct {
		output string
		remote bool
		args   []string
	}{
		{"pairs.csv", false, []string{"match", "--one-to-one"}},
		{"pairs.jsonl.gz", true, []string{"match", "--unmatched", "--min", "0.6"}},
		{"same.csv.zst", false, []string{"dedupe"}},
		{"clusters.jsonl", true, []string{"dedupe", "--clusters", "--min", "0.8"}},
	} {
		t.Run(c.output, func(t *testing.T) {
			w := newPairsWorld(t, r, 1200, c.output)
			args := w.match(c.args[1:]...)
			if c.args[0] == "dedupe" {
				args = append([]string{"dedupe", w.catalogue, "--schema", w.schema, "--output", w.output}, c.args[1:]...)
			}
			if c.remote {
				_, url, _ := serveCommand(t, "--engine", "cpu", "--index", "titles="+w.index)
				args = append(args, "--nats", url, "--index", "titles") // of a flag that is given twice the last counts
			}
			begun := time.Now()
			want, journal := w.undisturbed(args...)
			took := time.Since(begun)
			kills, resumed := 0, 0
			for attempt := 0; attempt < 8 || kills == 0 || resumed == 0; attempt++ {
				if attempt == 50 {
					t.Fatalf("%d runs were killed, and %d went on", kills, resumed)
				}
				// In the middle of the journal as a rule; else at any time, or while the output is written.
				enough, wait := r.Int64N(journal), time.Duration(r.Int64N(int64(took)))
				kind := r.IntN(4)
				began := time.Now()
				p := w.run(args...)
				killed := w.until(p, func() bool {
					switch kind {
					case 0:
						return time.Since(began) >= wait
					case 1:
						return size(w.unwritten) >= 0
					}
					return size(w.journal) >= enough
				})
				if killed {
					p.signal(syscall.SIGKILL)
				}
				if p.wait(); p.cmd.ProcessState.Success() {
					if got := w.taken(p); !bytes.Equal(got, want) {
						t.Fatalf("another file:\n%s", p.stderr)
					}
				} else if !killed {
					t.Fatalf("it fails by itself:\n%s", p.stderr)
				} else {
					kills++
				}
				if _, ok := p.stderr.find("going on after "); ok {
					resumed++
				}
			}
			if got := w.taken(w.run(args...)); !bytes.Equal(got, want) {
				t.Fatal("another file")
			}
			t.Logf("%d kills, %d runs went on", kills, resumed)
		})
	}
}

// The disk is full, in the middle of what was found and in the middle of the output: the run says so and how to go on, and does when there is room.
func TestPairsDiskFull(t *testing.T) {
	ofProcesses(t)
	r := seeded.Rand(t)
	w := newPairsWorld(t, r, 1200, "pairs.csv")
	want, journal := w.undisturbed(w.match()...)
	disk := smallDisk(t, "16m")
	w.into(filepath.Join(disk, "pairs.csv"))
	for _, room := range []int64{r.Int64N(journal/2) + 8<<10, journal + int64(len(want))/2} {
		free := fill(t, disk)
		ballast := filepath.Join(disk, "ballast")
		if err := os.Truncate(ballast, size(ballast)-room); err != nil {
			t.Fatal(err)
		}
		w.fails(w.run(w.match()...), "no space left on device", "the same command goes on")
		if size(w.output) >= 0 || size(w.unwritten) >= 0 || size(w.journal) <= 0 {
			t.Errorf("with room for %d bytes the output has %d, what was written of it %d, the journal %d", room, size(w.output), size(w.unwritten), size(w.journal))
		}
		free()
		p := w.run(w.match()...)
		if got := w.taken(p); !bytes.Equal(got, want) {
			t.Errorf("another file:\n%s", p.stderr)
		}
		if _, ok := p.stderr.find("going on after "); !ok {
			t.Errorf("it began anew:\n%s", p.stderr)
		}
	}
}

// stopped starts a run and stops it when some rows are done.
func (w *pairsWorld) stopped(args ...string) *process {
	w.t.Helper()
	for range 20 {
		p := w.run(args...)
		if w.until(p, func() bool { return size(w.journal) > 2000 }) {
			if p.signal(syscall.SIGSTOP); p.running() {
				return p
			}
		}
		w.taken(p) // it was faster
	}
	w.t.Fatal("no run can be stopped before its end")
	return nil
}

// A file that was changed between two attempts, or while it was read, is told: what was found of both is never mixed.
func TestPairsInputChanged(t *testing.T) {
	ofProcesses(t)
	r := seeded.Rand(t)
	w := newPairsWorld(t, r, 1200, "pairs.csv")
	before, err := os.ReadFile(w.asked)
	if err != nil {
		t.Fatal(err)
	}
	// The first rows are the same; one more is there.
	after := append(slices.Clone(before), "k9999,red canvas shoes,30\n"...)
	change := func(text []byte) {
		if err := os.WriteFile(w.asked, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	change(after)
	want, _ := w.undisturbed(w.match()...)
	change(before)
	p := w.stopped(w.match()...)
	p.signal(syscall.SIGKILL)
	p.wait()
	change(after)
	w.fails(w.run(w.match()...), "another input", "--restart")
	if got := w.taken(w.run(w.match("--restart")...)); !bytes.Equal(got, want) {
		t.Error("another file after --restart")
	}
	// Columns that go with others, and files that are read otherwise, are other runs as well.
	change(before)
	args := w.match("--map", "title=title", "--map", "price=price")
	p = w.stopped(args...)
	p.signal(syscall.SIGKILL)
	p.wait()
	w.fails(w.run(w.match("--map", "title=price", "--map", "price=title")...), "--restart")
	w.fails(w.run(append(slices.Clone(args), "--encoding", "latin1")...), "--restart")
	w.taken(w.run(args...))

	p = w.stopped(w.match()...)
	change(after)
	p.signal(syscall.SIGCONT)
	w.fails(p, "was changed while it was read")
	w.nothingLeft()
}

// Of two runs with one output the second is told, whatever it wants, and the first goes on.
func TestPairsTwice(t *testing.T) {
	ofProcesses(t)
	w := newPairsWorld(t, seeded.Rand(t), 1200, "pairs.csv")
	want, _ := w.undisturbed(w.match()...)
	first := w.stopped(w.match()...)
	for _, more := range [][]string{nil, {"--restart"}, {"--k", "1"}} {
		w.fails(w.run(w.match(more...)...), "another run writes "+w.output)
	}
	first.signal(syscall.SIGCONT)
	if got := w.taken(first); !bytes.Equal(got, want) {
		t.Error("the first run makes another file")
	}
}

// A file may be no larger than the system allows: that is an error like others, and what was found is kept.
func TestPairsFileLimit(t *testing.T) {
	ofProcesses(t)
	w := newPairsWorld(t, seeded.Rand(t), 1200, "pairs.csv")
	want, journal := w.undisturbed(w.match()...)
	limited := exec.CommandContext(within(t), "bash", append([]string{"-c", fmt.Sprintf(`ulimit -f %d; exec "$@"`, journal/2/1024), "-", program.Path(t)}, w.match()...)...)
	limited.Env = append(os.Environ(), "TMPDIR="+w.temporary)
	out, err := limited.CombinedOutput()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || !strings.Contains(string(out), "file too large") || !strings.Contains(string(out), "the same command goes on") {
		t.Errorf("%v: %s", err, out)
	}
	if got := w.taken(w.run(w.match()...)); !bytes.Equal(got, want) {
		t.Error("another file")
	}
}

// What cannot be read twice is no input: a pipe would have been emptied before its rows are asked.
func TestPairsOfPipe(t *testing.T) {
	ofProcesses(t)
	w := newPairsWorld(t, seeded.Rand(t), 30, "pairs.csv")
	pipe := filepath.Join(w.dir, "pipe.csv")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skipf("no pipes with names: %v", err)
	}
	w.fails(w.run("match", "--index", "titles="+w.index, "--input", pipe), "no file that can be read twice")
}
