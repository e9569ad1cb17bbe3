package walkthroughs

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/internal/testkit/program"
	"github.com/geniemq/geniemq/internal/testkit/real"
)

var update = flag.Bool("update", false, "write what the commands print into the pages")

var pages = filepath.Join("..", "..", "docs", "walkthroughs")

// Each page is done as it is written, in a folder of its own in which data is the real data and orders.parquet the file beside the pages: every line that it
// shows under a command appears in what the command writes to a terminal, in that order. "..." is anything, within a line or as a line.
func TestWalkthroughs(t *testing.T) {
	data := filepath.Dir(filepath.Dir(real.File(t, "adult/adult.data.gz")))
	all, err := filepath.Glob(filepath.Join(pages, "*.md"))
	if err != nil || len(all) < 11 {
		t.Fatalf("%d pages: %v", len(all), err)
	}
	bin := filepath.Dir(program.Path(t))
	for _, page := range all {
		if filepath.Base(page) == "README.md" {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			f := newFolder(t, bin, data)
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			done := f.walk(string(text))
			if *update && done != string(text) {
				if err := os.WriteFile(page, []byte(done), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestMain(m *testing.M) {
	os.Exit(program.Main(m))
}

// folder is where a page is walked through, with a NATS server for it.
type folder struct {
	t    *testing.T
	dir  string
	nats string
	env  []string
}

func newFolder(t *testing.T, bin, data string) *folder {
	f := &folder{t: t, dir: t.TempDir(), nats: testkit.StartBroker(t).URL()}
	if err := os.Symlink(data, filepath.Join(f.dir, "data")); err != nil {
		t.Fatal(err)
	}
	orders, err := filepath.Abs(filepath.Join(pages, "orders.parquet"))
	if err == nil {
		err = os.Symlink(orders, filepath.Join(f.dir, "orders.parquet"))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range os.Environ() { // settings of whoever runs the test are none of the walkthrough
		if !strings.HasPrefix(v, "GENIEMQ_") {
			f.env = append(f.env, v)
		}
	}
	// The server is the test's own, since the usual port may be taken.
	f.env = append(f.env, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "GENIEMQ_NATS="+f.nats, "GENIEMQ_ADMIN=off",
		"NO_COLOR=1", "TERM=xterm", "LC_ALL=C.UTF-8", "XDG_DATA_HOME="+filepath.Join(f.dir, ".data"))
	return f
}

// walk does the commands of a page, and returns the page with what they wrote.
func (f *folder) walk(page string) string {
	var out strings.Builder
	inside, command := false, ""
	var shown []string
	finish := func() {
		if command == "" {
			return
		}
		written := f.do(command)
		if *update {
			shown = short(written)
		} else if line, ok := follows(written, shown); !ok {
			f.t.Errorf("$ %s\nthe page shows, and the command does not write (go test ./tests/walkthroughs -update corrects the page):\n%s\nbut:\n%s",
				command, line, strings.Join(written, "\n"))
		}
		for _, line := range shown {
			out.WriteString(line + "\n")
		}
		command, shown = "", nil
	}
	for line := range strings.Lines(page) {
		text := strings.TrimSuffix(line, "\n")
		next, isCommand := strings.CutPrefix(text, "$ ")
		switch {
		case !inside:
			inside = text == "```console"
		case text == "```":
			finish()
			inside = false
		case isCommand:
			finish()
			command = next
		default:
			shown = append(shown, text)
			continue
		}
		out.WriteString(line)
	}
	return out.String()
}

// do runs a command and returns the lines that it wrote. One that ends in & goes on until the end of the test.
func (f *folder) do(command string) []string {
	f.t.Helper()
	if background, ok := strings.CutSuffix(command, " &"); ok {
		return f.serve(background)
	}
	return f.lines(onTerminal(f.t, f.shell(command)))
}

func (f *folder) shell(command string) *exec.Cmd {
	cmd := exec.CommandContext(f.t.Context(), "bash", "-c", command)
	cmd.Dir, cmd.Env = f.dir, f.env
	return cmd
}

// serve starts a worker and waits until it says that it serves.
func (f *folder) serve(command string) []string {
	f.t.Helper()
	said := filepath.Join(f.t.TempDir(), "said")
	cmd := f.shell("exec " + command + " > " + said + " 2>&1")
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	var text []byte
	testkit.Eventually(f.t, func() (err error) {
		if text, err = os.ReadFile(said); err == nil && !strings.Contains(string(text), "\nNATS ") {
			err = fmt.Errorf("%s does not serve:\n%s", command, text)
		}
		return err
	})
	var lines []string
	for _, line := range f.lines(string(text)) {
		if strings.HasPrefix(line, "index ") { // the rest is the log, and places
			lines = append(lines, line)
		}
	}
	return lines
}

var (
	controls = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")
	// What runs need not have in common: times, sizes, versions, what a planner took for the cheapest way, and how many cores looked.
	varies = regexp.MustCompile(`\b[0-9]+(\.[0-9]+)? ?(ns|µs|ms|s|B|KiB|MiB)\b|\b[0-9a-f]{16}\b|\bby (scan|ngram|tree|lists|graph)\b|\b[0-9]+ postings counted.*`)
)

// lines is what a person sees in the end: lines of progress that were written over are gone.
func (f *folder) lines(written string) []string {
	var lines []string
	for line := range strings.Lines(written) {
		line = strings.TrimRight(controls.ReplaceAllString(line, ""), "\r\n")
		line = strings.TrimRight(line[strings.LastIndexByte(line, '\r')+1:], " ")
		line = strings.ReplaceAll(strings.ReplaceAll(line, f.nats, "nats://127.0.0.1:4222"), f.dir, "/home/you")
		lines = append(lines, varies.ReplaceAllString(line, "..."))
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// short leaves out the middle of what is long.
func short(lines []string) []string {
	const head, tail = 30, 6
	if len(lines) <= head+tail {
		return lines
	}
	return append(append(append([]string{}, lines[:head]...), "..."), lines[len(lines)-tail:]...)
}

// follows says whether what is shown appears in what was written, in order, and else the first line that does not. A line that is shown and written
// next to each other on the page need not be so in the output only if "..." is between them.
func follows(written, shown []string) (missing string, ok bool) {
	skipping := false
	for _, want := range shown {
		if want == "..." {
			skipping = true
			continue
		}
		pattern := regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(want), regexp.QuoteMeta("..."), ".*") + "$")
		for skipping && len(written) > 0 && !pattern.MatchString(written[0]) {
			written = written[1:]
		}
		if len(written) == 0 || !pattern.MatchString(written[0]) {
			return want, false
		}
		written, skipping = written[1:], false
	}
	if len(written) > 0 && !skipping {
		return "(the end; more was written: " + written[0] + ")", false
	}
	return "", true
}

// What a page shows is compared strictly: a line that is not written, one that is left out, and more at the end are all found.
func TestFollows(t *testing.T) {
	written := []string{"a", "b 12", "c", "d"}
	for _, test := range []struct {
		shown string
		ok    bool
	}{
		{"a|b 12|c|d", true}, {"a|b ...|c|d", true}, {"a|...|d", true}, {"...", true}, {"a|...", true},
		{"a|c|d", false}, {"a|b 12|c", false}, {"a|...|e", false}, {"...|c", false}, {"b 12|c|d", false}, {"a|b 13|...", false},
	} {
		if line, ok := follows(written, strings.Split(test.shown, "|")); ok != test.ok {
			t.Errorf("%s: %v, %q", test.shown, ok, line)
		}
	}
}
