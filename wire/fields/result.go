package fields

import "math"

// maxCounted is the largest number of objects that a JSON number holds.
const maxCounted = 1 << 53

// Result answers one query.
var Result = Object{Name: "result", Means: "The answer to one query. It has hits or an error; what has neither is no result. Readers skip fields that they do not know.", Fields: []Field{
	{Name: "id", Holds: Text, Means: "The query's, else for a single query its message's Nats-Msg-Id."},
	{Name: "index", Holds: Text, Means: "The name of the index."},
	{Name: "version", Holds: Text, Means: "The version of the index: 16 hexadecimal digits."},
	{Name: "first_hit", Holds: Integer, Least: 0, Most: MaxK, Means: "Of a part: the position of its first hit."},
	{Name: "all_hits", Holds: Integer, Least: 1, Most: MaxK, Means: "Of a part: how many hits the result has."},
	{Name: "hits", Holds: HitList, Means: "Best first; fewer than k is a valid answer. A list of objects, or columns if the query asked for these."},
	{Name: "mc_k", Holds: Integer, Least: 0, Most: math.MaxUint32, Means: "The count of the k-th hit, 0 when there are fewer."},
	{Name: "exact", Holds: Bool, Means: "The hits provably are the true ones."},
	{Name: "total", Holds: Integer, Least: 0, Most: maxCounted, Means: "How many objects pass filter and exclude, if that was asked."},
	{Name: "in_range", Holds: Integer, Least: 0, Most: maxCounted, Means: "How many objects that pass lie within the radius, though k cut them."},
	{Name: "method", Holds: Text, Means: "How a search by distance found its hits."},
	{Name: "fraction", Holds: Number, Least: -1, Most: 1, Means: "The share of the objects that were compared, where not all were."},
	{Name: "expected_recall", Holds: Number, Least: -1, Most: 1, Means: "The share of the true neighbours that answers like this one had when it was measured."},
	{Name: "warnings", Holds: Texts, Means: "What about the query is likely not meant."},
	{Name: "explain", Holds: JSON, Means: "What the answer came from, for people; its fields may change."},
	{Name: "took_us", Holds: Nested, Of: &Took, Means: "Where the time went, in microseconds."},
	{Name: "error", Holds: Nested, Of: &Error, Means: "Why there are no hits. Only id, index and version go with it."},
}}

// Took is where a query's time went.
var Took = Object{Name: "took", Means: "Microseconds.", Fields: []Field{
	{Name: "queue", Holds: Integer, Most: maxMicros, Means: "In the stream, until a worker had it."},
	{Name: "batch", Holds: Integer, Most: maxMicros, Means: "Until its batch was cut."},
	{Name: "engine", Holds: Integer, Most: maxMicros, Means: "In its batch, which it shares with others."},
	{Name: "verify", Holds: Integer, Most: maxMicros, Means: "Of that, verifying its candidates."},
	{Name: "total", Holds: Integer, Most: maxMicros, Means: "From the stream's timestamp, or the arrival of a direct request, to the encoding of the result."},
}}

const maxMicros = math.MaxInt64 / 2000

// Error is why a query has no hits.
var Error = Object{Name: "error", Means: "Why there are no hits.", Fields: []Field{
	{Name: "code", Holds: Text, Required: true, Means: "For programs: one of the codes below. Later versions may have more."},
	{Name: "message", Holds: Text, Required: true, Means: "For people: what is wrong, and what to do."},
}}

// Hit is one object that matched.
var Hit = Object{Name: "hit", Means: "One object that matched.", Fields: []Field{
	{Name: "id", Holds: Integer, Least: 0, Most: math.MaxUint32, Required: true, Means: "Its position in the index, the same only within one version."},
	{Name: "key", Holds: Text, Required: true, Means: "The user's own name for it; the decimal id where the index has no keys."},
	{Name: "count", Holds: Integer, Least: 0, Most: math.MaxUint32, Required: true, Means: "Its match count; 0 of searches by distance and of filters alone."},
	{Name: "similarity", Holds: Number, Least: -math.MaxFloat32, Most: math.MaxFloat32, Means: "The estimate of vectors, or Jaccard's of sets by hash functions."},
	{Name: "distance", Holds: Number, Least: -math.MaxFloat64, Most: math.MaxFloat64, Means: "The distance, where hits are verified, rescored or found by it."},
	{Name: "score", Holds: Number, Least: -math.MaxFloat64, Most: math.MaxFloat64, Means: "The similarity by the measure of rescore."},
	{Name: "matched", Holds: Texts, Means: "The columns whose condition it meets, if that was asked."},
	{Name: "columns", Holds: Estimates, Of: &Estimate, Means: "Estimates by column, of vectors and of what is hashed."},
	{Name: "payload", Holds: JSON, Means: "What is stored of it, if that was asked."},
}}

// Estimate is how similar the value of a column is, as its count tells.
var Estimate = Object{Name: "estimate", Means: "How similar the values of a column are, as counts tell.", Fields: []Field{
	{Name: "similarity", Holds: Number, Least: -math.MaxFloat64, Most: math.MaxFloat64, Required: true, Means: "The estimate."},
	{Name: "bound", Holds: Number, Least: -math.MaxFloat64, Most: math.MaxFloat64, Required: true, Means: "How far the truth is away at most, with the probability that the schema states."},
}}

// Columns are hits as columns.
var Columns = Object{Name: "columns", Means: "Hits as arrays, all in the order of the hits. An array of which no hit has a value is left out.", Fields: []Field{
	{Name: "ids", Holds: Packed, Required: true, Means: "`id`: unsigned integers of 4 bytes."},
	{Name: "counts", Holds: Packed, Means: "`count`: unsigned integers of 1, 2 or 4 bytes, as many as the largest needs. Left out where all are 0."},
	{Name: "similarities", Holds: Packed, Means: "`similarity`: floats of 4 bytes."},
	{Name: "distances", Holds: Packed, Means: "`distance`: floats of 4 bytes where these hold every value, else of 8."},
	{Name: "scores", Holds: Packed, Means: "`score`: floats of 4 bytes where these hold every value, else of 8."},
	{Name: "keys", Holds: Texts, Means: "`key`, only with \"keys\":true in the query."},
	{Name: "matched", Holds: Nullables, Means: "`matched`, null for hits that have none."},
	{Name: "columns", Holds: Nullables, Of: &Estimate, Means: "`columns`, null for hits that have none."},
	{Name: "payloads", Holds: Nullables, Of: &Payload, Means: "`payload`, null for hits that have none."},
}}

// Payload stands for objects whose fields belong to an index.
var Payload = Object{Name: "payload", Means: "The stored columns of an object."}

// Answer is the answer to many queries.
var Answer = Object{Name: "answer", Means: "The answer to many queries, or one part of it.", Fields: []Field{
	{Name: "first", Holds: Integer, Least: 0, Most: math.MaxInt32, Required: true, Means: "The position of the first result among the queries of the message."},
	{Name: "results", Holds: List, Of: &Result, Required: true, Means: "The results, in the order of the queries."},
}}
