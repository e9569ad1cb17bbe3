package service

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/wire"
)

// maxMsgID is the longest message id of a query that is part of its answer's as it is.
const maxMsgID = 512

// resultID identifies the answer to a stored message for ever, whoever gives it and however often: it derives from
// what makes the message itself unique. It lacks the number of the part; see partID.
func resultID(index string, query nats.Header, created time.Time, sequence uint64) string {
	id := query.Get(wire.HeaderMsgID)
	switch {
	case id == "":
		id = strconv.FormatInt(created.UnixNano(), 10) + "." + strconv.FormatUint(sequence, 10)
	case len(id) > maxMsgID:
		sum := sha256.Sum256([]byte(id))
		id = hex.EncodeToString(sum[:])
	}
	return index + "." + id
}

// partID is the message id of a part of an answer, counted from 1. It ends in the number even if there is one part
// only, because message ids of queries may end in numbers too: part 2 of the answer to "a" is not part 1 of that to
// "a.2", and an answer that has one part at the first attempt and two at the second is not stored twice.
func partID(result string, part int) string { return result + "." + strconv.Itoa(part) }

// fallbackID is the id of a message's only query when its body gives none: whoever publishes with an id of its own finds it in
// the answer. It is "" where that cannot be one.
func fallbackID(query nats.Header) string {
	id := query.Get(wire.HeaderMsgID)
	if len(id) > maxMsgID || !utf8.ValidString(id) {
		return ""
	}
	return id
}

// resultHeader is the header of an answer to a stored message, without what the parts differ in.
func resultHeader(query nats.Header, sequence uint64, codec wire.ContentType, answer *wire.Answer) nats.Header {
	h := nats.Header{
		wire.HeaderContentType: {codec.String()},
		wire.HeaderQuerySeq:    {strconv.FormatUint(sequence, 10)},
	}
	setTrace(h, query)
	setQueryID(h, answer)
	return h
}

// setTrace copies the trace context of a query. It has 55 bytes today; what is much longer is none.
func setTrace(to, from nats.Header) {
	if trace := from.Get(wire.HeaderTraceParent); trace != "" && len(trace) <= 255 {
		to[wire.HeaderTraceParent] = []string{trace}
	}
}

// setServiceError adds the headers of NATS micro services to an answer that is an error as a whole.
func setServiceError(header nats.Header, answer *wire.Answer) {
	if answer.Batch || answer.Results[0].Err == nil {
		return
	}
	err := answer.Results[0].Err
	header[wire.HeaderServiceErrorCode] = []string{string(err.Code)}
	header[wire.HeaderServiceError] = []string{headerText(err.Message)}
}

// setQueryID adds the id of a single query where it fits a header.
func setQueryID(header nats.Header, answer *wire.Answer) {
	if answer.Batch {
		return
	}
	if id := wire.HeaderID(answer.Results[0].ID); id != "" {
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
