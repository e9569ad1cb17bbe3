// Package tree is ordered labelled trees: from text or JSON, as stored, into keywords, and compared exactly.
//
// The keywords are binary branches (Yang, Kalnis and Tung, SIGMOD 2005; section II-B of the GENIE paper names them as its way
// to search trees), numbered by occurrence. The match count bounds the edit distance from below ([Factor]); [Pattern] computes the edit
// distance itself.
package tree
