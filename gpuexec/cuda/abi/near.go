package abi

import "unsafe"

// Of kernels/near.cuh and near_*.cu, searches by distance.

// How elements are stored (enum NearStorage).
const (
	NearF32 uint32 = iota
	NearF16
	NearU8
	NearF64
)

// WarpHits is how many hits a warp keeps of a query, at most.
const WarpHits = 128

// MostHeld is how many values the threads of a block hold, at most, of which they find the n-th.
const MostHeld = 4096

// MostKept is how many objects of a sample are candidates of a query before its limit is known, at most.
const MostKept = 256

// Sizes in bytes.
const (
	NearEntryBytes = 16
	NearQueryBytes = 48
	NearStateBytes = 48
)

var (
	_ = [1]struct{}{}[unsafe.Sizeof(NearEntry{})-NearEntryBytes]
	_ = [1]struct{}{}[unsafe.Sizeof(NearQuery{})-NearQueryBytes]
	_ = [1]struct{}{}[unsafe.Sizeof(NearState{})-NearStateBytes]
)

// NearEntry is an object and its value as an integer.
type NearEntry struct {
	Value uint64
	Id, _ uint32
}

// NearQuery is a query as the host sends it.
type NearQuery struct {
	Most         uint64
	Entries, Out uint64
	Norm         float64
	K, Passing   uint32
	Counts, _    uint32
}

// NearState is what the kernels know of a query.
type NearState struct {
	Limit, Within, Passed, Listed uint64
	Stored, Kept                  uint32
	List, Given                   uint32
}

// Near is the argument of the kernels.
type Near struct {
	Rows, Norms, Vectors, Queries, States, Entries, Out, Sets, Present, Lists, Cells Pointer
	Dims, Storage, Power, PassingWords                                               uint32
	FirstQuery, QueriesOfBatch                                                       uint32
	First, End, Base                                                                 uint32
	ListRoom                                                                         uint32
}

// Of kernels/near_sieve.cuh.

// Numbers of the sieve.
const (
	SieveObjects = 128 // of a block at a time
	SieveQueries = 128 // of a block

	NearReachBytes  = 16
	NearSievedBytes = 24
)

var (
	_ = [1]struct{}{}[unsafe.Sizeof(NearReach{})-NearReachBytes]
	_ = [1]struct{}{}[unsafe.Sizeof(NearSieved{})-NearSievedBytes]
)

// What a sieve's product is of (enum NearProduct).
const (
	NearHalves uint32 = iota
	NearBytes
	NearBoxes
	NearCodes
	NearFloats
)

// NearReach is what is known of a tile.
type NearReach struct{ Norm, Remainder float64 }

// NearSieved is what is known of a query.
type NearSieved struct{ Norm, Square, Remainder float64 }

// NearSieve is the argument of near_sieve_*.
type NearSieve struct {
	Near                                  Near
	Few, Begins, Reaches, Sieved, Queries Pointer
	Gamma, Scale                          float64
	Steps, Stretch                        uint32
}

// NearLevels is the argument of near_levels and near_levels_of.
type NearLevels struct {
	Sieve NearSieve
	Least Pointer
}

// NearRanked is the argument of the kernels of near_ranks.cu.
type NearRanked struct {
	Near                             Near
	Queries, States, Entries, Starts Pointer
	Symbols, _                       uint32
}

// NearRankScan is the argument of rank_* and near_guess.
type NearRankScan struct {
	Near                           Near
	Stride, Room, Objects, Stretch uint32
}

// NearCelled is the argument of near_cells_*.
type NearCelled struct {
	Near                                    Near
	Queries, States, Entries, Starts, Order Pointer
	Nearest, _                              uint32
}

// Of kernels/near_visits.cuh.

// VisitQueries is how many queries a group has, and cells begin at multiples of VisitObjects.
const (
	VisitQueries = 64
	VisitObjects = 32

	NearGroupBytes = 12
)

var _ = [1]struct{}{}[unsafe.Sizeof(NearGroup{})-NearGroupBytes]

// NearGroup is queries that visit a cell.
type NearGroup struct{ Cell, First, Queries uint32 }

// NearVisits is the argument of near_visits, and of what comes before and after it.
type NearVisits struct {
	Few, Begins, Reach, Padded, Starts, Order    Pointer
	Asked, Found, Cells                          Pointer
	Counts, Pairs, Groups                        Pointer
	Queries, States, Entries, Out, Lists, Sieved Pointer
	Halves                                       Pointer
	Gamma, Scale                                 float64
	Dims, Angles, Steps                          uint32
	QueriesOfBatch, ListRoom, Count              uint32
}

// NearVisitsOrder is the argument of near_visits_order.
type NearVisitsOrder struct {
	Few, Begins, Reaches, Starts, Order, Padded, FewTo, BeginsTo, ReachTo Pointer
	Steps, Tiles                                                          uint32
}

// NearOrder is the argument of near_order.
type NearOrder struct {
	Rows, Norms, Order, RowsTo, NormsTo Pointer
	Places, Bytes                       uint32
}

// GramAskBytes is the size of a GramAsk.
const GramAskBytes = 16

var _ = [1]struct{}{}[unsafe.Sizeof(GramAsk{})-GramAskBytes]

// GramAsk is what a query counts: numbers of lists, frequent ones and then rare ones.
type GramAsk struct {
	First, Frequent, Rare, Least uint32
}

// NearGrams is the argument of near_grams and near_grams_listed.
type NearGrams struct {
	Near                                                   Near
	Asks, Numbers, Starts, Tiles, Ids, RareStarts, RareIds Pointer
	Frequent, _                                            uint32
}

// NearAsk is the argument of near_ask.
type NearAsk struct {
	Asked, Vectors, Queries, States, Mean, Sieved, Few Pointer
	Scale, Wrong                                       float64
	Dims, Steps                                        uint32
	QueriesOfBatch, Angles                             uint32
	Product, _                                         uint32
}

// NearLoad is the argument of the kernels of near_load.cu.
type NearLoad struct {
	Rows, Present, Mean, Norms, Few, Begins, Reaches, Largest Pointer
	Scale, Wrong, Gamma                                       float64
	Dims, Storage, Objects, Steps                             uint32
}
