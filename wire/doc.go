// Package wire is version 1 of geniemq's protocol: what a query and a result look like in JSON and in
// MessagePack, how subjects and headers are named, what is refused, and with which error code.
//
// # The shape of the protocol
//
// A message holds one [Query], or many of them as {"queries":[...]}, or, where they have one shape, as arrays, {"table":{...}} ([AppendTable]). Its answer is one [Result], or an [Answer]
// {"first":0,"results":[...]} with the results in the order of the queries. JSON and MessagePack have the same
// field names and the same meaning; one decoder serves both, over a token reader for each, so they cannot drift
// apart. Everything about a query can be said in the body: headers are optional, and any NATS client can ask.
//
// # What decoding promises
//
//   - A body is untrusted. No length prefix is believed: memory is taken as content is read, at most a small
//     multiple of the body, and [Limits] bound the rest. Nothing recurses on input, so depth costs no stack.
//   - A fault is either the message's or one query's. What cannot be read as JSON or MessagePack, is nested too
//     deeply, or exceeds a limit on the whole message fails the message ([DecodeMessage] returns the error). Every
//     other fault fails its query alone, which keeps its id wherever the id can be read; its neighbours are answered.
//   - Writers are held to the letter: names are case-sensitive, an unknown or repeated field is refused by name, so
//     that a misspelt option is never silently ignored. Readers of results are lenient: unknown fields are skipped,
//     so that a server may say more tomorrow.
//   - A condition of a shape that is not known here is no fault: it is kept as a tree of values, see [Other], for the
//     column that it names.
//   - A decoded query has its defaults filled in and passes [Query.Validate]. What needs the index's schema (does
//     the attribute exist, is it a number?) is left to the service.
//   - Errors are of type *[Error]: a code for programs, a sentence for people.
//
// # Why the codecs are as they are
//
// JSON is read with github.com/go-json-experiment/json/jsontext rather than encoding/json. It is the tokenizer that
// encoding/json itself is moving to; it parses out of the caller's buffer without copying, keeps its state in a
// stack instead of recursing, and hands out tokens, which is what "decode queries one by one, name the bad field,
// go on with the next" needs. encoding/json decodes whole structs, folds the case of names and accepts repeated ones.
//
// MessagePack is read and written by the few functions of internal/msgpack. The usual library, vmihailenco/msgpack,
// allocates what a length prefix claims (eight bytes made it take 1 GiB) and recurses on nesting, so that its input
// must be scanned first; the scan has to parse every header anyway, and two parsers of one format are two opinions
// of what a message says. Reading each header once is safe by construction and cheaper: 1,024 rows of 14 ranges
// decode in 3.1 ms with 56 allocations, with the library (after a scan, into bare structs) in 5.1 ms with 48,136; an
// array of 128 floats in 1.6 us instead of 5.4 (BenchmarkDecode, BenchmarkVector; two shared cores). The library is
// the judge in the tests: everything written here must read the same there, and the reverse.
//
// Results are written by appending to a byte slice: a batch of 1,024 queries with 100 hits each is 100,000 hits,
// and reflection, interfaces and intermediate maps would cost more than the search.
package wire
