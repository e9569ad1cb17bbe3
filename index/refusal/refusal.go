// Package refusal is the fault of who asked: a query that an index or an engine does not answer, which its author must mend. It is one
// type for all that looks at a query, of which types of columns know no engines, and engines no columns. Whoever answers
// queries branches on it in one place; any other error is the fault of who should have answered.
package refusal

import "fmt"

// Error is why a query is refused: a bad_request.
type Error struct {
	Reason string // what is wrong and what to write instead, in one line
	// Unsupported says that the query is right, and that it is the index that lacks what it takes.
	Unsupported bool
}

func (e *Error) Error() string { return e.Reason }

// New returns an *Error.
func New(format string, args ...any) error {
	return &Error{Reason: fmt.Sprintf(format, args...)}
}

// Unsupported returns an *Error of a query that is right.
func Unsupported(format string, args ...any) error {
	return &Error{Reason: fmt.Sprintf(format, args...), Unsupported: true}
}
