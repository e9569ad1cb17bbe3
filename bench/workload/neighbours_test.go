package workload

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
)

func readArray[T any](t *testing.T, path string, n int) []T {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := make([]T, n)
	if err := binary.Read(f, binary.LittleEndian, all); err != nil {
		t.Fatal(err)
	}
	if rest, err := f.Read(make([]byte, 1)); err == nil {
		t.Fatalf("%s is longer than %d numbers: %d", path, n, rest)
	}
	return all
}

// TestExport: who reads what was exported and compares everything with everything finds the neighbours that recall is measured by.
func TestExport(t *testing.T) {
	const objects, queries = 700, 9
	for _, name := range []string{"w1", "w5"} {
		w, err := New(t.Context(), name, Options{Objects: objects, Queries: queries, K: 10})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		dir := filepath.Join(t.TempDir(), "made")
		answers := make([]gpuexec.Answer, queries)
		answers[3].Hits = []gpuexec.Hit{{ID: 17}, {ID: 4}}
		if err := w.Export(t.Context(), dir, answers); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "shape.json"))
		if err != nil {
			t.Fatal(err)
		}
		var s struct {
			Workload               string
			Seed                   uint64
			Objects, Queries, Dims int
			K                      int
		}
		if err := json.Unmarshal(text, &s); err != nil || s.Workload != name || s.Objects != objects || s.Queries != queries || s.K != 10 || s.Seed != 1 {
			t.Fatalf("%+v, %v", s, err)
		}
		points := readArray[float32](t, filepath.Join(dir, "points.f32"), objects*s.Dims)
		asked := readArray[float32](t, filepath.Join(dir, "queries.f32"), queries*s.Dims)
		ids := readArray[uint32](t, filepath.Join(dir, "answers.u32"), queries*s.K)
		if ids[30] != 17 || ids[31] != 4 || ids[32] != math.MaxUint32 || ids[0] != math.MaxUint32 {
			t.Errorf("answers: %v", ids)
		}
		numbers := make([]int, queries)
		for i := range numbers {
			numbers[i] = i
		}
		for q, nearest := range w.neighbours(numbers) {
			var want []neighbour
			for id := range objects {
				sum := 0.0
				for d := range s.Dims {
					v := float64(points[id*s.Dims+d]) - float64(asked[q*s.Dims+d])
					sum += v * v
				}
				want = append(want, neighbour{uint32(id), math.Sqrt(sum)})
			}
			slices.SortFunc(want, func(a, b neighbour) int { return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.id, b.id)) })
			if !slices.Equal(nearest.all, want[:10]) {
				t.Fatalf("%s: the neighbours of query %d are %v, want %v", name, q, nearest.all, want[:10])
			}
		}
	}
}
