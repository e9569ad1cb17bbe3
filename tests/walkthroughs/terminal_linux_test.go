package walkthroughs

import (
	"errors"
	"io"
	"os/exec"
	"syscall"
	"testing"

	"github.com/creack/pty"
)

// columns is how wide the terminal of the walkthroughs is.
const columns = 120

// onTerminal runs a command whose outputs are a pseudo-terminal, and returns what it wrote there. A command that fails did what it did: pages show
// errors too.
func onTerminal(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	master, terminal, err := pty.Open()
	if err != nil {
		t.Fatalf("a pseudo-terminal is needed: %v", err)
	}
	defer master.Close()
	cmd.Stdout, cmd.Stderr = terminal, terminal
	if err = pty.Setsize(master, &pty.Winsize{Rows: 50, Cols: columns}); err == nil {
		err = cmd.Start()
	}
	terminal.Close()
	if err != nil {
		t.Fatal(err)
	}
	written, err := io.ReadAll(master) // until nobody has the terminal, which is an error on Linux
	if err != nil && !errors.Is(err, syscall.EIO) {
		t.Errorf("reading the terminal: %v", err)
	}
	cmd.Wait()
	return string(written)
}
