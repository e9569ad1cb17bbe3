// Package index is the immutable inverted index: its schema, how it is built, its file, and how it is read.
//
// A Builder takes objects as values of attributes, which package index/encode makes of records, and writes a file. Open
// maps the file; see Index for what an open index is and guarantees. docs/format.md draws the file byte by byte.
//
// Queries are here too, as far as an index knows them: lists of items that select keywords (Query). Counting matches is
// the work of package gpuexec.
package index
