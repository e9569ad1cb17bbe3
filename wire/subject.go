package wire

import (
	"fmt"
	"slices"
	"strings"
)

// DefaultPrefix starts every subject.
const DefaultPrefix = "genie"

// Subjects names the subjects, streams and durables of one deployment, all derived from one prefix, so that several
// can share an account. The zero value has the default prefix.
type Subjects struct{ prefix string }

// NewSubjects checks a prefix: one token of lower-case letters, digits, "-" and "_", at most 32 bytes. Upper case is
// refused because stream names are the prefix in upper case. "" means the default.
func NewSubjects(prefix string) (Subjects, error) {
	if prefix == "" {
		return Subjects{}, nil
	}
	if len(prefix) > 32 || !isToken(prefix) || prefix != strings.ToLower(prefix) {
		return Subjects{}, fmt.Errorf("subject prefix %q: use one token of at most 32 lower-case letters, digits, - and _", clip(prefix))
	}
	return Subjects{prefix: prefix}, nil
}

// Prefix returns the first token of every subject.
func (s Subjects) Prefix() string {
	if s.prefix == "" {
		return DefaultPrefix
	}
	return s.prefix
}

// Query is the subject that queries for an index are published to: genie.query.<index>.
func (s Subjects) Query(index string) string { return s.Prefix() + ".query." + index }

// Queries matches the query subject of every index: genie.query.*. With a token more it is a user's: see [Class].
func (s Subjects) Queries() string { return s.Prefix() + ".query.*" }

// Result is where answers go when the query names no reply subject: genie.result.<index>.
func (s Subjects) Result(index string) string { return s.Prefix() + ".result." + index }

// Reply is a result subject of one requester: genie.result.<index>.<unique>.
func (s Subjects) Reply(index, unique string) string { return s.Result(index) + "." + unique }

// Results matches every result subject: genie.result.>.
func (s Subjects) Results() string { return s.Prefix() + ".result.>" }

// Dead is where messages for an index go that were given up on: genie.dead.<index>.
func (s Subjects) Dead(index string) string { return s.Prefix() + ".dead." + index }

// DeadAll matches every dead letter subject: genie.dead.*.
func (s Subjects) DeadAll() string { return s.Prefix() + ".dead.*" }

// Search is the subject of direct request/reply: genie.search.<index>.
func (s Subjects) Search(index string) string { return s.Prefix() + ".search." + index }

// QueryStream, ResultStream and DeadStream are the names of the streams: GENIE_QUERIES, GENIE_RESULTS, GENIE_DEAD.
func (s Subjects) QueryStream() string  { return strings.ToUpper(s.Prefix()) + "_QUERIES" }
func (s Subjects) ResultStream() string { return strings.ToUpper(s.Prefix()) + "_RESULTS" }
func (s Subjects) DeadStream() string   { return strings.ToUpper(s.Prefix()) + "_DEAD" }

// Durable is the name of the consumer that all workers of an index share: geniemq-<index>.
func (s Subjects) Durable(index string) string { return s.Prefix() + "mq-" + index }

// SuspectBucket is the key-value bucket of the messages that workers run alone: genie-suspects.
func (s Subjects) SuspectBucket() string { return s.Prefix() + "-suspects" }

// MaxIndexName is the most bytes an index name has.
const MaxIndexName = 64

// CheckIndexName reports whether a name can be an index's: 1 to 64 of A-Z, a-z, 0-9, _ and -. It becomes a subject
// token, part of a durable's name and of an endpoint's name, which agree on these. The error is an *[Error].
func CheckIndexName(name string) error {
	if name == "" || len(name) > MaxIndexName || !isToken(name) {
		return badRequest("%q is not an index name: use 1 to %d of A-Z a-z 0-9 _ -", clip(name), MaxIndexName)
	}
	return nil
}

func isToken(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool {
		return !(c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-')
	})
}

// MaxReplySubject is the most bytes of a reply subject.
const MaxReplySubject = 255

// ValidateReplySubject checks a subject that a sender wants its answer on: literal, at most 255 bytes, no empty
// tokens, and matching one of the patterns of the allow-list, in which * and > mean what they mean in NATS. The
// allow-list keeps senders from making the service publish where they may not. The error is an *[Error].
func ValidateReplySubject(subject string, allow []string) error {
	if subject == "" {
		return badRequest("the reply subject is empty")
	}
	if len(subject) > MaxReplySubject {
		return badRequest("the reply subject has %d bytes, the limit is %d", len(subject), MaxReplySubject)
	}
	for i := range len(subject) {
		switch c := subject[i]; {
		case c == '*' || c == '>':
			return badRequest("reply subject %q has a wildcard: it must be literal", clip(subject))
		case c <= ' ' || c == 0x7f:
			return badRequest("reply subject %q has white space or a control character", clip(subject))
		}
	}
	if emptyToken(subject) {
		return badRequest("reply subject %q has an empty token", clip(subject))
	}
	if slices.ContainsFunc(allow, func(pattern string) bool { return MatchSubject(pattern, subject) }) {
		return nil
	}
	return badRequest("reply subject %q is not allowed; allowed are %s", clip(subject), strings.Join(allow, ", "))
}

// CheckSubjectPattern reports a pattern that no NATS server would accept as a subscription.
func CheckSubjectPattern(pattern string) error {
	if pattern == "" || emptyToken(pattern) || strings.ContainsAny(pattern, " \t\r\n\x00") {
		return fmt.Errorf("subject pattern %q has an empty token or white space", clip(pattern))
	}
	if i := strings.Index(pattern, ">"); i >= 0 && i != len(pattern)-1 && (i == 0 || pattern[i-1] == '.') && pattern[i+1] == '.' {
		return fmt.Errorf("subject pattern %q: > must be the last token", clip(pattern))
	}
	return nil
}

// MatchSubject reports whether a literal subject matches a NATS pattern: * stands for one token, a final > for one
// or more.
func MatchSubject(pattern, subject string) bool {
	for {
		p, prest, pmore := strings.Cut(pattern, ".")
		s, srest, smore := strings.Cut(subject, ".")
		switch {
		case p == ">" && !pmore:
			return s != ""
		case p != "*" && p != s, s == "", pmore != smore:
			return false
		case !pmore:
			return true
		}
		pattern, subject = prest, srest
	}
}

func emptyToken(subject string) bool {
	return subject[0] == '.' || subject[len(subject)-1] == '.' || strings.Contains(subject, "..")
}
