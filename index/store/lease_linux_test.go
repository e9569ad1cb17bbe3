package store

import (
	"os"
	"os/signal"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A file that somebody has a lease on, as file servers do, is opened when that is given up, as if nobody had had one.
func TestOpenWaitsForALease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.gmq")
	if err := WriteFile(t.Context(), path, 0, []Draft{smallDraft(4)}, nil); err != nil {
		t.Fatal(err)
	}
	holder, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, unix.SIGIO)
	defer signal.Stop(asked)
	if _, err := unix.FcntlInt(holder.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skipf("this file system has no leases: %v", err)
	}
	opened := make(chan error, 1)
	go func() {
		x, err := Open(path, Effort{}, nil, func(*File) error { return nil })
		if err == nil {
			err = x.Close()
		}
		opened <- err
	}()
	select {
	case <-asked:
	case err := <-opened:
		t.Fatalf("opened although there is a lease, or failed: %v", err)
	}
	if _, err := unix.FcntlInt(holder.Fd(), unix.F_SETLEASE, unix.F_UNLCK); err != nil {
		t.Error(err)
	}
	if err := <-opened; err != nil {
		t.Error(err)
	}
}
