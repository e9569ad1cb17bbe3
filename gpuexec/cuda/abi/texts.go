package abi

import (
	"math"
	"unsafe"
)

// Of kernels/edit.cuh, verify.cu and scan.cu, which compare texts.

// Numbers of the comparison of texts.
const (
	TextHead        = 4 // bytes before the symbols of a text: its length
	SymbolBytes     = 2 // of a pattern, however many the symbols of texts have
	DistanceBytes   = 4
	NoSymbol        = math.MaxUint16 // a symbol that no text has
	MaxNarrow       = 256            // symbols that one byte tells apart
	MaxPattern      = 2048           // symbols of a pattern that is compared
	MaxText         = 4096           // symbols of a text that is
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

// Of kernels/text_scan.cu.

// Numbers of a search by edit distance.
const (
	TextBlock       = 1024    // positions of a block of threads
	TextTotal       = 1       // TextQuery.Flags: all within are counted
	TextFarthest    = MaxText // no distance is larger
	TextQueryBytes  = 40
	TextCountsBytes = 24
)

// TextQuery is what a search by edit distance knows of a query beside Query.
type TextQuery struct {
	Pattern, Length, Most, Home, Low, High, Filter, Flags uint32
	Signs                                                 uint64
}

// TextCounts are counted beside entries.
type TextCounts struct {
	Within, Distances uint64
	Blocks, _         uint32
}

// TextScan is the argument of the kernels.
type TextScan struct {
	Texts, Starts, Ids, First, Signs, Patterns, Asked, Queries, States, Counts, Entries, Passing Pointer
	FirstQuery, Lanes, FirstRank, Longest, Positions, Symbols, Base, PassingWords                uint32
}

var (
	_ = [1]struct{}{}[unsafe.Sizeof(TextQuery{})-TextQueryBytes]
	_ = [1]struct{}{}[unsafe.Sizeof(TextCounts{})-TextCountsBytes]
)
