//go:build unix

package store

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// What is no regular file is refused, whatever name it has, and nobody waits for the other end of a pipe: without the refusal this test never ends.
func TestOpenRefusesWhatIsNoFile(t *testing.T) {
	folder := t.TempDir()
	pipe, socket, link, file := filepath.Join(folder, "pipe"), filepath.Join(folder, "socket"), filepath.Join(folder, "link"), filepath.Join(folder, "file")
	if err := errors.Join(unix.Mkfifo(pipe, 0o600), os.Symlink(pipe, link)); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for _, path := range []string{pipe, link, socket, "/dev/zero", folder} {
		if _, err := Open(path, Effort{}, nil, func(*File) error { return nil }); !errors.Is(err, ErrNotIndex) {
			t.Errorf("%s: %v, want %v", path, err, ErrNotIndex)
		}
	}
	// A pipe that took a file's place after that was looked at.
	f, err := openUnwaiting(pipe)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openMapped(pipe, f, Effort{}, nil, func(*File) error { return nil }); !errors.Is(err, ErrNotIndex) {
		t.Errorf("a pipe that is open: %v, want %v", err, ErrNotIndex)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	// Links to files are followed.
	if err := errors.Join(WriteFile(t.Context(), file, 0, []Draft{smallDraft(4)}, nil), os.Remove(link), os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	x, err := Open(link, Effort{}, nil, func(*File) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
}
