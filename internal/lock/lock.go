// Package lock takes files for one process at a time.
package lock

import (
	"errors"
	"os"
)

// ErrHeld says that another process has the file, or this one by another opening of it.
var ErrHeld = errors.New("it is in use by another process")

// Works says whether this system has such locks. Where it has not, File takes nothing: what another process has must not be guessed from it.
const Works = works

// File takes an open file until it is closed or the process ends, however that ends. It does not wait: where another has it, the error is ErrHeld.
func File(file *os.File) error { return take(file) }
