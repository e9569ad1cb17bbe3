package tests

import (
	"bufio"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/internal/testkit/program"
	"github.com/geniemq/geniemq/internal/testkit/raced"
)

// roleVariable makes the test binary a nats-server or a worker, so that tests have one as a process of its own.
const roleVariable = "GENIEMQ_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "nats-server":
		runServer()
		return
	case "mortal":
		runMortal()
		return
	}
	// Most tests wait for processes most of the time: more of them at once than there are cores.
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		parallel.Value.Set(strconv.Itoa(max(4, runtime.GOMAXPROCS(0))))
	}
	os.Exit(program.Main(m))
}

// runServer does what nats-server's own main does.
func runServer() {
	fs := flag.NewFlagSet("nats-server", flag.ExitOnError)
	opts, err := server.ConfigureOptions(fs, os.Args[1:], func() {}, func() {}, func() {})
	if err != nil {
		server.PrintAndDie(err.Error())
	}
	s, err := server.NewServer(opts)
	if err != nil {
		server.PrintAndDie(err.Error())
	}
	s.ConfigureLogger()
	if err := server.Run(s); err != nil {
		server.PrintAndDie(err.Error())
	}
	s.WaitForShutdown()
}

// external is a nats-server in a process of its own.
type external struct {
	t         testing.TB
	url       string
	port      int
	dir, conf string
	cmd       *exec.Cmd
}

// startServer starts a nats-server with JetStream and a max_payload as geniemq recommends, and what is added to its
// configuration.
func startServer(t testing.TB, more ...string) *external {
	t.Helper()
	e := &external{t: t, port: freePort(t), dir: t.TempDir()}
	e.url = "nats://127.0.0.1:" + strconv.Itoa(e.port)
	e.conf = filepath.Join(e.dir, "nats.conf")
	// What streams reserve, and tests do not fill, is not bound to what the machine's disk has free just then.
	conf := fmt.Sprintf("listen: 127.0.0.1:%d\nmax_payload: 8454144\njetstream { store_dir: %q, max_file_store: 1TB }\n", e.port, filepath.Join(e.dir, "js")) + strings.Join(more, "\n")
	if err := os.WriteFile(e.conf, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	e.start()
	t.Cleanup(e.kill)
	return e
}

func (e *external) start() {
	e.t.Helper()
	e.cmd = exec.Command(os.Args[0], "-c", e.conf)
	e.cmd.Env = append(os.Environ(), roleVariable+"=nats-server")
	if err := e.cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	testkit.Eventually(e.t, func() error {
		conn, err := net.Dial("tcp", strings.TrimPrefix(e.url, "nats://"))
		if err == nil {
			conn.Close()
		}
		return err
	})
}

func (e *external) kill() {
	e.cmd.Process.Kill()
	e.cmd.Wait()
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// process is a running geniemq command.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	stderr *output
	done   chan struct{} // closed when it has ended
}

// run starts the command.
func run(t testing.TB, args ...string) *process {
	t.Helper()
	return runWith(t, nil, args...)
}

// runWith starts the command with additions to the environment. What it prints on stdout counts as said too.
func runWith(t testing.TB, env []string, args ...string) *process {
	t.Helper()
	p := prepare(t, env, args...)
	p.start()
	return p
}

// ofProcesses skips a test whose workers are processes of their own under the race detector, which sees nothing of them.
func ofProcesses(t testing.TB) {
	t.Helper()
	raced.Skip(t, "the worker is a process of its own")
}

// prepare makes a command that start starts.
func prepare(t testing.TB, env []string, args ...string) *process {
	t.Helper()
	ofProcesses(t)
	p := &process{t: t, cmd: exec.Command(program.Path(t), args...), stderr: &output{}, done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	return p
}

// runCommand starts a command of another make.
func runCommand(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, stderr: &output{}, done: make(chan struct{})}
	p.start()
	return p
}

func (p *process) start() {
	p.t.Helper()
	pipe, err := p.cmd.StderrPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	p.cmd.Stdout = p.cmd.Stderr
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		p.stderr.read(pipe)
		p.cmd.Wait()
	}()
	p.t.Cleanup(func() {
		p.cmd.Process.Kill()
		<-p.done
	})
}

// signal sends a signal; the process may have ended.
func (p *process) signal(s syscall.Signal) { p.cmd.Process.Signal(s) }

// running says whether the process has not ended.
func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// wait returns the exit code when the process has ended.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		p.t.Fatalf("the command does not end; it said:\n%s", p.stderr)
		return -1
	}
}

// says waits for a line on stderr that begins with a word, and returns what follows it.
func (p *process) says(word string) string {
	p.t.Helper()
	var rest string
	testkit.Eventually(p.t, func() error {
		var ok bool
		if rest, ok = p.stderr.find(word); ok {
			return nil
		}
		select {
		case <-p.done:
			p.t.Fatalf("the command has ended and said:\n%s", p.stderr)
		default:
		}
		return fmt.Errorf("the command has not said %q but:\n%s", word, p.stderr)
	})
	return rest
}

// output collects lines while they are read.
type output struct {
	mu   sync.Mutex
	text []string
}

func (o *output) read(from interface{ Read([]byte) (int, error) }) {
	scanner := bufio.NewScanner(from)
	for scanner.Scan() {
		o.mu.Lock()
		o.text = append(o.text, scanner.Text())
		o.mu.Unlock()
	}
}

// Write takes lines, each in one call, as loggers write them.
func (o *output) Write(line []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, strings.TrimSpace(string(line)))
	return len(line), nil
}

func (o *output) find(word string) (string, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, line := range o.text {
		if rest, ok := strings.CutPrefix(line, word); ok {
			return strings.TrimSpace(rest), true
		}
	}
	return "", false
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.text, "\n")
}
