//go:build unix

package store

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// stateOf returns the state of an open file.
func stateOf(f *os.File) (fileState, error) {
	var s unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &s); err != nil {
		return fileState{}, err
	}
	return fileState{
		size: s.Size, modified: s.Mtim.Nano(), changed: s.Ctim.Nano(),
		links: uint64(s.Nlink), mode: uint64(s.Mode), owner: uint64(s.Uid)<<32 | uint64(s.Gid),
	}, nil
}

// openUnwaiting opens a file that was regular a moment ago, and does not wait where it is a named pipe by now. A regular file makes an open fail that does
// not wait only while another process, such as a file server, has a lease on it, which it gives up when it is asked: that is waited for, as in every open.
func openUnwaiting(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return os.Open(path)
	}
	return f, err
}
