package intake

import (
	"cmp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/service/identity"
	"github.com/geniemq/geniemq/service/pipeline"
	"github.com/geniemq/geniemq/wire"
)

// messageOf is what a pipeline is told of a message. Whoever publishes a query with an id of its own finds that in the answer, if the body
// gives none, and if it can be one. A replay of a dead letter has another id, and says what the query's was.
func messageOf(header nats.Header, body []byte, arrived time.Time) pipeline.Message {
	id := cmp.Or(header.Get(wire.HeaderQueryID), header.Get(wire.HeaderMsgID))
	if len(id) > identity.MaxMsgID || !utf8.ValidString(id) {
		id = ""
	}
	return pipeline.Message{
		Arrived: arrived, ID: id,
		ContentType: header.Get(wire.HeaderContentType), Protocol: header.Get(wire.HeaderProtocol), Body: body,
		Accept: wire.ParseAccept(header.Get(wire.HeaderAccept)),
	}
}

// headers are those of an answer that is being made: one allocation holds the values of all. They are used again when the answer is out.
type headers struct {
	nats.Header
	values []string
}

// answerHeaders is how many headers an answer has as a rule, at most. A map of one more takes twice the memory.
const answerHeaders = 8

// begin begins the headers of an answer that is written in a codec.
func (h *headers) begin(codec wire.ContentType) {
	if h.Header == nil {
		h.Header, h.values = make(nats.Header, answerHeaders), make([]string, 0, answerHeaders)
	}
	h.set(wire.HeaderContentType, codec.String())
}

// forget makes them ready for another answer.
func (h *headers) forget() {
	clear(h.Header)
	clear(h.values)
	h.values = h.values[:0]
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

// beginResult begins the headers of an answer to a stored message, without what the parts differ in. id is that of a single query.
func (h *headers) beginResult(query nats.Header, asked identity.Asked, codec wire.ContentType, id string) {
	h.begin(codec)
	h.set(wire.HeaderQuerySeq, strconv.FormatUint(asked.Sequence, 10))
	h.set(wire.HeaderQueryHash, asked.Hash)
	h.set(wire.HeaderQueryStream, asked.Stream)
	h.answering(query, id)
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
