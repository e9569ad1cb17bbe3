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

// TermsTask is what one block compares: some entries of an answer.
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
}
