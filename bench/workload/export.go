package workload

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"github.com/geniemq/geniemq/gpuexec"
)

// vectors are the points that w1's signatures are hashes of.
type vectors struct {
	seed    uint64
	objects int
	queries [][latentDims]float32
}

// Export writes what another program needs to answer the same queries exactly, as little-endian arrays without a header:
// points.f32 and queries.f32, rows of 32 float32, and answers.u32, K object ids a query (short answers end in
// 0xffffffff). Only w1 has vectors.
func (w *Workload) Export(dir string, answers []gpuexec.Answer) error {
	if w.vectors == nil {
		return fmt.Errorf("workload %s has no vectors to export", w.Name)
	}
	const chunk = 1 << 16
	points := make([][latentDims]float32, chunk)
	err := writeArray(filepath.Join(dir, "points.f32"), func(write func(any) error) error {
		for first := 0; first < w.vectors.objects; first += chunk {
			n := min(chunk, w.vectors.objects-first)
			parallel(n, func(lo, hi int) {
				for i := lo; i < hi; i++ {
					point(&points[i], w.vectors.seed, first+i)
				}
			})
			if err := write(unsafe.Slice(&points[0][0], n*latentDims)); err != nil {
				return err
			}
		}
		return nil
	})
	queries := writeArray(filepath.Join(dir, "queries.f32"), func(write func(any) error) error {
		return write(unsafe.Slice(&w.vectors.queries[0][0], len(w.vectors.queries)*latentDims))
	})
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
	return errors.Join(err, queries, hits)
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
