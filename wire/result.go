package wire

import (
	"encoding/json"
	"time"
)

// Hit is one object that matched.
type Hit struct {
	// ID is the object's position in the index, stable only within one version of it.
	ID uint32
	// Key is the user's own identity of the object. Encoders write the decimal id where it is empty, so that
	// indexes without a key column make no strings; decoded hits always have it.
	Key string
	// Count is the match count: at least 1, but for sequences with Certify, where an object that shares no n-gram with
	// the query (count 0) can be among the nearest by edit distance. MinCount 1 leaves such objects out.
	Count uint32
	// Distance is the edit distance (sequences) or the exact distance (re-ranked vectors); only if HasDistance.
	Distance float64
	// Similarity is the estimate c/m of Eqn 7 (vectors) or Jaccard's (sets); only if HasSimilarity.
	Similarity float32

	// Score is the similarity by the measure of [Query.Rescore]; only if HasScore.
	Score float64

	HasDistance, HasSimilarity, HasScore bool
	// Detail is what the query asked to know of its hits; nil otherwise.
	Detail *HitDetail
	// Payload is the object's stored columns, a JSON object, where the query asked for it; nil otherwise. In a
	// MessagePack message it travels as MessagePack, and is JSON again when decoded.
	Payload json.RawMessage
}

// HitDetail is what a query can ask to know of a hit.
type HitDetail struct {
	// Matched are the columns whose condition the hit meets, of [Query.Matched].
	Matched []string
	// Columns are estimates by the counts of vector columns and of such that are hashed.
	Columns []ColumnEstimate
}

// ColumnEstimate is how similar the hit's value of a column is to the query's, as its count tells. The truth is within Bound of Similarity
// for all hits together with the probability that the schema states.
type ColumnEstimate struct {
	Column            string
	Similarity, Bound float64
}

// Took says where a query's time went, to the microsecond ("took_us").
type Took struct {
	Queue  time.Duration // in the stream, until a worker had it
	Batch  time.Duration // until its batch was cut
	Engine time.Duration // in its batch, which it shares with others
	Verify time.Duration // of that, verifying its candidates
	Total  time.Duration // from the stream's timestamp (direct search: arrival) to the encoding of the result
}

// Result answers one query: with hits, best first, or with an error.
type Result struct {
	ID      string // the query's
	Index   string // its name
	Version string // the first 16 hex digits of the index file's SHA-256

	// Hits are ordered by (count descending, id ascending), or, verified and re-ranked, by (distance ascending or
	// similarity descending, count descending, id ascending). Fewer than k is a valid answer.
	Hits []Hit
	// HitsForm is how they are written; it changes nothing else, but that columns may be without keys.
	HitsForm HitsForm
	// AllHits is how many hits the result has of which these are some, from position FirstHit on: one part of a result that is too large
	// for a message. 0: they are all.
	FirstHit, AllHits int
	// MCK is the count of the k-th hit, 0 when there are fewer than k.
	MCK uint32
	// Exact says that the hits provably are the true top-k with respect to the indexed keywords; for sequences, by
	// edit distance.
	Exact bool
	// Total is how many objects pass the query's filter and exclusions; only if HasTotal.
	Total    uint64
	HasTotal bool
	// Found is what a search by distance tells besides.
	Found
	// ExpectedRecall is the share of the true nearest neighbours that answers like this one have had when the index was built; only if
	// HasExpectedRecall.
	ExpectedRecall    float64
	HasExpectedRecall bool
	// Warnings say what about the query is likely not meant, such as words that the index does not have.
	Warnings []string
	// Explain is a JSON object that says what the answer came from, where the query asked for it; nil otherwise. Its fields are for people
	// and may change.
	Explain json.RawMessage
	Took    Took

	// Err is why there are no hits. Only ID, Index and Version go with it.
	Err *Error
}

// Answer is the answer to a message, or one part of it.
type Answer struct {
	// Batch says that the message was a batch, so that the body is {"first":0,"results":[...]}; otherwise it is
	// the one result.
	Batch bool
	// First is the position of Results[0] among the queries of the message.
	First   int
	Results []Result
}

// AppendResult appends the encoding of a result that is a message of its own.
func AppendResult(dst []byte, ct ContentType, r *Result) []byte {
	e := encoder{dst: dst, msgpack: ct == MessagePack}
	e.result(r)
	return e.dst
}

// AppendAnswer appends the encoding of a whole answer. One that may be too large for a message goes through
// [AppendPart].
func AppendAnswer(dst []byte, ct ContentType, a *Answer) []byte {
	if !a.Batch && len(a.Results) == 1 {
		return AppendResult(dst, ct, &a.Results[0])
	}
	e := encoder{dst: dst, msgpack: ct == MessagePack}
	at := e.object()
	e.whole(at, "first", uint64(a.First))
	e.name(at, "results")
	e.list(len(a.Results))
	for i := range a.Results {
		e.next(i)
		e.result(&a.Results[i])
	}
	e.endList()
	e.end()
	return e.dst
}
