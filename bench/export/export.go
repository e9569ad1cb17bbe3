// Package export writes vectors and queries for other programs to answer.
package export

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/internal/spread"
)

// Vectors are what is searched, what is asked for, and what was answered.
type Vectors struct {
	Name    string // of the workload, or of the data set
	Metric  string
	Seed    uint64
	Dims    int
	Objects int
	// Object returns the elements of an object, in dst where it has room. Several goroutines call it.
	Object  func(dst []float32, id int) []float32
	Queries [][]float32
	// K is the length of a row of answers, and Answer the ids of the hits of a query: K or fewer.
	K      int
	Answer func(query int) []uint32
}

// Hits are those of answers.
func Hits(answers []gpuexec.Answer) func(query int) []uint32 {
	return func(query int) (ids []uint32) {
		for _, h := range answers[query].Hits {
			ids = append(ids, h.ID)
		}
		return ids
	}
}

// shape says what is in the other files.
type shape struct {
	Workload string `json:"workload"`
	Metric   string `json:"metric"`
	Seed     uint64 `json:"seed"`
	Objects  int    `json:"objects"`
	Queries  int    `json:"queries"`
	Dims     int    `json:"dims"`
	K        int    `json:"k"`
}

// Write writes what another program needs to answer the same queries exactly, as little-endian arrays without a header: points.f32 and
// queries.f32, rows of float32, and answers.u32, rows of K object ids (short answers end in 0xffffffff); shape.json says how long the rows are. The
// folder is made where it is not there.
func (v *Vectors) Write(ctx context.Context, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the folder of the export: %w", err)
	}
	text, err := json.Marshal(shape{v.Name, v.Metric, v.Seed, v.Objects, len(v.Queries), v.Dims, v.K})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "shape.json"), text, 0o600)
	}
	return errors.Join(err,
		writeArray(filepath.Join(dir, "points.f32"), func(write func(any) error) error { return v.points(ctx, write) }),
		writeArray(filepath.Join(dir, "queries.f32"), func(write func(any) error) error {
			for _, q := range v.Queries {
				if err := write(q); err != nil {
					return err
				}
			}
			return nil
		}),
		writeArray(filepath.Join(dir, "answers.u32"), func(write func(any) error) error {
			row := make([]uint32, v.K)
			for i := range v.Queries {
				for j := copy(row, v.Answer(i)); j < len(row); j++ {
					row[j] = ^uint32(0)
				}
				if err := write(row); err != nil {
					return err
				}
			}
			return nil
		}))
}

// points writes the objects, some at a time, which all cores make.
func (v *Vectors) points(ctx context.Context, write func(any) error) error {
	const together = 1 << 14
	points := make([]float32, together*v.Dims)
	for first := 0; first < v.Objects; first += together {
		n := min(together, v.Objects-first)
		if err := spread.Run(ctx, runtime.GOMAXPROCS(0), n, func() func(i int) {
			var x []float32
			return func(i int) {
				x = v.Object(x, first+i)
				copy(points[i*v.Dims:], x)
			}
		}); err != nil {
			return err
		}
		if err := write(points[:n*v.Dims]); err != nil {
			return err
		}
	}
	return nil
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
