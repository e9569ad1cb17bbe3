//go:build !unix

package store

import "os"

// stateOf returns the state of an open file.
func stateOf(f *os.File) (fileState, error) {
	info, err := f.Stat()
	if err != nil {
		return fileState{}, err
	}
	return fileState{size: info.Size(), modified: info.ModTime().UnixNano(), mode: uint64(info.Mode())}, nil
}

// openUnwaiting opens a file that was regular a moment ago. Names of files stand for no pipes here.
func openUnwaiting(path string) (*os.File, error) { return os.Open(path) }
