package match

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/geniemq/geniemq/internal/lock"
)

// folderPattern is that of folders for what comes and goes. Each is locked by the process that has it. Versions before 2026-11-23 lock none: theirs have another name.
const folderPattern = "geniemq-pairs-*"

// folder makes a folder for what comes and goes, and removes those of runs that were killed: a copy of the index of each would stay else.
func folder() (path string, remove func() error, err error) {
	if lock.Works {
		others, _ := filepath.Glob(filepath.Join(os.TempDir(), folderPattern)) // the pattern is no bad one
		for _, other := range others {
			sweep(other)
		}
	}
	for {
		if path, err = os.MkdirTemp("", folderPattern); err != nil {
			return "", nil, err
		}
		file, err := os.Open(path)
		if err == nil {
			err = lock.File(file)
		}
		if err == nil {
			_, err = os.Stat(path)
		}
		switch {
		case err == nil:
			return path, func() error { return errors.Join(os.RemoveAll(path), file.Close()) }, nil
		case errors.Is(err, lock.ErrHeld), errors.Is(err, os.ErrNotExist): // another run was faster, and took it for one that was left
			file.Close()
		default:
			return "", nil, errors.Join(err, os.RemoveAll(path))
		}
	}
}

// sweep removes a folder that no process has. Whatever prevents that is no concern of this run.
func sweep(path string) {
	file, err := os.Open(path)
	if err != nil {
		return
	}
	defer file.Close()
	if lock.File(file) == nil {
		_ = os.RemoveAll(path)
	}
}
