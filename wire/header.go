package wire

import (
	"strconv"
	"strings"
)

// Version is the version of the protocol that this package speaks.
const Version = 1

// Headers of messages. All are optional in queries.
const (
	// HeaderReply names the subject a query's answer goes to: JetStream does not keep NATS's own reply subject.
	HeaderReply = "Genie-Reply"
	// HeaderProtocol is the version of the protocol a query is written in. Default 1; see [CheckProtocol].
	HeaderProtocol = "Genie-Protocol"
	// HeaderContentType is the codec of the body; see [ParseContentType]. A result has its query's.
	HeaderContentType = "Content-Type"
	// HeaderAccept says what the sender can read besides what everybody can; see [Accept]. Answers to queries that have it have it too.
	HeaderAccept = "Genie-Accept"
	// HeaderMsgID makes publishing idempotent: the stream drops a second message with the same id.
	HeaderMsgID = "Nats-Msg-Id"
	// HeaderTraceParent is W3C trace context, copied from the query to its result.
	HeaderTraceParent = "traceparent"

	// HeaderQueryID is on results: the id of a single query, as far as a header can carry it; see [HeaderID]. On a query it is the id that its
	// answer has where the body gives none, in place of HeaderMsgID: that of a replayed query is another each time.
	HeaderQueryID = "Genie-Query-Id"
	// HeaderQuerySeq is on results: the stream sequence of the query message.
	HeaderQuerySeq = "Genie-Query-Seq"
	// HeaderQueryStream is on results of queries from another stream than GENIE_QUERIES: the stream that HeaderQuerySeq counts in.
	HeaderQueryStream = "Genie-Query-Stream"
	// HeaderUser names the user of a query whose subject names none. Workers heed it only where they are told to trust it.
	HeaderUser = "Genie-User"
	// HeaderQueryHash is on results of queries that were published with an id: a hash of the message. It tells a query that was
	// published again, because nobody said that it had arrived, from another one with the same id.
	HeaderQueryHash = "Genie-Query-Hash"
	// HeaderQueries is on answers to batches: which of the message's queries this part of the answer is to, like
	// "36-71/100", counted from 0. See [Range].
	HeaderQueries = "Genie-Queries"

	// HeaderHits is on parts of a result that is too large for a message: which of its hits this part has, like "0-41209/60000". See [Range]. They have
	// HeaderVersion too, the version of the index: of another one, what comes after it may be other hits.
	HeaderHits    = "Genie-Hits"
	HeaderVersion = "Genie-Version"

	// HeaderServiceError and HeaderServiceErrorCode are on errors of direct search, as NATS micro services set
	// them: the sentence, and our [Code].
	HeaderServiceError     = "Nats-Service-Error"
	HeaderServiceErrorCode = "Nats-Service-Error-Code"
)

// ContentType is the codec of a body.
type ContentType uint8

const (
	JSON        ContentType = iota // application/json, the default
	MessagePack                    // application/msgpack
)

// String returns the media type.
func (c ContentType) String() string {
	if c == MessagePack {
		return "application/msgpack"
	}
	return "application/json"
}

// ParseContentType reads a Content-Type header of a plain body; see [ParseBodyType]. "" is JSON, parameters such as charset are ignored, and the names
// that MessagePack had before it was registered are understood. Anything else is `unsupported`. The error is an *[Error].
func ParseContentType(header string) (ContentType, error) {
	if header == "" {
		return JSON, nil
	}
	media, _, _ := strings.Cut(header, ";") // a faulty parameter is no reason to refuse what is clear
	switch strings.ToLower(strings.TrimSpace(media)) {
	case "application/json", "text/json":
		return JSON, nil
	case "application/msgpack", "application/x-msgpack", "application/vnd.msgpack":
		return MessagePack, nil
	}
	return JSON, Errorf(Unsupported, "content type %q: use application/json or application/msgpack", clip(header))
}

// CheckProtocol reads a Genie-Protocol header. "" is version 1, a higher version is `unsupported`, anything else is
// `bad_request`. The error is an *[Error].
func CheckProtocol(header string) error {
	if header == "" || header == "1" {
		return nil
	}
	v, err := strconv.ParseUint(strings.TrimSpace(header), 10, 32)
	switch {
	case err != nil || v == 0:
		return badRequest("%s %q is not a version of the protocol: this is version %d", HeaderProtocol, clip(header), Version)
	case v > Version:
		return Errorf(Unsupported, "protocol version %d: this server speaks version %d", v, Version)
	}
	return nil
}

// HeaderID returns the id if it fits a header, else "". A header is a line: ids with control characters would end it,
// and long ones would fill the space that the body needs. The body always has the whole id.
func HeaderID(id string) string {
	if len(id) > 255 || strings.ContainsFunc(id, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return ""
	}
	return id
}

// HeaderSize returns how many bytes a NATS header takes of max_payload. The argument is a nats.Header.
func HeaderSize(header map[string][]string) int {
	if len(header) == 0 {
		return 0
	}
	size := len("NATS/1.0\r\n") + len("\r\n")
	for name, values := range header {
		for _, value := range values {
			size += len(name) + len(": ") + len(value) + len("\r\n")
		}
	}
	return size
}

// PartHeaderSize is the most that HeaderQueries adds to a header, and HitsHeaderSize the most that HeaderHits and HeaderVersion do.
const (
	PartHeaderSize = len(HeaderQueries) + len(": ") + 3*10 + len("-/") + len("\r\n")
	HitsHeaderSize = PartHeaderSize + len(HeaderVersion) + len(": ") + 16 + len("\r\n")
)
