package wire

import (
	"errors"
	"fmt"
	"strings"
)

// Code says what went wrong in a word that programs branch on. Codes are errors themselves, so that
// errors.Is(err, wire.Overloaded) works on anything that wraps an [Error].
type Code string

// The codes of version 1.
const (
	// BadRequest: the query or the message is wrong and stays wrong; do not send it again.
	BadRequest Code = "bad_request"
	// UnknownIndex: nobody serves an index of this name.
	UnknownIndex Code = "unknown_index"
	// TooLarge: a limit on size or number was exceeded, by the message or by its answer.
	TooLarge Code = "too_large"
	// DeadlineExceeded: the query's timeout_ms ran out before the engine saw it.
	DeadlineExceeded Code = "deadline_exceeded"
	// Overloaded: direct search has no room now; try again later, or send the query through the stream.
	Overloaded Code = "overloaded"
	// Unsupported: valid, but not by this server: a later protocol version, a reserved field, another kind of index.
	Unsupported Code = "unsupported"
	// ObjectMissing: the body of the query, which was to lie in the object store, is not there. Store it anew, and publish the query again.
	ObjectMissing Code = "object_missing"
	// Internal: the fault is the server's.
	Internal Code = "internal"
)

// Error makes a code usable as the target of errors.Is.
func (c Code) Error() string { return string(c) }

// Error is why a query or a whole message was not answered. The zero value is not a valid error.
type Error struct {
	Code    Code   // for programs
	Message string // for people: what is wrong and what to do; safe to show to the sender
}

// Errorf makes an [Error] with a formatted message.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Unwrap returns the code, for errors.Is.
func (e *Error) Unwrap() error { return e.Code }

// orNil is an error that is nil where there is none.
func (e *Error) orNil() error {
	if e == nil {
		return nil
	}
	return e
}

// AsError is an error as the protocol has it: the *[Error] that it wraps, else Internal with its text.
func AsError(err error) *Error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	return Errorf(Internal, "%v", err)
}

// in puts the place of a fault in front of its message. Places that start with "." or "[" join what contains them:
// "items[3].min: must be ...".
func (e *Error) in(format string, args ...any) *Error {
	sep := ": "
	if strings.HasPrefix(e.Message, ".") || strings.HasPrefix(e.Message, "[") {
		sep = ""
	}
	return &Error{Code: e.Code, Message: fmt.Sprintf(format, args...) + sep + e.Message}
}

func badRequest(format string, args ...any) *Error { return Errorf(BadRequest, format, args...) }
