// Package similarity is the arithmetic of scores: weights of words, measures of sets, BM25 and distances of vectors, each defined
// to the bit, and what a match count proves of the scores of objects that were not retrieved.
//
// # What is promised
//
// Every number here is defined by this package and not by a processor, a compiler or a library: integers are compared exactly, in as
// many bits as they need; a division of integers is rounded once; sums of floats have an order; products are rounded before they are
// added (Go may fuse x*y + z unless a conversion stands between, and does so on some architectures); and logarithms and angles
// are computed here. So two engines, two architectures and two splits of the work give the same bytes.
//
// # Certificates
//
// Candidates come in the order (count descending, id ascending). An object that was not retrieved has at most the count c of the last
// candidate. Where every distinct query word is one item of weight u w(t), with u the weight of the column, its words in common
// with the query weigh at most x = min(floor(c/u), W(Q)), whatever else was asked ([Set.Reach]). From that follows the most that
// it can score ([Set.Certified], [BM25.Bound]). Equality is enough for a certificate, because an object of the same score that was not retrieved
// follows every candidate in (count, id). Vectors have none: a count of hashes proves nothing.
//
// # Cost
//
// All is made for comparing one query with thousands of objects: a query is made ready once (Reset, which keeps its memory), and a
// comparison allocates nothing. What is ready is for one goroutine at a time while it is made so and for any number afterwards.
package similarity
