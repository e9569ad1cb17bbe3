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

	"github.com/geniemq/geniemq/consumer"
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
// Streams other than that of queries are named in front, which no index's name can look like: their messages are numbered on their own.
func resultID(stream string, m *consumer.Stored) string {
	id := m.Header.Get(wire.HeaderMsgID)
	switch {
	case id == "":
		id = strconv.FormatInt(m.StreamCreated.UnixNano(), 10) + "." + strconv.FormatUint(m.Sequence, 10)
	case len(id) > maxMsgID:
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

// partID is the message id of the part of an answer that begins at a position: it ends in the number of the query, counted from 1, and for hits of
// its result but the first in that of the hit too. An answer in one message ends in a number, because ids of queries may: part 2 of the answer to "a"
// is not part 1 of that to "a.2". For the same reason no dot is before the hit.
func partID(result string, at wire.Position) string {
	id := result + "." + strconv.Itoa(at.Query+1)
	if at.Hit > 0 {
		id += "h" + strconv.Itoa(at.Hit)
	}
	return id
}

// msgIDSize is how many bytes the id of a part takes of a message.
func msgIDSize(result string, at wire.Position) int {
	var digits [40]byte
	id := strconv.AppendInt(digits[:0], int64(at.Query)+1, 10)
	if at.Hit > 0 {
		id = strconv.AppendInt(append(id, 'h'), int64(at.Hit), 10)
	}
	return len(wire.HeaderMsgID) + len(": ") + len(result) + len(".") + len(id) + len("\r\n")
}

// messageOf is what a pipeline is told of a message. Whoever publishes a query with an id of its own finds that in the answer, if the body
// gives none, and if it can be one.
func messageOf(header nats.Header, body []byte, arrived time.Time) pipeline.Message {
	id := header.Get(wire.HeaderMsgID)
	if len(id) > maxMsgID || !utf8.ValidString(id) {
		id = ""
	}
	return pipeline.Message{
		Arrived: arrived, ID: id,
		ContentType: header.Get(wire.HeaderContentType), Protocol: header.Get(wire.HeaderProtocol), Body: body,
		Accept: wire.ParseAccept(header.Get(wire.HeaderAccept)),
	}
}

// asked says which message an answer is to. The query stream may have one message twice, with an id for each time: a publisher that
// was not told that it had arrived repeats it, and a server that was killed has forgotten the ids of messages that are gone.
type asked struct {
	sequence uint64
	hash     string // of the message; "" where it has no id of its own, and nothing can be its double
	stream   string // that sequence counts in; "" that of queries
	at       time.Time
}

// doubleWindow is how long after an answer the same message is its question, published again: as long as a query stream that has forgotten
// nothing refuses an id. Later it is asked anew.
const doubleWindow = 2 * time.Minute

func whatIsAsked(stream string, m *consumer.Stored) asked {
	a := asked{sequence: m.Sequence, at: m.Timestamp}
	if m.Class != wire.ClassQuery && m.Class != "" {
		a.stream = stream
	}
	if m.Header.Get(wire.HeaderMsgID) != "" {
		h := sha256.New()
		h.Write([]byte(m.Header.Get(wire.HeaderContentType) + "\n" + m.Header.Get(wire.HeaderProtocol) + "\n"))
		h.Write(m.Body)
		a.hash = hex.EncodeToString(h.Sum(nil)[:16])
	}
	return a
}

// answeredBy says whether an answer that was stored at a time is to this message. Workers of earlier versions did not hash. Both times are the
// server's, so every attempt finds the same.
func (a *asked) answeredBy(header nats.Header, at time.Time) bool {
	if header.Get(wire.HeaderQuerySeq) == strconv.FormatUint(a.sequence, 10) && header.Get(wire.HeaderQueryStream) == a.stream {
		return true
	}
	return a.hash != "" && header.Get(wire.HeaderQueryHash) == a.hash && a.at.Sub(at) < doubleWindow
}

// headers are those of an answer that is being made: one allocation holds the values of all.
type headers struct {
	nats.Header
	values []string
}

// answerHeaders is how many headers an answer has as a rule, at most.
const answerHeaders = 9

// newHeaders begins the headers of an answer that is written in a codec.
func newHeaders(codec wire.ContentType) headers {
	h := headers{make(nats.Header, answerHeaders), make([]string, 0, answerHeaders)}
	h.set(wire.HeaderContentType, codec.String())
	return h
}

// set sets a header, unless it is empty.
func (h *headers) set(name, value string) {
	if value == "" {
		return
	}
	h.values = append(h.values, value)
	n := len(h.values)
	h.Header[name] = h.values[n-1 : n : n]
}

// resultHeader is the header of an answer to a stored message, without what the parts differ in. id is that of a single query.
func resultHeader(query nats.Header, asked asked, codec wire.ContentType, id string) headers {
	h := newHeaders(codec)
	h.set(wire.HeaderQuerySeq, strconv.FormatUint(asked.sequence, 10))
	h.set(wire.HeaderQueryHash, asked.hash)
	h.set(wire.HeaderQueryStream, asked.stream)
	h.answering(query, id)
	return h
}

// answering adds what answers have of their query: its trace context, which has 55 bytes today, and what is much longer is none; the id of a single query, where it
// fits a header; and what queries may be, for those who know of that.
func (h *headers) answering(query nats.Header, id string) {
	if trace := query.Get(wire.HeaderTraceParent); len(trace) <= 255 {
		h.set(wire.HeaderTraceParent, trace)
	}
	if query.Get(wire.HeaderAccept) != "" {
		h.set(wire.HeaderAccept, wire.Reads().String())
	}
	h.set(wire.HeaderQueryID, wire.HeaderID(id))
}

// setServiceError adds the headers of NATS micro services to an answer that is an error as a whole.
func setServiceError(header nats.Header, err *wire.Error) {
	header[wire.HeaderServiceErrorCode] = []string{string(err.Code)}
	header[wire.HeaderServiceError] = []string{headerText(err.Message)}
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
