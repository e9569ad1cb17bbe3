package abi

// Of kernels/filter.cu and of what gates meet, batch.cuh.

const (
	TileWords   = TileObjects / 32 // of a bit per object
	NoFilter    = 1<<32 - 1        // of a query without one
	FilterOnly  = 1 << 31          // beside a query's filter: it asks for nothing else
	ClauseFirst = 1                // of its group
	ClauseLast  = 2
	ClauseNot   = 4   // the group is negated
	MostListed  = 512 // objects of a tile that are listed in place of bits

	ClauseBytes     = 32
	FilterHeadBytes = 8
	RangeBytes      = 16
	TotalBytes      = 8
	NumbersBytes    = 16
)

// Filters is what passes the filters of a batch.
type Filters struct {
	Passing, PassingOfTile, FilterOf Pointer
	PassingWords, _                  uint32
}

// FilteredBatch is Batch for the variants of kernels that meet filters.
type FilteredBatch struct {
	Batch   Batch
	Filters Filters
}

// FilteredSliced is Sliced for them.
type FilteredSliced struct {
	Sliced  Sliced
	Filters Filters
}

// FilteredBound is BoundMatch for bound_recount_filtered.
type FilteredBound struct {
	Bound   BoundMatch
	Filters Filters
}

// Clause is a clause of a filter.
type Clause struct {
	Attribute, Flags    uint32
	First, Spans, Edges uint32
	FirstRange, Ranges  uint32
	_                   uint32
}

// FilterHead says which clauses a filter has.
type FilterHead struct {
	First, Clauses uint32
}

// Numbers says where the stored values of an attribute lie.
type Numbers struct {
	Starts, Values Pointer
}

// FilterTiles is the argument of filter_tiles.
type FilterTiles struct {
	Data, Sections, Planes, Rare, Forms, Numbers Pointer
	Filters, Clauses, Spans, Ranges              Pointer
	Passing, PassingOfTile, Totals               Pointer
	Attributes, Objects, FirstTile, ResidentTile uint32
	Base, PlanesOfGroup, PassingWords, Listing   uint32
}
