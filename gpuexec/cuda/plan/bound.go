package plan

import "github.com/geniemq/geniemq/gpuexec/cuda/abi"

// A BoundLaunch is the bound's part of a piece. The objects are taken in waves of ascending ids, each two launches:
// bound_match marks the objects whose count may reach the query's threshold, bound_recount counts these, stores
// those that do reach it, and raises the threshold to what k stored objects have reached. In the first wave everything that
// matches passes, so it is small, and each wave is as large as all before it, up to the most that the marks have room for.
//
// The candidates are bounded whatever the data: bound_recount cuts them to k whenever there is no room for the objects that
// it counts next. So is the work: when a query marks more than a share of a wave's objects it is abandoned. Nothing more is
// counted for it, and the batch has it executed again, by another kernel.
type BoundLaunch struct {
	First, Count    int // queries of the piece
	Blocks, Columns int
	// Offsets in its memory, which begins at Scratch of the arena; masks come first.
	Scratch            int64
	Ranges, Marks, End int64
}

// boundEntries is the candidates of a query.
func boundEntries(k int) int64 { return 2*int64(k) + abi.BoundRoom }

// newBoundLaunch sizes the launch of so many queries on codes; none is empty.
func newBoundLaunch(first, count int, c *Codes, processors int) (b BoundLaunch) {
	if count == 0 {
		return b
	}
	b = BoundLaunch{First: first, Count: count, Blocks: (count + abi.BoundQueries - 1) / abi.BoundQueries}
	b.Columns = max(1, processors/b.Blocks)
	b.Ranges = abi.Align(int64(b.Blocks) * int64(c.Steps()) * abi.StepBytes)
	b.Marks = abi.Align(b.Ranges + int64(count)*2*int64(c.RowBytes()))
	b.End = abi.Align(b.Marks + int64(count)*abi.BoundMarkBytes)
	return b
}

// steps is how many steps of the matrix product the launch takes.
func (b *BoundLaunch) steps(c *Codes) uint64 {
	return uint64(b.Blocks) * uint64(c.Steps()) * uint64(c.Objects/abi.BoundTile)
}
