package service

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/service/pipeline"
	"github.com/geniemq/geniemq/wire"
)

// maxMsgID is the longest message id of a query that is part of its answer's as it is.
const maxMsgID = 512

// resultID identifies the answer to a stored message for ever, whoever gives it and however often: it derives from
// what makes the message itself unique. It lacks the number of the part; see partID.
//
// A message without an id of its own has the time when its stream was made and its sequence. Users' ids that look like that, or
// like what becomes of long ones, are set apart, so that nobody can take the id of another's answer by choosing his own.
// All others keep the form that they always had: workers of two versions, side by side, must not answer twice.
func resultID(index string, query nats.Header, created time.Time, sequence uint64) string {
	id := query.Get(wire.HeaderMsgID)
	switch {
	case id == "":
		id = strconv.FormatInt(created.UnixNano(), 10) + "." + strconv.FormatUint(sequence, 10)
	case len(id) > maxMsgID:
		sum := sha256.Sum256([]byte(id))
		id = hex.EncodeToString(sum[:])
	case looksOurs(id):
		id = apart + id
	}
	return index + "." + id
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

// saltedID is the id of an answer in place of one that another answer has. It holds what is asked, and how many ids were taken
// before it.
func saltedID(result, reply string, asked asked, salt int) string {
	what := asked.hash
	if what == "" {
		what = strconv.FormatUint(asked.sequence, 10)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d", reply, what, salt))
	return result + "." + hex.EncodeToString(sum[:16])
}

// partID is the message id of the part of an answer that begins with a query, counted from 1. An answer in one message ends in a
// number too, because ids of queries may: part 2 of the answer to "a" is not part 1 of that to "a.2".
func partID(result string, query int) string { return result + "." + strconv.Itoa(query) }

// fallbackID is the id of a message's only query when its body gives none: whoever publishes with an id of its own finds it in
// the answer. It is "" where that cannot be one.
func fallbackID(query nats.Header) string {
	id := query.Get(wire.HeaderMsgID)
	if len(id) > maxMsgID || !utf8.ValidString(id) {
		return ""
	}
	return id
}

// messageOf is what a pipeline is told of a message.
func messageOf(header nats.Header, body []byte, arrived time.Time) pipeline.Message {
	return pipeline.Message{
		Arrived: arrived, ID: fallbackID(header),
		ContentType: header.Get(wire.HeaderContentType), Protocol: header.Get(wire.HeaderProtocol), Body: body,
	}
}

// asked says which message an answer is to. The query stream may have one message twice, with an id for each time: a publisher that
// was not told that it had arrived repeats it, and a server that was killed has forgotten the ids of messages that are gone.
type asked struct {
	sequence uint64
	hash     string // of the message; "" where it has no id of its own, and nothing can be its double
	at       time.Time
}

// doubleWindow is how long after an answer the same message is its question, published again: as long as a query stream that has forgotten
// nothing refuses an id. Later it is asked anew.
const doubleWindow = 2 * time.Minute

func whatIsAsked(header nats.Header, body []byte, sequence uint64, at time.Time) asked {
	a := asked{sequence: sequence, at: at}
	if header.Get(wire.HeaderMsgID) != "" {
		h := sha256.New()
		h.Write([]byte(header.Get(wire.HeaderContentType) + "\n" + header.Get(wire.HeaderProtocol) + "\n"))
		h.Write(body)
		a.hash = hex.EncodeToString(h.Sum(nil)[:16])
	}
	return a
}

// answeredBy says whether an answer that was stored at a time is to this message. Workers of earlier versions did not hash. Both times are the
// server's, so every attempt finds the same.
func (a *asked) answeredBy(header nats.Header, at time.Time) bool {
	if header.Get(wire.HeaderQuerySeq) == strconv.FormatUint(a.sequence, 10) {
		return true
	}
	return a.hash != "" && header.Get(wire.HeaderQueryHash) == a.hash && a.at.Sub(at) < doubleWindow
}

// resultHeader is the header of an answer to a stored message, without what the parts differ in. id is that of a single query.
func resultHeader(query nats.Header, asked asked, codec wire.ContentType, id string) nats.Header {
	h := nats.Header{
		wire.HeaderContentType: {codec.String()},
		wire.HeaderQuerySeq:    {strconv.FormatUint(asked.sequence, 10)},
	}
	if asked.hash != "" {
		h[wire.HeaderQueryHash] = []string{asked.hash}
	}
	setTrace(h, query)
	setQueryID(h, id)
	return h
}

// setTrace copies the trace context of a query. It has 55 bytes today; what is much longer is none.
func setTrace(to, from nats.Header) {
	if trace := from.Get(wire.HeaderTraceParent); trace != "" && len(trace) <= 255 {
		to[wire.HeaderTraceParent] = []string{trace}
	}
}

// setServiceError adds the headers of NATS micro services to an answer that is an error as a whole.
func setServiceError(header nats.Header, err *wire.Error) {
	header[wire.HeaderServiceErrorCode] = []string{string(err.Code)}
	header[wire.HeaderServiceError] = []string{headerText(err.Message)}
}

// setQueryID adds the id of a single query where it fits a header.
func setQueryID(header nats.Header, id string) {
	if id := wire.HeaderID(id); id != "" {
		header[wire.HeaderQueryID] = []string{id}
	}
}

// headerText makes a text fit a header line.
func headerText(s string) string {
	const most = 1024
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}
