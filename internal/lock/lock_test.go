package lock

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestFile: who comes second is told so, until the first has closed the file. That the lock ends with its process is tested where it is used.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	open := func() *os.File {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	first, second := open(), open()
	defer second.Close()
	if err := File(first); err != nil {
		t.Fatal(err)
	}
	if err := File(second); !errors.Is(err, ErrHeld) {
		t.Errorf("the second: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := File(second); err != nil {
		t.Errorf("after the first: %v", err)
	}
}
