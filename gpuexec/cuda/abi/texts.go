package abi

import "math"

// Of kernels/edit.cuh, verify.cu and scan.cu, which compare texts.

// Numbers of the comparison of texts.
const (
	TextHead        = 4 // bytes before the symbols of a text: its length
	SymbolBytes     = 2 // of a pattern, however many the symbols of texts have
	DistanceBytes   = 4
	NoSymbol        = math.MaxUint16 // a symbol that no text has
	MaxNarrow       = 256            // symbols that one byte tells apart
	HashSlots       = 128            // of the hash table of 64 rows of a pattern
	HashedMaskBytes = HashSlots * (8 + 4)
)

// VerifyTask is what one warp compares: some entries of an answer.
type VerifyTask struct {
	Answer, Places, Rank, Ranks, Distances, Pattern, Length uint32
}

// Verify is the argument of the kernels of verify.cu.
type Verify struct {
	Texts, Starts, Out, Patterns, Tasks, Distances Pointer
	FirstTask, Lanes, Symbols, Base                uint32
}

// ScanQuery is what a scan knows of a query beside Query.
type ScanQuery struct {
	Pattern, Length, MinCount, _ uint32
}

// Scan is the argument of the kernels of scan.cu.
type Scan struct {
	Texts, Starts, Patterns, Scans, Queries, States, Entries Pointer
	FirstQuery, Lanes, First, End, Symbols, Base, Ngram, _   uint32
}
