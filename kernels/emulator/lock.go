package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// lock keeps other builds in the same folder waiting.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("waiting for another build: %w", err), f.Close())
	}
	return func() { f.Close() }, nil
}
