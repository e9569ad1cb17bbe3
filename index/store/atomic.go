package store

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// writeAtomically makes path hold what write wrote, or leaves it as it was. The temporary file lies in the same
// directory, named .<name>.tmp-<random>; it is removed on an error, and stays only when the process is killed.
func writeAtomically(path string, write func(output) error) (err error) {
	directory, name := filepath.Split(path)
	temporary := filepath.Join(directory, "."+name+".tmp-"+strings.ToLower(rand.Text()[:10]))
	f, err := os.OpenFile(temporary, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	closed, renamed := false, false
	defer func() {
		if !closed {
			err = errors.Join(err, f.Close())
		}
		if !renamed {
			err = errors.Join(err, os.Remove(temporary))
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	closed = true
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	renamed = true
	if err := syncDirectory(filepath.Dir(path)); err != nil {
		return fmt.Errorf("the index is in place but may not survive a power failure: %w", err)
	}
	return nil
}

// syncDirectory makes a rename durable. Windows cannot, and does not need to, sync a directory.
func syncDirectory(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
