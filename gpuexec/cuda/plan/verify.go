package plan

import (
	"math/bits"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/run"
)

// Candidates of sequences are compared with the query on the device, in the batch that finds them: once the answers stand
// in device memory a kernel computes edit distances (kernels/verify.cu), and these come down with the answers. There is
// no second round trip. What to make of the distances, where to stop and what is certain, is decided by package verify, as
// for distances that the host computes.
//
// The host stops early, and bounds each comparison by the best so far: a K of 1,000 costs it little more than one of 32.
// The device compares whole warps without bound, where 32 pairs cost as much as one. So it takes the first candidates
// (comparedOf), those that bounds do not help with, and leaves the others to the host, for most of which their length
// or count is enough. The host also compares patterns of more than 2,048 symbols, single texts of more than 4,096, and in
// indexes whose texts are not on the device (Texts).

// PairClasses are the numbers of a warp's lanes that compare a pair: 1 << class of them.
const PairClasses = 6

// pairClass is the class of a pattern of so many symbols: a lane has 64 rows.
func pairClass(symbols int) int {
	return bits.Len(uint((max(symbols, 1) - 1) / 64))
}

// Compares is true when the candidates of a job are compared on the device.
func (x *Index) Compares(job *run.Job) bool {
	return job.Text != nil && x.Texts != nil && len(job.Text) <= x.device.MaxPattern
}

// comparedOf is how many candidates of a job the device compares.
func (x *Index) comparedOf(job *run.Job) int {
	if !x.Compares(job) {
		return 0
	}
	return min(job.K, max(abi.WarpLanes, 2*job.Nearest))
}

// tasksOf is the number of tasks of a job.
func (x *Index) tasksOf(job *run.Job) int {
	pairs := abi.WarpLanes >> pairClass(len(job.Text))
	return (x.comparedOf(job) + pairs - 1) / pairs
}

// compareNeed is what a job needs for being compared, in bytes sent to the device and in bytes that come back.
func (x *Index) compareNeed(job *run.Job) (in, out int64) {
	if !x.Compares(job) {
		return 0, 0
	}
	return abi.SymbolBytes*int64(len(job.Text)) + abi.VerifyTaskBytes*int64(x.tasksOf(job)), abi.DistanceBytes * int64(x.comparedOf(job))
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
		job := queries[i].Job
		if x.Compares(job) {
			c.compared += int64(x.comparedOf(job))
			n := x.tasksOf(job)
			c.Tasks[pairClass(len(job.Text))] += n
			c.symbols += len(job.Text)
			total += n
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
		job := queries[i].Job
		if x.Compares(job) {
			class := pairClass(len(job.Text))
			pairs := uint32(abi.WarpLanes >> class)
			compared := uint32(x.comparedOf(job))
			task := abi.VerifyTask{
				Answer: answer, Places: uint32(job.K), Distances: distances, Pattern: pattern, Length: uint32(len(job.Text)),
			}
			for ; task.Rank < compared; task.Rank += pairs {
				task.Ranks = min(pairs, compared-task.Rank)
				tasks[next[class]] = task
				next[class]++
			}
			distances += compared
			for _, r := range job.Text {
				patterns[pattern] = x.Texts.Symbols.of(r)
				pattern++
			}
		}
		answer += uint32(job.K)
	}
}

// decodeDistances hands a job, whose entries are there, the distances of the first ones; at is the first of them in the
// pinned output.
func (x *Index) decodeDistances(job *run.Job, out []byte, at int64) {
	compared := min(x.comparedOf(job), len(job.Entries))
	job.Distances = append(job.Distances[:0], abi.Array[int32](out, at, compared)...)
}
