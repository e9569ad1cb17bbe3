package kernels

// Match is a variant of the (query, tile) kernel: the counter width and the number of parts that a tile is counted in,
// each by a block of its own. The kernel is named Name, and its constant Name_shared is the shared memory that it needs.
type Match struct {
	Name    string
	Bits    int // of a counter
	Threads int // of a block
	Parts   int // groups of objects a tile, 64,512 / Parts objects each
}

// MatchVariants are the variants in the order in which a query prefers them: the first whose counters hold its
// count bound and whose shared memory a block of the device may have. Every device has room for the last one.
//
// A wider counter costs shared memory, hence blocks that run at a time, and where a tile is cut into parts each
// part reads all postings of the tile. Threads are such that a multiprocessor is full with the blocks that its shared
// memory holds (sm_90: 6, 3 and 1 blocks).
var MatchVariants = [...]Match{
	{"match_4_1", 4, 256, 1},
	{"match_8_1", 8, 512, 1},
	{"match_16_1", 16, 1024, 1},
	{"match_16_2", 16, 512, 2},
	{"match_32_2", 32, 1024, 2},
	{"match_32_4", 32, 512, 4},
}

// SelectThreads is the number of threads of a block of every kernel in select.cu and load.cu.
const SelectThreads = 256
