//go:build unix

package store

import (
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
