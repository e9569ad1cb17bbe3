package tests

import (
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"
)

// The terminal on which a worker was started goes away: the worker drains and ends instead of holding its ports for ever,
// unless it was started to outlive the terminal, as nohup does.
func TestTerminalHangsUp(t *testing.T) {
	ofProcesses(t)
	t.Parallel()
	index := buildFile(t, t.TempDir(), "people.csv", peopleSchema, peopleData)
	master, terminal, err := pty.Open()
	if err != nil {
		t.Fatalf("a pseudo-terminal is needed: %v", err)
	}
	defer master.Close()
	if signal.Ignored(syscall.SIGHUP) { // under nohup, which the command would inherit
		handled := make(chan os.Signal, 1)
		signal.Notify(handled, syscall.SIGHUP)
		defer signal.Stop(handled)
	}
	p := prepare(t, nil, "serve", "--index", index, "--admin", "off", "--nats-listen", "127.0.0.1:0", "--data-dir", t.TempDir())
	p.cmd.Stdin = terminal
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	p.start()
	terminal.Close()
	p.says("NATS")
	master.Close()
	if code := p.wait(); code != 0 || !strings.Contains(p.stderr.String(), "stopping: answering what was pulled") {
		t.Errorf("exit code %d:\n%s", code, p.stderr)
	}
}
