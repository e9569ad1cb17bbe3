package fields

// Message is what messages are.
type Message uint8

const (
	QueryMessage  Message = 1 << iota // published to the stream
	SearchMessage                     // a request
	ResultMessage                     // an answer to what was published
	ReplyMessage                      // to a request
	DeadMessage
)

// Header is a header of messages.
type Header struct {
	Name    string
	On      Message
	Always  bool
	Pattern string // a regular expression that its values match
	Means   string
}

// Headers are all there are.
var Headers = []Header{
	{Name: "Content-Type", On: QueryMessage | SearchMessage, Means: "How the body is written: none or application/json, application/msgpack, and either with +s2 where the workers accept it."},
	{Name: "Content-Type", On: ResultMessage | ReplyMessage, Always: true, Pattern: `^application/(json|msgpack)(\+s2)?$`, Means: "How the body is written: as the query's, with +s2 only for those who accept it."},
	{Name: "Nats-Msg-Id", On: QueryMessage | SearchMessage, Means: "The stream takes a message with the same id once. The result of a single query without id has it as its id."},
	{Name: "Genie-Reply", On: QueryMessage, Means: "Where the answer goes: genie.result.{index}, a subject below it, or an inbox. Without, to genie.result.{index}."},
	{Name: "Genie-Accept", On: QueryMessage | SearchMessage, Means: "What else the asker can read of an answer: s2, parts, or both with a comma between. Other words are skipped."},
	{Name: "Genie-Query-Object", On: QueryMessage, Pattern: `^[A-Za-z0-9_-]{1,64} [1-9][0-9]* SHA-256=[A-Za-z0-9_-]{43}=$`, Means: "The query's body is an object of the object store: its name, its size and its SHA-256. The message's own body is not read."},
	{Name: "Genie-User", On: QueryMessage | SearchMessage, Means: "Of whom account is kept, where the subject names no user and the worker is told to trust this (trust-user-header)."},
	{Name: "Genie-Protocol", On: QueryMessage | SearchMessage, Pattern: `^1$`, Means: "The version of the protocol."},
	{Name: "traceparent", On: QueryMessage | SearchMessage | ResultMessage | ReplyMessage, Means: "Trace context of W3C. It comes back with the answer."},
	{Name: "Nats-Msg-Id", On: ResultMessage, Always: true, Pattern: `\.[0-9]+(h[0-9]+)?(\.[0-9a-f]+)?$`, Means: "The id of this message of the answer: the same whoever sends it, and however often. Readers without the stream drop what they have seen."},
	{Name: "Genie-Query-Id", On: ResultMessage | ReplyMessage, Means: "The id of a single query, where a header can hold it."},
	{Name: "Genie-Query-Seq", On: ResultMessage, Always: true, Pattern: `^[0-9]+$`, Means: "The sequence of the query in its stream."},
	{Name: "Genie-Query-Stream", On: ResultMessage, Pattern: `^[A-Z0-9_-]+$`, Means: "That stream, unless it is GENIE_QUERIES."},
	{Name: "Genie-Query-Hash", On: ResultMessage, Pattern: `^[0-9a-f]{32}$`, Means: "A hash of a query that has a Nats-Msg-Id."},
	{Name: "Genie-Queries", On: ResultMessage, Pattern: `^[0-9]+-[0-9]+/[0-9]+$`, Means: "Which queries of a batch it is to, from 0: 36-71/100."},
	{Name: "Genie-Hits", On: ResultMessage, Pattern: `^[0-9]+-[0-9]+/[0-9]+$`, Means: "Of a part of one result: which of its hits it has, from 0."},
	{Name: "Genie-Version", On: ResultMessage, Pattern: `^[0-9a-f]+$`, Means: "Of a part of one result: the version of the index."},
	{Name: "Genie-Accept", On: ResultMessage | ReplyMessage, Means: "What the worker can read of queries beside what everybody can; told to those who sent one."},
	{Name: "Nats-Service-Error", On: ReplyMessage, Means: "The message of an error that is the answer as a whole."},
	{Name: "Nats-Service-Error-Code", On: ReplyMessage, Pattern: `^[a-z_]+$`, Means: "Its code."},
	{Name: "Genie-Dead-Reason", On: DeadMessage, Always: true, Means: "Why the message was given up: a word."},
	{Name: "Genie-Dead-Detail", On: DeadMessage, Always: true, Means: "The same in a sentence."},
	{Name: "Genie-Dead-Subject", On: DeadMessage, Always: true, Means: "The subject that it was published to."},
	{Name: "Genie-Dead-Sequence", On: DeadMessage, Always: true, Pattern: `^[0-9]+$`, Means: "Its sequence in the query stream."},
	{Name: "Genie-Dead-Time", On: DeadMessage, Always: true, Pattern: `^[0-9-]+T[0-9:.]+Z$`, Means: "When the query stream stored it."},
	{Name: "Genie-Dead-Delivered", On: DeadMessage, Pattern: `^[0-9]+$`, Means: "How often it was delivered; absent if never."},
	{Name: "Genie-Dead-Msg-Id", On: DeadMessage, Means: "Its Nats-Msg-Id."},
	{Name: "Genie-Dead-Size", On: DeadMessage, Pattern: `^[0-9]+$`, Means: "The bytes of its body; only where the copy has fewer."},
	{Name: "Nats-Msg-Id", On: DeadMessage, Always: true, Pattern: `^dead\.-?[0-9]+\.[0-9]+$`, Means: "The id of the dead letter."},
}

// Code is an error code.
type Code struct {
	Name, Means, Do string
	HTTP            int // the status by which the HTTP door answers
}

// Codes are those of version 1.
var Codes = []Code{
	{"bad_request", "The query or the message is wrong and stays wrong.", "Correct what the message says. Do not send the same again.", 400},
	{"unknown_index", "Nobody serves an index of this name.", "Look at the name, or start a worker for it: `nats micro info geniemq` lists what is served.", 404},
	{"too_large", "A limit on size or number was exceeded, by the message or by its answer.", "Split the message, lower `k`, leave `with_payload` out, or ask through the stream with `Genie-Accept: parts`.", 413},
	{"deadline_exceeded", "The query's `timeout_ms` ran out before it was answered.", "Ask again if the answer is still wanted, with more time.", 504},
	{"overloaded", "Direct search has no room now.", "Try again after a pause that grows, with some chance in it, or send the query through the stream, which waits.", 503},
	{"unsupported", "Valid, but not by this worker: a later protocol, a reserved field, another kind of index, a media type.", "Ask another way, or upgrade the workers. Do not send the same again.", 501},
	{"object_missing", "The query's body, which its header says to lie in the object store, is not there.", "Store it anew, and publish the query again with a new `Nats-Msg-Id`.", 410},
	{"internal", "The fault is the server's.", "Ask again later; the worker's log says more. A message that workers died of is a dead letter and stays one.", 500},
}
