package workload

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/geniemq/geniemq/gpuexec"
)

// vectors are what a workload is about: those of w5 and w5sift, and those that w1's signatures are hashes of.
type vectors struct {
	objects int
	object  func(dst []float32, id int) []float32 // by several goroutines at a time
	queries [][]float32
}

// shape says what is in the other files.
type shape struct {
	Workload string `json:"workload"`
	Seed     uint64 `json:"seed"`
	Objects  int    `json:"objects"`
	Queries  int    `json:"queries"`
	Dims     int    `json:"dims"`
	K        int    `json:"k"`
}

// Export writes what another program needs to answer the same queries exactly, as little-endian arrays without a header:
// points.f32 and queries.f32, rows of float32, and answers.u32, K object ids a query (short answers end in
// 0xffffffff); shape.json says how long the rows are. The folder is made where it is not there. Only w1, w5 and w5sift have vectors.
func (w *Workload) Export(dir string, answers []gpuexec.Answer) error {
	if w.vectors == nil || len(w.vectors.queries) == 0 {
		return fmt.Errorf("workload %s has no vectors to export", w.Name)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the folder of the export: %w", err)
	}
	const chunk = 1 << 14
	dims := len(w.vectors.queries[0])
	points := make([]float32, chunk*dims)
	err := writeArray(filepath.Join(dir, "points.f32"), func(write func(any) error) error {
		for first := 0; first < w.vectors.objects; first += chunk {
			n := min(chunk, w.vectors.objects-first)
			parallel(n, func(lo, hi int) {
				var x []float32
				for i := lo; i < hi; i++ {
					x = w.vectors.object(x, first+i)
					copy(points[i*dims:], x)
				}
			})
			if err := write(points[:n*dims]); err != nil {
				return err
			}
		}
		return nil
	})
	queries := writeArray(filepath.Join(dir, "queries.f32"), func(write func(any) error) error {
		for _, q := range w.vectors.queries {
			if err := write(q); err != nil {
				return err
			}
		}
		return nil
	})
	text, failed := json.Marshal(shape{w.Name, w.Options.Seed, w.vectors.objects, len(w.vectors.queries), dims, w.Options.K})
	if failed == nil {
		failed = os.WriteFile(filepath.Join(dir, "shape.json"), text, 0o600)
	}
	hits := writeArray(filepath.Join(dir, "answers.u32"), func(write func(any) error) error {
		row := make([]uint32, w.Options.K)
		for i := range answers {
			for j := range row {
				row[j] = ^uint32(0)
				if j < len(answers[i].Hits) {
					row[j] = answers[i].Hits[j].ID
				}
			}
			if err := write(row); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, queries, failed, hits)
}

func writeArray(path string, fill func(write func(any) error) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(f, 1<<20)
	err = fill(func(part any) error { return binary.Write(out, binary.LittleEndian, part) })
	return errors.Join(err, out.Flush(), f.Close())
}
