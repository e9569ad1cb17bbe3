package plan

import (
	"math"
	"math/bits"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/verify"
)

// Candidates of sequences are compared with the query on the device, in the batch that finds them: once the answers stand
// in device memory a kernel computes edit distances (kernels/verify.cu), and these come down with the answers. There is
// no second round trip. What to make of the distances, where to stop and what is certain, is decided by package verify, as
// for distances that the host computes.
//
// The host stops early, and bounds each comparison by the best so far: a K of 1,000 costs it little more than one of 32.
// The device compares whole warps without bound, where 32 pairs cost as much as one. So it takes the first candidates
// (comparison), those that bounds do not help with, and leaves the others to the host, for most of which their length
// or count is enough. The host also compares patterns of more than 2,048 symbols, single texts of more than 4,096, and in
// indexes whose texts are not on the device (Texts).

// PairClasses are the numbers of a warp's lanes that compare a pair: 1 << class of them.
const PairClasses = 6

// pairClass is the class of a pattern of so many symbols: a lane has 64 rows.
func pairClass(symbols int) int {
	return bits.Len(uint((max(symbols, 1) - 1) / 64))
}

// Compares is true when texts are on the device that are asked for, and it compares patterns as long.
func (x *Index) Compares(n *verify.Nearest) bool {
	return x.Texts != nil && n.Texts == x.Texts.source && len(n.Text) <= x.device.MaxPattern
}

// A comparison is what is compared of a job on the device: its first candidates with a text.
type comparison struct {
	near                     *verify.Nearest // nil: nothing is
	symbols, compared, tasks int32
}

func (x *Index) comparison(job *run.Job) (c comparison) {
	n, ok := job.Rescore.(*verify.Nearest)
	if !ok || !x.Compares(n) {
		return c
	}
	pairs := abi.WarpLanes >> pairClass(len(n.Text)) // of a task
	compared := min(job.K, max(abi.WarpLanes, 2*n.K))
	return comparison{n, int32(len(n.Text)), int32(compared), int32((compared + pairs - 1) / pairs)}
}

// need is what it takes, in bytes sent to the device and in bytes that come back.
func (c *comparison) need() (in, out int64) {
	return abi.SymbolBytes*int64(c.symbols) + abi.VerifyTaskBytes*int64(c.tasks), abi.DistanceBytes * int64(c.compared)
}

// Comparisons are what the device compares of a piece. Tasks of a class follow each other, then come the patterns.
type Comparisons struct {
	Tasks    [PairClasses]int // of each class
	Patterns int64            // offset behind the tasks; 0: there are none

	symbols  int   // of all patterns
	compared int64 // distances
	bytes    int64 // of tasks and patterns
}

// comparisons surveys queries.
func (x *Index) comparisons(queries []Query) (c Comparisons) {
	if x.Texts == nil {
		return c
	}
	total := 0
	for i := range queries {
		if q := &queries[i]; q.compared > 0 {
			c.compared += int64(q.compared)
			c.Tasks[pairClass(int(q.symbols))] += int(q.tasks)
			c.symbols += int(q.symbols)
			total += int(q.tasks)
		}
	}
	c.Patterns = abi.VerifyTaskBytes * int64(total)
	c.bytes = c.Patterns + abi.SymbolBytes*int64(c.symbols)
	return c
}

// distancesBytes is the room for the distances, which follow the answers.
func (c *Comparisons) distancesBytes() int64 { return abi.DistanceBytes * c.compared }

// encode fills the pinned input; at is where the tasks begin.
func (c *Comparisons) encode(x *Index, queries []Query, in []byte, at int64) {
	if c.Patterns == 0 {
		return
	}
	tasks := abi.Array[abi.VerifyTask](in, at, int(c.Patterns/abi.VerifyTaskBytes))
	patterns := abi.Array[uint16](in, at+c.Patterns, c.symbols)
	var next [PairClasses]int
	for class := 1; class < PairClasses; class++ {
		next[class] = next[class-1] + c.Tasks[class-1]
	}
	var answer, distances, pattern uint32
	for i := range queries {
		q, job := &queries[i], queries[i].Job
		if q.compared > 0 {
			class := pairClass(int(q.symbols))
			pairs := uint32(abi.WarpLanes >> class)
			compared := uint32(q.compared)
			task := abi.VerifyTask{
				Answer: answer, Places: uint32(job.K), Distances: distances, Pattern: pattern, Length: uint32(q.symbols),
			}
			for ; task.Rank < compared; task.Rank += pairs {
				task.Ranks = min(pairs, compared-task.Rank)
				tasks[next[class]] = task
				next[class]++
			}
			distances += compared
			for _, r := range q.near.Text {
				patterns[pattern] = x.Texts.Symbols.of(r)
				pattern++
			}
		}
		answer += uint32(job.K)
	}
}

// decodeDistances hands the query's job, whose entries are there, the distances of the first ones; at is the first of them in the
// pinned output.
func (q *Query) decodeDistances(out []byte, at int64) {
	job := q.Job
	job.Known = job.Known[:0]
	for _, d := range abi.Array[int32](out, at, min(int(q.compared), len(job.Entries))) {
		score := float64(d)
		if d < 0 { // it was not compared
			score = math.NaN()
		}
		job.Known = append(job.Known, score)
	}
}
