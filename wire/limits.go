package wire

import (
	"cmp"

	"github.com/geniemq/geniemq/wire/fields"
)

// Bounds of version 1 that are not configurable.
const (
	DefaultK      = 10                  // hits of a query that names no k
	DefaultWithin = 1024                // hits of a query with a radius that names no k
	MaxK          = fields.MaxK         // largest k of a query
	MaxCandidates = MaxK                // largest candidates of a query: engines select no more than that
	MaxWeight     = fields.MaxWeight    // largest weight of a condition
	MaxTimeoutMS  = fields.MaxTimeoutMS // largest timeout_ms, 24 days
)

// Limits bound what a message may hold. They are enforced while the message is read, before memory is taken for
// what exceeds them. The zero value means the defaults.
type Limits struct {
	// Body is the most bytes of a message's body. Default 8 MiB; see [LimitsFor] for what fits the server.
	Body int
	// Queries is the most queries of a message. Default 65,536.
	Queries int
	// Items is the most elements of a query: its conditions plus the values of their "in" lists and of what is
	// in their [Other], or the elements of its vector or set. Default 65,536.
	Items int
	// Depth is how deeply arrays and objects may nest, the message itself being 1. Default 16; queries need 6.
	Depth int
	// String is the most bytes of a string. Default 65,536.
	String int
	// SumK is the most hits that the queries of a message may ask for together. Default 1,048,576.
	SumK int
}

// bodyMargin is left of the server's max_payload, to which headers count, for the headers.
const bodyMargin = 64 << 10

const defaultBody = fields.MaxBody

// LimitsFor returns the default limits with the body that fits a server: min(8 MiB, maxPayload - 64 KiB). A server
// with a max_payload below 128 KiB gets half of it as body.
func LimitsFor(maxPayload int64) Limits {
	body := int64(defaultBody)
	if fit := max(maxPayload-bodyMargin, maxPayload/2); maxPayload > 0 && fit < body {
		body = fit
	}
	l := Limits{Body: int(body)}
	l.EnsureDefaults()
	return l
}

// EnsureDefaults replaces zeros by the defaults.
func (l *Limits) EnsureDefaults() {
	l.Body = cmp.Or(l.Body, defaultBody)
	l.Queries = cmp.Or(l.Queries, fields.MaxQueries)
	l.Items = cmp.Or(l.Items, fields.MaxItems)
	l.Depth = cmp.Or(l.Depth, fields.MaxDepth)
	l.String = cmp.Or(l.String, fields.MaxString)
	l.SumK = cmp.Or(l.SumK, fields.MaxSumK)
}

// CheckBody reports a body that is too large. The error is an *[Error].
func (l Limits) CheckBody(size int) error {
	l.EnsureDefaults()
	return l.checkBody(size).orNil()
}

func (l *Limits) checkBody(n int) *Error {
	if n > l.Body {
		return Errorf(TooLarge, "the body has %d bytes, the limit is %d: send fewer queries per message", n, l.Body)
	}
	return nil
}

func (l *Limits) checkQueries(n int) *Error {
	if n > l.Queries {
		return Errorf(TooLarge, "the message has more than %d queries: split it", l.Queries)
	}
	return nil
}

func (l *Limits) checkSumK(sum int) *Error {
	if sum > l.SumK {
		return Errorf(TooLarge, "the queries of the message ask for more than %d hits together: split it or lower k", l.SumK)
	}
	return nil
}

func (l *Limits) checkItems(n int) *Error {
	if n > l.Items {
		return Errorf(TooLarge, "the query has more than %d items", l.Items)
	}
	return nil
}

func (l *Limits) checkString(n int) *Error {
	if n > l.String {
		return Errorf(TooLarge, "a string of %d bytes, the limit is %d", n, l.String)
	}
	return nil
}

// checkBinary bounds binary by the longest vector.
func (l *Limits) checkBinary(n int) *Error {
	if most := 4 * l.Items; n > most {
		return Errorf(TooLarge, "binary of %d bytes, the limit is %d", n, most)
	}
	return nil
}

func (l *Limits) checkDepth(depth int) *Error {
	if depth > l.Depth {
		return Errorf(TooLarge, "the message nests arrays and objects deeper than %d levels", l.Depth)
	}
	return nil
}
