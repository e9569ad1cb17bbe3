// Package profile is what was measured of kinds of devices: the numbers by which the planning of the CUDA engine chooses.
package profile

import (
	"iter"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
)

// A Profile is what was measured of one kind of device. Whatever of planning is a number that a measurement or an estimate of times gave
// stands here and nowhere else. No answer depends on it. What formats, kernels and bounds of memory need is none of these, nor are the forms
// of launches, the grains into which cores cut work, and the sizes of samples: they stand where they are used.
//
// Times of kernels are nanoseconds of one multiprocessor, those of the host nanoseconds of a core.
type Profile struct {
	Device string // whose measurements these are
	// Lanes is how many batches are executed at a time, AtHand how many are at hand beside those. A batch is on the host for half of its time: with two lanes a
	// device waited for it, and with four some workloads are faster and some slower. A batch at hand goes on as soon as a lane is free, while the one before is answered.
	Lanes, AtHand int

	Tile    TileCosts
	Sliced  SlicedCosts
	Bound   BoundCosts
	Waves   Waves
	Pieces  PieceSizes
	Scan    ScanSizes
	Near    NearWaves
	Host    HostCosts
	Paths   Paths
	Filters Filters
}

// TileCosts are those of the (query, tile) kernel.
type TileCosts struct {
	Posting float64 // a posting
	Block   float64 // a query and tile
	Plane   float64 // a plane of a tile, where what is sliced has no postings
	Copying float64 // a byte of an index that is streamed, over the bus: of every multiprocessor
	Hit     float64 // each of the k that a query wants: Gate, compaction and selection
}

// SlicedCosts are those of the shared-decode kernel.
type SlicedCosts struct {
	Octet  float64 // decoding eight rows of 1,024 objects, for a query block: rows of one value
	Bounds float64 // the same, rows of a range's end
	Tree   float64 // adding eight rows of 1,024 objects to one query, while others decode
	Group  float64 // 1,024 objects of a query block: Gate, hand-over
	Launch float64 // planning and starting, for each part of the index: of every multiprocessor
	// Hit is for each of the k that a query wants: it stores more candidates than the (query, tile) kernel, and a warp alone
	// settles them.
	Hit float64
}

// BoundCosts are those of the bound.
type BoundCosts struct {
	Step    float64 // eight columns of 64 objects, for a query block
	Wave    float64 // two launches and their ends, of every multiprocessor
	Recount float64 // an object
	Spill   float64 // objects that are counted in a wave for each of the k wanted
	Bits    int     // of an item's mask of more than 32 codes, at most, on average
	Columns int     // narrow attributes that an index has at least
	Rest    int     // batches, or pieces of such as are cut, for which the bound rests after it has not paid
}

// Waves say how objects are cut into waves. Waves grow: the first gives a threshold cheaply, and later ones profit
// from it. The end of a wave leaves multiprocessors idle, so there should not be many.
type Waves struct {
	Blocks int // of the first wave, per multiprocessor
	Growth int // from wave to wave
	// Of the shared-decode kernel: groups of the first wave, and of the others, per block that shares them.
	FirstGroups, Groups int
	// Of the bound: objects of the first wave, and of any, multiples of 64. A query is abandoned that marks more than one of
	// BoundShare objects of a wave.
	BoundFirst, BoundMost, BoundShare int
}

// PieceSizes bound the pieces of a batch.
type PieceSizes struct {
	// Waves of the (query, tile) kernel get narrower where wide ones would take more memory for candidates than Candidates bytes,
	// for each query of a batch and for SmallBatch queries; but not narrower than WaveTiles for the sake of that, since what a wave
	// has found is compacted at its end, with the k that are kept: with 10,000 hits, waves of one tile take up to five times the
	// time of the widest (docs/benchmarks/history/2026-11-21-h200-policy.md).
	Candidates, SmallBatch, WaveTiles int
	// Smallest is as small as pieces become for the sake of kernels whose queries share the work: about a block of queries.
	Smallest int
	// StreamedPart is how many bytes a part of a streamed index has at most, unless a tile is larger. To copy it takes 5 ms: much
	// longer than the launch and the compaction that a part costs, and kernels wait so long for the first one. Larger parts would
	// only take memory that other indexes may need.
	StreamedPart int64
}

// ScanSizes bound the pieces of a scan of texts.
type ScanSizes struct {
	// Batch and Step are what a scan by distance takes on the whole device: nanoseconds of a batch, and picoseconds of a symbol of a text that is compared with 64
	// symbols of a query or fewer; Signs is the share of a step that a text takes which its signs say to be far.
	Batch, Step, Signs float64
	// Work is what a piece does, and a launch, in bytes times lanes of a warp: about 10 ms, for which kernels of other batches may
	// have to wait.
	Work int64
	// LeastWave is how many objects a wave has at least.
	LeastWave int
	// Blocks is how many blocks the first wave has per multiprocessor, Growth how many times as wide the next one is.
	Blocks, Growth int
}

// NearWaves say how objects are cut into waves for searches of vectors and points by distance, and what searches take. Measured on an H200:
// docs/benchmarks/history/2026-11-22-h200-near.md.
type NearWaves struct {
	// First is how many objects the first wave has, Growth how many times as many objects have been seen after a wave as before. Waves that are scanned have room for
	// Least objects at least; those that are sieved have Sieved at most, and lists of List objects: who needs more is scanned. First, Sieved: multiples of abi.SieveObjects.
	First, Growth, Least, Sieved, List int
	// Over is how much wider waves may be than Growth says, so that the last one is not what is left over: a power of it. Each wave takes some time whatever it has.
	Over float64
	// FewHits is how many hits of FewObjects a warp is quicker to keep than a block to find, in the worst order too.
	FewHits, FewObjects int
	// FoundList is how many places the list of a vector has for each object that a builder wants, and FoundLeast how many at least: a wave puts five objects on it for each as a
	// rule (Growth), and a list without room costs a scan. Shorter lists leave room for more vectors.
	FoundList, FoundLeast int
	// CellsFirst and CellsList are First and List of centroids, of which the nearest few are wanted. Of smaller batches than CellsLeast a host's cores have answered before a device has.
	CellsFirst, CellsList, CellsLeast int
	// Cells are visited by many queries together where a cell has CellsPairs of them on average, beside those that it is the nearest of, or a query has so many as CellsEach cells; lists have
	// CellsList objects at least then. A query that visits CellsAlone objects is the device's in smaller batches than CellsLeast too.
	CellsPairs            float64
	CellsEach, CellsAlone int
	// CellsMost is the most objects of the cells that a query visits alone: of more its few warps are estimated to take longer than a core of the host. CellsTogether is that of one whose
	// cells are visited together. A scan may visit any number. CellsListed is of how many objects that are visited the list of a query has room for one, at least.
	CellsMost, CellsTogether, CellsListed int
	// CellsElement is what an element of an object that is visited takes, in picoseconds: where that is more than a sieve of all objects takes, all are scanned, and those of other cells passed over.
	CellsElement float64
	// RanksMost is the most candidates that a query has by rank vectors: those of more are cheaper to come by where they are compared, on the host.
	RanksMost int
	// Guessed is how many rank vectors there are at least before limits are guessed, GuessedShare of how many one is wanted, at most, and one is in the sample.
	Guessed, GuessedShare int
	// Sample is how many objects give queries of SampleHits hits at most their first limits, by sums of float16s, where a column has SampleShare times as many: a multiple of abi.SieveObjects,
	// no more than List.
	Sample, SampleHits, SampleShare int
	// SievedHits is the most hits of a query that is sieved, Grouped how many steps a product of float16s has at least that groups of warps take, and Levelled how many
	// objects have been seen for each hit, at least, before bytes go by levels, of columns of LevelSteps steps at least.
	SievedHits, Grouped, Levelled, LevelSteps int
	// LevelsLeave is the largest share of objects that levels may leave of a wave, as a sample shows that takes LevelsWork steps to compare.
	LevelsLeave float64
	LevelsWork  int
	// Of blocks of a sieve that go through objects: how long one Prepares its queries, in abi.SieveObjects that it could go through, and in how many Rounds they run at most.
	Prepares, Rounds int

	// What they take on the whole device, beside what the host has to do for any answer: nanoseconds of a batch, and of a wave that is scanned; picoseconds of a pair of query and object for each
	// step of the sieve's product, of float16s and of bytes; and of an element of a pair that is compared.
	Batch, Wave, Step, Bytes, Element float64
	// Powers of lp are raised in a scan: so many take as long as an element.
	ElementPowers float64
	// Places is for how many hits who wants what is within a radius has room at first, MorePlaces how many times as much room there is where that is full. A scan takes about as long
	// whatever room there is, so few are to be asked more often than twice.
	Places, MorePlaces int
	// Place is what it takes to copy back a place of an answer, of which there are as many as hits are wanted, in nanoseconds. Of all within a radius that stands for their hits, which are not
	// known: a tree is to be taken where they may be many. Hit is what a hit within a radius takes beside that, as far as a tree knows how many there are.
	Place, Hit float64
	// Steps of bytes within boxes, of codes, and of float32s by their power from 3 on, of which 4 to 7 are estimated
	// (docs/benchmarks/history/2026-11-28-h200-linf-lp-hamming.md).
	Boxes, Codes float64
	Powers       [6]float64

	// Deep is what a warp that goes down a tree depth first takes at a node or 32 objects, in nanoseconds, and DeepWarps how many such a multiprocessor has at once.
	// Of smaller batches than DeepLeast a host's cores have answered before a device has.
	Deep                 float64
	DeepWarps, DeepLeast int
	// Leaves is how many leaves of a query a round of a descent admits at most: what is wanted falls after each.
	Leaves int
	// GramTile is what counting a tile for a query takes on the whole device, in nanoseconds, and GramLook what looking its n-grams up takes on the host.
	GramTile, GramLook float64
	// What the host does, in nanoseconds: Encode and Decode are those of an ask, which is read from memory, Sort of a hit of many. Alone is what one core encodes at once: to wait for others would
	// take as long, while a lane is held.
	Encode, Decode, Sort, Alone int
}

// Paths are the ways to search by distance on a device that answer queries. What has not been measured, or does not pay, is off: the host does it
// (gpuexec.CUDAOptions.Untried).
type Paths struct {
	Texts bool // scans of texts
	// Vectors: scans of vectors and points. Sieves: a product of few bits drops most vectors before; Levels: of bytes by their levels first, where a device can do that.
	Vectors, Sieves, Levels bool
	// Descents of trees: Depth: depth first, where a tree has boxes and few hits are wanted; TextTrees: over texts; Trees: all others, over vectors and points.
	Depth, TextTrees, Trees bool
	Ranks, Cells            bool // candidates by rank vectors, and in cells to a recall
	Grams                   bool // n-grams are counted, of texts within a radius
	RankGuesses             bool // which rank vectors are near is guessed from a sample first
}

// Filters says how what passes filters lies on the device.
type Filters struct {
	// Lists: of tiles in which at most 512 objects pass, a list of these in place of a bit for each object (kernels/listed.cuh). Where 0.1 % pass, match and
	// select of a million goods take 0.31 ms with them and 0.37 without, where 5 % pass, 0.53 and 0.52
	// (docs/benchmarks/history/2026-11-22-h200-accept.md).
	Lists bool
}

// HostCosts are of the host, which decides by them how many cores are worth waking.
type HostCosts struct {
	PlanSpan, EncodeSpan int // a span
	PlanFilter           int // a filter, with what of it has to be waited for; encoding it takes as much
	AnswerBytes          int // of an answer that are copied in a nanosecond
	AskWord, AskQuery    int // what is asked of candidates: a symbol or term, and a task
}

// Of is the profile for a device of a name: that of an H200, until others are measured. Their times differ, but mostly by
// one factor, and what planning compares is times of the same device.
//
// It is measured on an H200 (docs/benchmarks/history/2026-11-21-h200-two-kernels.md). The (query, tile) kernel takes
// 0.43 ps per posting and 6 ns per query and tile over 132 multiprocessors, and 255 ns of one for a plane of a tile
// (2026-11-21-h200-layouts.md); 55 GB/s are copied. The shared-decode kernel takes 8 us for 1,024 objects of a block of
// Adult's queries, and 40 us of W1's, which decode six times as many octets in rows of one value (2026-11-21-h200-sliced.md,
// state D). What large k add was measured with k of 10 to 10,000 (2026-11-21-h200-policy.md): 58 to 83 ns per hit by
// waves of sixteen tiles; in shared decode 460 of 0.98 M rows and 1,550 of 4.5 M signatures. By all these, 1,024 queries of
// one value per attribute of 67 keywords are equal where lists hold 2.2 % of the objects.
//
// The bound is measured with W1 (2026-11-21-h200-tensor.md; ranges and large k: 2026-11-21-h200-policy.md). There a batch
// takes 12.8 ms in place of 37.6 when masks have 21 of 32 bits, 30.5 with 25, and 42.9 with all, when every query is abandoned.
// Of data that is less selective more objects are counted; what that can cost at most, abandoning bounds.
//
// Searches by distance (2026-11-22-h200-near.md, 2026-11-29-h200-trees.md, 2026-11-29-h200-cells.md, 2026-11-29-h200-together.md, 2026-11-30-h200-samples.md): scans of vectors and of texts beat 16 cores 4 to 125 times, at any size of a batch; so do trees of texts and rank vectors;
// cells do in batches from 8 on, or where a query visits much, n-grams within a radius in any, and trees with boxes in large batches. Descents of other trees by rounds take 10 us per query where the host takes 2, and stay off.
func Of(string) *Profile {
	return &Profile{
		Device: "NVIDIA H200", Lanes: 3, AtHand: 1,
		Tile:   TileCosts{Posting: 0.056, Block: 800, Plane: 255, Copying: 0.018, Hit: 75},
		Sliced: SlicedCosts{Octet: 17, Bounds: 23, Tree: 8, Group: 2.5e3, Launch: 300e3, Hit: 1e3},
		Bound:  BoundCosts{Step: 40, Wave: 36e3, Recount: 25, Spill: 2, Bits: 22, Columns: 32, Rest: 64},
		Waves: Waves{Blocks: 8, Growth: 6, FirstGroups: 1, Groups: 3,
			BoundFirst: 1024, BoundMost: 2 * abi.BoundMarks, BoundShare: 32},
		Pieces: PieceSizes{Candidates: 48 << 10, SmallBatch: 256, WaveTiles: 64, Smallest: 128, StreamedPart: 256 << 20},
		Scan:   ScanSizes{Work: 1 << 34, LeastWave: 16 << 10, Blocks: 2, Growth: 4, Batch: 80e3, Step: 2.5, Signs: 0.15},
		Near: NearWaves{First: 128, Growth: 6, Least: 16 << 10, Sieved: 8 << 20, List: 4096, Over: 0.15, FewHits: 32, FewObjects: 4096, FoundList: 32, FoundLeast: 512,
			CellsFirst: 512, CellsList: 1024, CellsLeast: 8, CellsPairs: 1, CellsEach: 16, CellsAlone: 8192, CellsElement: 0.29, CellsMost: 256 << 10, CellsTogether: 4 << 20, CellsListed: 128,
			RanksMost: 8192, Guessed: 16 << 10, GuessedShare: 4, Sample: 4096, SampleHits: 128, SampleShare: 4, SievedHits: 256, Places: 1024, MorePlaces: 8, Grouped: 8, Levelled: 10_000, LevelSteps: 16, LevelsLeave: 0.005, LevelsWork: 300_000_000, Prepares: 4, Rounds: 8,
			Batch: 100e3, Wave: 120e3, Step: 0.117, Bytes: 0.085, Element: 0.45, ElementPowers: 8, Place: 0.3, Hit: 15,
			Boxes: 0.14, Codes: 0.155, Powers: [...]float64{0.137, 0.13, 0.17, 0.17, 0.21, 0.153}, Deep: 2e3, DeepWarps: 24, DeepLeast: 256, Leaves: 64, GramTile: 26, GramLook: 3.5e3,
			Encode: 300, Decode: 250, Sort: 30, Alone: 1e6},
		Host:  HostCosts{PlanSpan: 10, EncodeSpan: 4, PlanFilter: 100, AnswerBytes: 4, AskWord: 8, AskQuery: 300},
		Paths: Paths{Texts: true, Vectors: true, Sieves: true, Levels: true, TextTrees: true, Depth: true, Ranks: true, RankGuesses: true, Cells: true, Grams: true},

		Filters: Filters{Lists: true},
	}
}

// First is the number of tiles of the first wave. Few queries run in one wave: their blocks would not fill the
// device, and compactions cost latency.
func (w *Waves) First(processors, queries, tiles, most int) int {
	first := (processors*w.Blocks + queries - 1) / queries
	if first*2 >= tiles {
		return tiles
	}
	return min(first, most)
}

// Bound are the waves over so many objects: the first of each, and how many it has.
func (w *Waves) Bound(objects int) iter.Seq2[int, int] {
	return func(yield func(first, count int) bool) {
		for first, count := 0, w.BoundFirst; first < objects; count = first {
			count = min(count, w.BoundMost, objects-first)
			if !yield(first, count) {
				return
			}
			first += count
		}
	}
}
