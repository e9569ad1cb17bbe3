package kernels

// Match is a variant of the (query, tile) kernel: the width of a counter, and how many blocks count a tile, each a group of
// its objects. The kernel is named Name; its constants Name_threads and Name_shared are the threads of a block and the bytes
// of dynamic shared memory that it needs.
type Match struct {
	Name     string
	Filtered string // the variant for queries with filters
	Bits     int    // of a counter
	Blocks   int    // per tile, of 64,512 / Blocks objects each
}

// MatchVariants are the variants in the order in which a query prefers them: the first whose counters hold its
// count bound and whose shared memory a block of the device may have. Every device has room for the last one.
//
// A wider counter costs shared memory, hence blocks that run at a time, and where several blocks share a tile each
// reads all postings of the tile.
var MatchVariants = [...]Match{
	{"match_4_1", "filtered_4_1", 4, 1},
	{"match_8_1", "filtered_8_1", 8, 1},
	{"match_16_1", "filtered_16_1", 16, 1},
	{"match_16_2", "filtered_16_2", 16, 2},
	{"match_32_2", "filtered_32_2", 32, 2},
	{"match_32_4", "filtered_32_4", 32, 4},
}

// SelectThreads is the number of threads of a block of every kernel in select.cu, load.cu and resolve.cu.
const SelectThreads = 256
