// Package index puts an index together: which kinds there are (Kinds), how one is built (Builder, Objects), opened (Open, Index) and asked
// (Queries). What it is put together of lies in packages below, each of which can be read without this one:
//
//	schema    what an index is described by, and records
//	column    types of columns: cells to values, conditions to keywords
//	postings  inverted lists; values, of which they are built
//	ngram     strings as n-grams
//	store     the file
//	load      files of records
//	verify    scoring what was found
//
// The way in: a load.Reader reads records, Objects makes values of their cells by the types of their columns, a Builder collects these and writes
// a file. The way back: Open maps the file and opens the structures in it, Queries makes of a user's words what a structure is asked, and an
// engine of package gpuexec searches it.
package index
