package wire

import (
	"github.com/geniemq/geniemq/internal/msgpack"
	"github.com/geniemq/geniemq/wire/value"
)

// kind is the type of the next token of a message, in either codec.
type kind = msgpack.Kind

const (
	noKind     = msgpack.None // nothing is there, or it cannot be read: the next read says why
	nullKind   = msgpack.Null
	boolKind   = msgpack.Bool
	numberKind = msgpack.Number
	stringKind = msgpack.String
	binaryKind = msgpack.Binary
	arrayKind  = msgpack.Array
	objectKind = msgpack.Map
)

// reader walks over the tokens of a message in one of the codecs, so that one decoder serves both.
//
// Containers are walked with enter, more and leave. Inside an object names and values alternate, so that each member
// is two reads. A read that fails leaves the reader where it was, or has failed for good: failed then returns why,
// every later read fails too, and the message as a whole is refused. A method that finds another type than it is
// asked for reports that without failing: the caller may skip the value and go on.
//
// Strings alias one private copy of the body, which they keep alive. Readers check depth, and nothing else of Limits.
type reader interface {
	peek() kind
	enter() *Error // into an array or object
	more() bool    // is there another item in the container? false at its end and after a failure
	leave()        // the container, after its last item
	str() (string, *Error)
	number() (float64, *Error)
	// digits are those of the number that was read last, where it is written as an integer of exactBelow or more, which a float64 may only be near; else there are none.
	digits() string
	// integer returns the decimal digits of a number that is written as an integer, of any size.
	integer() (string, *Error)
	boolean() (bool, *Error)
	binary() (string, *Error)
	// packed is binary in MessagePack, and base64 in a string of JSON.
	packed() (string, *Error)
	// exactly adds a number as it is written, and extension what MessagePack has no type for.
	exactly(*value.Builder) *Error
	extension(*value.Builder) *Error
	// floats appends an array of numbers, or binary of little-endian float32, but at most limit of them: the
	// caller takes a longer result for an excess. Elements are rounded to float32.
	floats(dst []float32, limit int) ([]float32, *Error)
	// json appends the next value as JSON.
	json(dst []byte) ([]byte, *Error)
	skipScalar()  // a name, or a value that is no container
	depth() int   // how many containers are open
	atName() bool // is the next item a member's name?
	// offset is where the next value begins, and again reads once more what is between that and here: one value.
	offset() int
	again(offset int) reader
	finish() // fails unless the message ends here
	failed() *Error
}

// expected says what was found instead of what a field takes.
func expected(want string, got kind) *Error {
	return badRequest("must be %s, not %s", want, got)
}

// open enters the next value, which must be of a kind.
func open(r reader, k kind, what string) *Error {
	got := r.peek()
	if got == noKind {
		r.skipScalar() // fails with the reason
		if failed := r.failed(); failed != nil {
			return failed
		}
	}
	if got != k {
		return expected(what, got)
	}
	return r.enter()
}

// closed leaves what was opened, after its last item.
func closed(r reader) *Error {
	if failed := r.failed(); failed != nil {
		return failed
	}
	r.leave()
	return r.failed()
}

// skip reads over one item: a name or a whole value. It steps through what it skips, because that too must be valid
// and within the depth limit.
func skip(r reader) {
	base := r.depth()
	switch r.peek() {
	case arrayKind, objectKind:
		r.enter()
		skipTo(r, base)
	default:
		r.skipScalar()
	}
}

// skipTo leaves containers, skipping what is left in them, until only depth are open.
func skipTo(r reader, depth int) {
	for r.failed() == nil && r.depth() > depth {
		switch {
		case !r.more():
			r.leave()
		case r.peek() == arrayKind || r.peek() == objectKind:
			r.enter()
		default:
			r.skipScalar()
		}
	}
}
