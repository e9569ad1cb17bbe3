// Package identity says which message an answer is to, and which id an answer has, whoever gives it and however often.
package identity

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/consumer"
	"github.com/geniemq/geniemq/wire"
)

// MaxMsgID is the longest message id of a query that is part of its answer's as it is.
const MaxMsgID = 512

// Result identifies the answer to a stored message for ever, whoever gives it and however often: it derives from
// what makes the message itself unique. It lacks the number of the part; see Part.
//
// A message without an id of its own has the time when its stream was made and its sequence. Users' ids that look like that, or
// like what becomes of long ones, are set apart, so that nobody can take the id of another's answer by choosing his own.
// All others keep the form that they always had: workers of two versions, side by side, must not answer twice.
// Streams other than that of queries are named in front, which no index's name can look like: their messages are numbered on their own.
func Result(stream string, m *consumer.Stored) string {
	id := m.Header.Get(wire.HeaderMsgID)
	switch {
	case id == "":
		id = strconv.FormatInt(m.StreamCreated.UnixNano(), 10) + "." + strconv.FormatUint(m.Sequence, 10)
	case len(id) > MaxMsgID:
		sum := sha256.Sum256([]byte(id))
		id = hex.EncodeToString(sum[:])
	case looksOurs(id):
		id = apart + id
	}
	if m.Class == wire.ClassQuery || m.Class == "" {
		return m.Index + "." + id
	}
	return stream + "/" + m.Index + "." + m.User + "." + id
}

// apart is put before users' ids that look like ours, and before those that begin with it and would, so that none become equal.
const apart = "~"

// looksOurs says whether an id, less what sets it apart, has the form <digits>.<digits> or that of a hash.
func looksOurs(id string) bool {
	id = strings.TrimLeft(id, apart)
	if len(id) == hex.EncodedLen(sha256.Size) && strings.Trim(id, "0123456789abcdef") == "" {
		return true
	}
	created, sequence, ok := strings.Cut(id, ".")
	return ok && digits(created) && digits(sequence)
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// Salted is the id of an answer in place of one that another answer has. It holds what is asked, and how many ids were taken
// before it.
func Salted(result, reply string, asked Asked, salt int) string {
	what := cmp.Or(asked.Hash, strconv.FormatUint(asked.Sequence, 10))
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d", reply, what, salt))
	return result + "." + hex.EncodeToString(sum[:16])
}

// Part is the message id of the part of an answer that begins at a position: it ends in the number of the query, counted from 1, and for hits of
// its result but the first in that of the hit too. An answer in one message ends in a number, because ids of queries may: part 2 of the answer to "a"
// is not part 1 of that to "a.2". For the same reason no dot is before the hit.
func Part(result string, at wire.Position) string {
	id := result + "." + strconv.Itoa(at.Query+1)
	if at.Hit > 0 {
		id += "h" + strconv.Itoa(at.Hit)
	}
	return id
}

// PartSize is how many bytes the id of a part takes of a message.
func PartSize(result string, at wire.Position) int {
	return len(wire.HeaderMsgID) + len(": ") + len(result) + len(Part("", at)) + len("\r\n")
}

// Asked says which message an answer is to. The query stream may have one message twice, with an id for each time: a publisher that
// was not told that it had arrived repeats it, and a server that was killed has forgotten the ids of messages that are gone.
type Asked struct {
	Sequence uint64
	Hash     string // of the message; "" where it has no id of its own, and nothing can be its double
	Stream   string // that Sequence counts in; "" that of queries
	at       time.Time
}

// DoubleWindow is how long after an answer the same message is its question, published again: as long as a query stream that has forgotten
// nothing refuses an id. Later it is asked anew.
const DoubleWindow = 2 * time.Minute

// Ask is what a message of a stream asks.
func Ask(stream string, m *consumer.Stored) Asked {
	a := Asked{Sequence: m.Sequence, at: m.Timestamp}
	if m.Class != wire.ClassQuery && m.Class != "" {
		a.Stream = stream
	}
	if m.Header.Get(wire.HeaderMsgID) != "" {
		h := sha256.New()
		h.Write([]byte(m.Header.Get(wire.HeaderContentType) + "\n" + m.Header.Get(wire.HeaderProtocol) + "\n"))
		h.Write(m.Body)
		if object := m.Header.Get(wire.HeaderQueryObject); object != "" { // under which name it was stored is no matter
			if stored, err := wire.ParseStoredBody(object); err == nil {
				object = stored.Identity()
			}
			h.Write([]byte("\n" + object))
		}
		a.Hash = hex.EncodeToString(h.Sum(nil)[:16])
	}
	return a
}

// AnsweredBy says whether an answer that was stored at a time is to this message. Workers of earlier versions did not hash. Both times are the
// server's, so every attempt finds the same.
func (a *Asked) AnsweredBy(header nats.Header, at time.Time) bool {
	if header.Get(wire.HeaderQuerySeq) == strconv.FormatUint(a.Sequence, 10) && header.Get(wire.HeaderQueryStream) == a.Stream {
		return true
	}
	return a.Hash != "" && header.Get(wire.HeaderQueryHash) == a.Hash && a.at.Sub(at) < DoubleWindow
}
