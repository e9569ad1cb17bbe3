package walkthroughs

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"unsafe"
)

// columns is how wide the terminal of the walkthroughs is.
const columns = 120

// onTerminal runs a command whose outputs are a pseudo-terminal, and returns what it wrote there. A command that fails did what it did: pages show
// errors too.
func onTerminal(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatalf("a pseudo-terminal is needed: %v", err)
	}
	defer master.Close()
	var unlock, number int32
	size := [4]uint16{50, columns}
	control(t, master, syscall.TIOCSPTLCK, unsafe.Pointer(&unlock))
	control(t, master, syscall.TIOCGPTN, unsafe.Pointer(&number))
	control(t, master, syscall.TIOCSWINSZ, unsafe.Pointer(&size))
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = terminal, terminal
	err = cmd.Start()
	terminal.Close()
	if err != nil {
		t.Fatal(err)
	}
	written, err := io.ReadAll(master) // until nobody has the terminal, which is an error on Linux
	if err != nil && !isGone(err) {
		t.Errorf("reading the terminal: %v", err)
	}
	cmd.Wait()
	return string(written)
}

func control(t *testing.T, file *os.File, request uintptr, argument unsafe.Pointer) {
	t.Helper()
	if _, _, fault := syscall.Syscall(syscall.SYS_IOCTL, file.Fd(), request, uintptr(argument)); fault != 0 {
		t.Fatalf("setting up a pseudo-terminal: %v", fault)
	}
}

func isGone(err error) bool {
	fault, ok := err.(*os.PathError)
	return ok && fault.Err == syscall.EIO
}
