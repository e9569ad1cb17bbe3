package abi

// Of kernels/terms.cu, which compares candidates by the terms that they hold.

// Numbers of the comparison of terms.
const (
	TermsThreads    = 128     // of a block
	MaxAskedTerms   = 256     // of a query
	MaxObjectTerms  = 1 << 16 // of an object that is compared
	TermsTaskBytes  = 48
	AskedTermBytes  = 16
	TermsScoreBytes = 8

	OrderThreads     = 128  // of a block that puts candidates in order
	OrderLeastRoom   = 1024 // of a block, at least: candidates
	MostOrdered      = 1024 // hits that come back in order
	TermsOrderBytes  = 24
	OrderedHitBytes  = 16
	OrderedHeadBytes = 8
)

// What is computed (enum TermsMeasure).
const (
	TermsCounted uint32 = iota
	TermsSummed
	TermsBM25
)

// AskedTerm is a term of a query.
type AskedTerm struct {
	Term, Weight uint32
	Gain         float64
}

// TermsTask is some entries of an answer.
type TermsTask struct {
	Query, Answer, Rank, Ranks    uint32
	Scores, First, Terms, Measure uint32
	Mean                          float64
	_                             [2]uint32
}

// Terms is the argument of score_terms.
type Terms struct {
	Data, Tiles, Out, States, Tasks, Asked, Scores Pointer
	FirstTask, Lanes, Objects, Base                uint32
	Ranks, _                                       uint32
}

// TermsOrder is a query whose hits come back in the order of scores.
type TermsOrder struct {
	Query, Answer, Scores uint32
	Hits, Wanted          uint32
	_                     uint32
}

// OrderedHit is a hit, with the bits of its score.
type OrderedHit struct {
	Score, Entry uint64
}

// OrderedHead is what is told of a query beside its hits.
type OrderedHead struct {
	Least, Ordered uint32
}

// TermsOrders is the argument of order_terms.
type TermsOrders struct {
	Out, States, Scores, Orders, Heads, Hits Pointer
}
