package fields

import "math"

// Bounds of version 1 that are not configurable.
const (
	MaxK         = 65_536
	MaxWeight    = 65_535
	MaxTimeoutMS = math.MaxInt32
	MaxBucket    = math.MaxUint32
	// BeyondFloat32 is the least number that rounds to no float32.
	BeyondFloat32 = 0x1.ffffffp127
)

// Limits of a message. Where a server takes smaller messages, the body's is what fits it.
const (
	MaxBody    = 8 << 20 // bytes
	MaxQueries = 65_536  // of a message
	MaxItems   = 65_536  // of a query: its conditions, the values in them, or the elements of its vector or set
	MaxDepth   = 16      // of arrays and objects, the message being 1
	MaxString  = 64 << 10
	MaxSumK    = 1 << 20 // hits that the queries of a message ask for together
)

// Query is a query: one form of Forms, or a filter alone.
var Query = Object{Name: "query", Means: "The k objects of an index that match best. A query has one form (row, items, text, vector, set or point), or none and a filter, exclude or total.", Fields: []Field{
	{Name: "id", Holds: ID, Means: "Comes back with the result. An integer stands for its decimal digits. Without it the result of a single query has the message's Nats-Msg-Id."},
	{Name: "k", Holds: Hits, Least: 1, Most: MaxK, Default: "10; with radius 1,024", Means: "How many hits are wanted. 0, which asks for in_range alone, goes with radius only."},
	{Name: "row", Holds: Row, Means: "Conditions by attribute: an object counts for each that it meets."},
	{Name: "text", Holds: Text, Least: 1, Means: "A text: by its words, by its n-grams and edit distance, or by distance, as the index has it."},
	{Name: "vector", Holds: Vector, Means: "A vector of the dimension of the column. In MessagePack also binary: float32s, little-endian."},
	{Name: "set", Holds: Set, Means: "Elements; those that come again count once."},
	{Name: "items", Holds: Conditions, Means: "Conditions that may name an attribute again, and each counts."},
	{Name: "candidates", Holds: Integer, Least: 1, Most: MaxK, Default: "max(32, 8 k)", Means: "How many objects of highest count are verified or rescored. At least k."},
	{Name: "certify", Holds: Bool, Default: "false", Means: "Compares more until the answer is proven."},
	{Name: "min_count", Holds: Integer, Least: 0, Most: math.MaxUint32, Default: "0", Means: "Hits with a lower count are dropped."},
	{Name: "with_payload", Holds: Bool, Default: "false", Means: "Adds what is stored of each hit."},
	{Name: "timeout_ms", Holds: Integer, Least: 1, Most: MaxTimeoutMS, Default: "none", Means: "After so many milliseconds since the stream stored the query, or direct search took it, the answer is of no use: it is deadline_exceeded then."},
	{Name: "queries", Holds: Queries, Of: nil, Means: "Many queries in one message. It is the only field of its message."},
	{Name: "table", Holds: Rows, Of: &Table, Means: "Many queries of one shape in one message, written as arrays. It is the only field of its message."},
	{Name: "filter", Holds: Filter, Means: "Every hit meets all of these conditions. Nothing of them counts."},
	{Name: "exclude", Holds: Filter, Means: "No hit meets any of these conditions."},
	{Name: "total", Holds: Bool, Default: "false", Means: "Asks how many objects pass filter and exclude."},
	{Name: "idf", Holds: Bool, Default: "the schema's", Means: "Rare words, elements and categories weigh more than frequent ones."},
	{Name: "weights", Holds: Weights, Least: 1, Most: MaxWeight, Default: "1 each", Means: "What the conditions on a column count is multiplied by its weight."},
	{Name: "rescore", Holds: Nested, Of: &Rescore, Default: "the schema's", Means: "Orders hits by a measure instead of by count."},
	{Name: "matched", Holds: Bool, Default: "false", Means: "Names with each hit the columns whose condition it meets."},
	{Name: "explain", Holds: Bool, Default: "false", Means: "Says what the answer came from, for people."},
	{Name: "radius", Holds: Number, Least: -math.MaxFloat64, Most: math.MaxFloat64, Means: "How far hits are away at most, as the column's metric reports distances: at least 0, but for `ip`."},
	{Name: "point", Holds: Point, Means: "A place on earth in degrees: [latitude, longitude] or {\"lat\":…,\"lon\":…}."},
	{Name: "column", Holds: Text, Least: 1, Default: "the one that fits", Means: "Which column is asked by distance."},
	{Name: "method", Holds: Text, Least: 1, Default: "auto", Means: "How to search by distance: auto, scan, tree, cells, permutation, lsh or ngram, of those that the column has."},
	{Name: "fraction", Holds: Number, Least: 0, AboveLeast: true, Most: 1, Default: "the schema's", Means: "The share of the objects that permutation compares. Not beside recall."},
	{Name: "recall", Holds: Number, Least: 0, AboveLeast: true, Most: 1, BelowMost: true, Means: "The share of the true hits that is enough. Not beside fraction."},
	{Name: "form", Holds: Form, Default: "a list of objects", Means: "\"columns\": hits as arrays, one for each thing that hits have."},
	{Name: "keys", Holds: Bool, Default: "false", Means: "Goes with form: hits as columns have their keys."},
	{Name: "must"}, {Name: "version"}, {Name: "offset"},
}}

// Forms are the fields of a query that exclude each other.
var Forms = []string{"row", "text", "vector", "set", "items", "point"}

// FilterForms are those of which a query without a form has one.
var FilterForms = []string{"filter", "exclude", "total"}

// Near are the fields that go with the forms text, vector and point alone.
var Near = []string{"radius", "column", "method", "fraction", "recall"}

// Condition is a condition; attr is where conditions are a list, in a row it is the key.
var Condition = Object{Name: "condition", Means: "One of a value, a range and a set of values, or another shape that only the type of its column knows.", Fields: []Field{
	{Name: "value", Holds: Scalar, Means: "Is the value. In a row {\"sex\":\"Female\"} says the same as {\"sex\":{\"value\":\"Female\"}}."},
	{Name: "min", Holds: Scalar, Default: "open", Means: "The lower end of a range, which belongs to it. A number or a string."},
	{Name: "max", Holds: Scalar, Default: "open", Means: "The upper end of a range, which belongs to it. A number or a string."},
	{Name: "in", Holds: Scalars, Means: "Any of the values."},
	{Name: "unit", Holds: Unit, Default: "the attribute's", Means: "\"bucket\": numbers are those of the index's buckets, counted from 0, up to 4,294,967,295."},
	{Name: "weight", Holds: Integer, Least: 1, Most: MaxWeight, Default: "1", Means: "What a match counts. Not in filters."},
	{Name: "attr", Holds: Text, Least: 1, Required: true, Means: "The attribute. Only where conditions are a list; in a row it is the name of the field."},
}}

// Table is many queries of one shape.
var Table = Object{Name: "table", Means: "Queries of one shape: what all of them have is written once, and of everything else there is an array, in the order of the queries.", Fields: []Field{
	{Name: "rows", Holds: Integer, Least: 1, Most: MaxQueries, Required: true, Means: "How many queries there are."},
	{Name: "query", Holds: Common, Means: "What all queries have: any fields of a query."},
	{Name: "id", Holds: Array, Means: "`id`: strings or integers. A query without has none."},
	{Name: "k", Holds: Array, Means: "`k`."},
	{Name: "row", Holds: Groups, Of: &Group, Means: "Conditions of `row`, after those that all queries have."},
	{Name: "items", Holds: Groups, Of: &Group, Means: "Conditions of `items`, after those that all queries have."},
	{Name: "filter", Holds: Groups, Of: &Group, Means: "Conditions of `filter`, after those that all queries have."},
	{Name: "exclude", Holds: Groups, Of: &Group, Means: "Conditions of `exclude`, after those that all queries have."},
	{Name: "text", Holds: Array, Means: "`text`: strings."},
	{Name: "vector", Holds: Array, Means: "`vector`: its elements, of the first query, then of the second, and so on."},
	{Name: "point", Holds: Array, Means: "`point`: latitude and longitude of the first query, then of the second, and so on."},
	{Name: "radius", Holds: Array, Means: "`radius`."},
}}

// Group is conditions that each query of a table has.
var Group = Object{Name: "group", Means: "Conditions on some attributes, which each query has with values of its own.", Fields: []Field{
	{Name: "attrs", Holds: Texts, Required: true, Means: "The attributes, one for each condition."},
	{Name: "value", Holds: Array, Means: "`value` of the conditions of the first query, then of the second, and so on."},
	{Name: "min", Holds: Array, Means: "`min`, likewise."},
	{Name: "max", Holds: Array, Means: "`max`, likewise."},
	{Name: "unit", Holds: Unit, Default: "the attribute's", Means: "`unit` of all of them."},
	{Name: "weight", Holds: Integer, Least: 1, Most: MaxWeight, Default: "1", Means: "`weight` of all of them. Not in filters."},
}}

// Elements are the packed elements of an array of a table. An array has one of them, or is a list.
var Elements = Object{Name: "elements", Means: "Numbers side by side, little-endian.", Fields: []Field{
	{Name: "u8", Holds: Packed, Means: "Unsigned integers of 1 byte."},
	{Name: "u16", Holds: Packed, Means: "Unsigned integers of 2 bytes."},
	{Name: "u32", Holds: Packed, Means: "Unsigned integers of 4 bytes."},
	{Name: "i32", Holds: Packed, Means: "Integers of 4 bytes."},
	{Name: "f32", Holds: Packed, Means: "Floats of 4 bytes. NaN says that there is none."},
	{Name: "f64", Holds: Packed, Means: "Floats of 8 bytes. NaN says that there is none."},
}}

// Rescore is what hits are ordered by.
var Rescore = Object{Name: "rescore", Means: "The order of a measure.", Fields: []Field{
	{Name: "by", Holds: Text, Least: 1, Required: true, Means: "The measure: jaccard, dice, cosine, containment, bm25, edit, l2, l1, ip, angular, tree, graph, or count."},
	{Name: "column", Holds: Text, Default: "the one that fits", Means: "The column."},
}}

// Place is a point as an object.
var Place = Object{Name: "place", Means: "A place on earth.", Fields: []Field{
	{Name: "lat", Holds: Number, Least: -90, Most: 90, Required: true, Means: "Latitude in degrees."},
	{Name: "lon", Holds: Number, Least: -math.MaxFloat64, Most: math.MaxFloat64, Required: true, Means: "Longitude in degrees."},
}}
