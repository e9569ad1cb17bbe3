// Package graph is undirected graphs whose vertices have labels: from JSON, as stored, into keywords, and compared exactly where they are
// small.
//
// The keywords are stars (Zeng et al., VLDB 2009; section II-B of the GENIE paper names them as its way to search graphs), numbered by
// occurrence. The match count bounds the edit distance from below ([Factor]); [Pattern] computes the edit distance itself.
package graph
