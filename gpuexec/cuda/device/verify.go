//go:build cuda

package device

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
// (comparedOf), those that bounds do not help with, and leaves the others to the host, for most of which their length
// or count is enough. The host also compares patterns of more than 2,048 symbols, single texts of more than 4,096, and in
// indexes whose texts are not on the device (residentTexts).

// verifyClasses: 1, 2, 4, 8, 16 or 32 lanes compare a pair.
const verifyClasses = 6

// cudaVerify are the kernels of verify.cu.
type cudaVerify struct {
	narrow, wide function
	maxPattern   int
}

func (k *cudaKernels) loadVerify(m module) error {
	most, err := m.constant("verify_max_pattern")
	if err != nil {
		return deviceError("reading verify_max_pattern", err)
	}
	k.verify.maxPattern = int(most)
	if k.verify.narrow, err = m.function("verify_narrow", abi.WarpLanes, maxNarrow*8*abi.WarpLanes); err != nil {
		return deviceError("finding kernel verify_narrow", err)
	}
	if k.verify.wide, err = m.function("verify_wide", abi.WarpLanes, abi.HashedMaskBytes*abi.WarpLanes); err != nil {
		return deviceError("finding kernel verify_wide", err)
	}
	return nil
}

// verifies is true when the candidates of a job are compared on the device.
func (r *resident) verifies(job *run.Job) bool {
	n, ok := job.Rescore.(*verify.Nearest)
	return ok && r.compares(n) && len(n.Text) <= r.kernels.verify.maxPattern
}

// compares is true when the texts that are asked for are on the device.
func (r *resident) compares(n *verify.Nearest) bool {
	return r.texts != nil && n.Texts == verify.Texts(r.index)
}

// nearestOf is what a job that the device verifies asks for.
func nearestOf(job *run.Job) *verify.Nearest {
	return job.Rescore.(*verify.Nearest)
}

// verifyClass is the binary logarithm of the lanes of a pair.
func verifyClass(symbols int) int {
	return bits.Len(uint(max(symbols, 1)-1) / 64)
}

// comparedOf is how many of a job's candidates the device compares: the first 32, or twice the hits wanted.
func (r *resident) comparedOf(job *run.Job) int {
	if !r.verifies(job) {
		return 0
	}
	return min(job.K, max(abi.WarpLanes, 2*nearestOf(job).K))
}

// tasksOf is the number of tasks of a job.
func (r *resident) tasksOf(job *run.Job) int {
	pairs := abi.WarpLanes >> verifyClass(len(nearestOf(job).Text))
	return (r.comparedOf(job) + pairs - 1) / pairs
}

// verifyNeed is what a job needs for verification, in bytes sent to the device and in bytes that come back.
func (r *resident) verifyNeed(job *run.Job) (in, out int64) {
	if !r.verifies(job) {
		return 0, 0
	}
	return abi.SymbolBytes*int64(len(nearestOf(job).Text)) + abi.VerifyTaskBytes*int64(r.tasksOf(job)), abi.DistanceBytes * int64(r.comparedOf(job))
}

// A verifyRun is what the device verifies of a piece.
type verifyRun struct {
	tasks    [verifyClasses]int // a class
	symbols  int                // of all patterns
	compared int64              // distances
	patterns int64              // offset of the patterns behind the tasks
	bytes    int64              // of tasks and patterns
}

// verifyRun surveys the piece.
func (l *lane) verifyRun() (v verifyRun) {
	total := 0
	for i := range l.pieces {
		job := l.pieces[i].job
		if l.resident.verifies(job) {
			v.compared += int64(l.resident.comparedOf(job))
			n := l.resident.tasksOf(job)
			v.tasks[verifyClass(len(nearestOf(job).Text))] += n
			v.symbols += len(nearestOf(job).Text)
			total += n
		}
	}
	v.patterns = abi.VerifyTaskBytes * int64(total)
	v.bytes = v.patterns + abi.SymbolBytes*int64(v.symbols)
	return v
}

// distancesBytes is the room for the distances, which follow the answers.
func (v *verifyRun) distancesBytes() int64 { return abi.DistanceBytes * v.compared }

// encodeVerify fills the pinned input; at is where the tasks begin.
func (l *lane) encodeVerify(v *verifyRun, at int64) {
	if v.patterns == 0 {
		return
	}
	tasks := pinnedArray[abi.VerifyTask](l.in, at, int(v.patterns/abi.VerifyTaskBytes))
	patterns := pinnedArray[uint16](l.in, at+v.patterns, v.symbols)
	var next [verifyClasses]int
	for class := 1; class < verifyClasses; class++ {
		next[class] = next[class-1] + v.tasks[class-1]
	}
	symbols := &l.resident.texts.symbols
	var answer, distances, pattern uint32
	for i := range l.pieces {
		job := l.pieces[i].job
		if l.resident.verifies(job) {
			class := verifyClass(len(nearestOf(job).Text))
			pairs := uint32(abi.WarpLanes >> class)
			compared := uint32(l.resident.comparedOf(job))
			task := abi.VerifyTask{
				Answer: answer, Places: uint32(job.K), Distances: distances, Pattern: pattern, Length: uint32(len(nearestOf(job).Text)),
			}
			for ; task.Rank < compared; task.Rank += pairs {
				task.Ranks = min(pairs, compared-task.Rank)
				tasks[next[class]] = task
				next[class]++
			}
			distances += compared
			for _, r := range nearestOf(job).Text {
				patterns[pattern] = symbols.of(r)
				pattern++
			}
		}
		answer += uint32(job.K)
	}
}

// launchVerify records the kernel, a launch a class of patterns.
func (l *lane) launchVerify(v *verifyRun, at *pieceLayout) {
	if v.patterns == 0 {
		return
	}
	l.mark(stageVerify)
	t := l.resident.texts
	argument := abi.Verify{
		Texts: t.memory, Starts: t.starts(), Out: l.arena + abi.Pointer(at.answers), Tasks: l.arena + abi.Pointer(at.verify),
		Patterns: l.arena + abi.Pointer(at.verify+v.patterns), Distances: l.arena + abi.Pointer(at.distances),
		Symbols: uint32(t.symbols.count), Base: t.tiles.Base(),
	}
	for class, tasks := range v.tasks {
		if tasks == 0 {
			continue
		}
		lanes := 1 << class
		argument.Lanes = uint32(lanes)
		kernel := l.resident.kernels.verify.wide
		kernel.shared = abi.HashedMaskBytes * lanes
		if t.symbolBytes() == 1 {
			kernel = l.resident.kernels.verify.narrow
			kernel.shared = 8 * t.symbols.count * lanes
		}
		launch(&l.steps, kernel, tasks, 1, &argument)
		argument.FirstTask += uint32(tasks)
	}
}

// decodeDistances hands a job, whose entries are there, the distances of the first ones; at is the first of them in the
// pinned output.
func (l *lane) decodeDistances(job *run.Job, at int64) {
	compared := min(l.resident.comparedOf(job), len(job.Entries))
	job.Known = job.Known[:0]
	for _, d := range pinnedArray[int32](l.out, at, compared) {
		score := float64(d)
		if d < 0 { // it was not compared
			score = math.NaN()
		}
		job.Known = append(job.Known, score)
	}
}
