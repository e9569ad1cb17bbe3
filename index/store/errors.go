package store

import (
	"errors"
	"fmt"
)

// ErrNotIndex is wrapped by the error of Open for a file that is no geniemq index at all.
var ErrNotIndex = errors.New("not a geniemq index")

// CorruptError reports a file that is no longer, or never was, what a Builder writes.
type CorruptError struct {
	Reason string
}

func (e *CorruptError) Error() string {
	return "index is damaged: " + e.Reason + "; build it again or restore a copy"
}

func Corrupt(format string, args ...any) error {
	return &CorruptError{Reason: fmt.Sprintf(format, args...)}
}

// UnsupportedError reports a sound file that needs a newer geniemq.
type UnsupportedError struct {
	Needs string
}

func (e *UnsupportedError) Error() string {
	return "index needs " + e.Needs + "; open it with a newer geniemq or build it again"
}

func Unsupported(format string, args ...any) error {
	return &UnsupportedError{Needs: fmt.Sprintf(format, args...)}
}
