package gpuexec

import "time"

// Trace is where the time of batches went on their engine, without what other batches of that moment took. A Search call that is
// given one adds to it, which may cost some microseconds. What is left of the whole call is checking plans, waiting, and making
// hits. Engines whose stages cannot be told apart, as the CPU engine, add nothing.
type Trace struct {
	Plan     time.Duration // queries to what the kernels read, on the host and on the device
	Upload   time.Duration // of the queries
	Match    time.Duration // counting, and the Gate
	Select   time.Duration // the best k of what passed
	Verify   time.Duration // scoring on the device; what the host scores is in Answer.Rescoring
	Download time.Duration // of the answers
	Work     Work          // what was done in Match
}

// Work is what the kernels of a batch did, to hold against what a device can do. Of members of a group that share a batch it
// is that of the one that took longest, as the times are.
type Work struct {
	// Of the (query, tile) kernel: its queries, and the postings that it added to counters one by one. Where it reads planes
	// instead, postings are not counted.
	TileQueries  int
	TilePostings uint64
	// Of the shared-decode kernel: its queries, and the rows, of 1,024 objects each, that it added to counters.
	SlicedQueries int
	SlicedRows    uint64
	// Of the bound: its queries, and the steps of its matrix product, each of 8 attributes of 64 objects for 128 queries.
	BoundQueries int
	BoundSteps   uint64
	// Bytes is the device memory that the batch used beside the index: queries, states, candidates, programs, marks, answers. Of
	// batches, and of pieces of one that does not fit, it is the largest; BytesQueries are the queries that it was for.
	Bytes        int64
	BytesQueries int
}

// Add adds other to w.
func (w *Work) Add(other Work) {
	w.TileQueries += other.TileQueries
	w.TilePostings += other.TilePostings
	w.SlicedQueries += other.SlicedQueries
	w.SlicedRows += other.SlicedRows
	w.BoundQueries += other.BoundQueries
	w.BoundSteps += other.BoundSteps
	w.Used(other.Bytes, other.BytesQueries)
}

// Used takes notice of the memory of a piece.
func (w *Work) Used(bytes int64, queries int) {
	if bytes > w.Bytes {
		w.Bytes, w.BytesQueries = bytes, queries
	}
}

// Sum is the time of all stages.
func (t *Trace) Sum() time.Duration {
	return t.Plan + t.Upload + t.Match + t.Select + t.Verify + t.Download
}

// Add adds other to t.
func (t *Trace) Add(other Trace) {
	t.Plan += other.Plan
	t.Upload += other.Upload
	t.Match += other.Match
	t.Select += other.Select
	t.Verify += other.Verify
	t.Download += other.Download
	t.Work.Add(other.Work)
}
