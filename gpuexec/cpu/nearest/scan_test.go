package nearest

import (
	"testing"
	"time"

	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// However jobs are cut, each is in one chunk, no chunk is empty, and there are as many units as keep the cores busy, if there is that much; with one core there is one range.
func TestScansAreCut(t *testing.T) {
	rng := seeded.Rand(t)
	for range 5000 {
		workers, n, objects, k := 1+rng.IntN(64), 1+rng.IntN(2000), uint32(1+rng.IntN(1<<rng.IntN(30))), 1+rng.IntN(1<<rng.IntN(17))
		b := &Batch{Matcher: &Matcher{crew: run.NewCrew(workers), hi: objects}, choices: make([]distance.Choice, n)}
		jobs, longest := make([]int, n), time.Duration(rng.IntN(1<<rng.IntN(28)))
		for i := range jobs {
			jobs[i] = i
			b.jobs = append(b.jobs, &run.Job{})
			b.jobs[i].Query = &distance.Query{K: k}
			b.choices[i].Predicted = longest
		}
		most := 1 + rng.Uint32N(objects)
		chunks, ranges, size := b.cut(&scanned{reading: []float64{readOnly, readAndLaidOut}[rng.IntN(2)]}, jobs, most)
		if size < 1 || size > most || size < most && size < leastBlock {
			t.Fatalf("blocks of %d are cut to %d", most, size)
		}
		blocks := blocksOf(objects, size)
		if chunks < 1 || chunks > n || ranges < 1 || ranges > blocks || workers == 1 && ranges > 1 {
			t.Fatalf("%d jobs of %d objects in %d blocks, %d cores: %d chunks and %d ranges", n, objects, blocks, workers, chunks, ranges)
		}
		if chunks*ranges < min(n*blocks, unitsOfCore*workers) && chunks < n && ranges < blocks && workers > 1 {
			t.Fatalf("%d jobs of %d objects in %d blocks: %d chunks and %d ranges are too few for %d cores", n, objects, blocks, chunks, ranges, workers)
		}
		before, apart := 0, 0
		for i := range chunks {
			end := share(n, i+1, chunks)
			if end-before > chunkJobs || end <= before {
				t.Fatalf("chunk %d of %d of %d jobs has %d", i, chunks, n, end-before)
			}
			if before%fewTogether != 0 {
				apart++
			}
			before = end
		}
		if before != n || apart > 0 && n >= fewTogether*chunks {
			t.Fatalf("%d chunks of %d jobs have %d, and %d begin within a group", chunks, n, before, apart)
		}
	}
}
