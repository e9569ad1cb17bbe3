package gpuexec

import "time"

// Trace is where the time of batches went on their engine, without what other batches of that moment took. A Search call that is
// given one adds to it, which may cost some microseconds. Engines whose stages cannot be told apart, as the CPU engine, add nothing
// but to Host.
type Trace struct {
	Plan     time.Duration // queries to what the kernels read, on the host and on the device
	Upload   time.Duration // of the queries
	Match    time.Duration // counting, and the Gate
	Select   time.Duration // the best k of what passed
	Verify   time.Duration // scoring on the device; what the host scores is in Answer.Rescoring
	Download time.Duration // of the answers
	Work     Work          // what was done in Match
	Host     HostTrace
}

// HostTrace is how long a call was at its steps on the host, by the clock: whatever it waited for is in it, and so are other batches. The steps
// follow each other and are all of the call. Match is counting by the engine, and Plan, Encode and Decode are parts of it. What is left of
// that beside the stages of the device is waiting for a lane and for the driver.
type HostTrace struct {
	Check   time.Duration // plans
	Match   time.Duration
	Answer  time.Duration // what needs no rescoring: entries to hits
	Rescore time.Duration // of all rounds, with their matching and scans

	Plan   time.Duration // what queries ask of a device
	Encode time.Duration // all of them, for the copy to it; and pieces are planned
	Decode time.Duration // its answers
}

// Add adds other to h.
func (h *HostTrace) Add(other HostTrace) {
	h.Check += other.Check
	h.Match += other.Match
	h.Answer += other.Answer
	h.Rescore += other.Rescore
	h.Plan += other.Plan
	h.Encode += other.Encode
	h.Decode += other.Decode
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

// Counted is where the work of a batch is counted; nil where nobody asks.
func (t *Trace) Counted() *Work {
	if t == nil {
		return nil
	}
	return &t.Work
}

// Sum is the time of all stages, but for Host.
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
	t.Host.Add(other.Host)
}
