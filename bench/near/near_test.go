package near

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/geniemq/geniemq/bench/sets"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
)

// measured are the results of a measurement of a small made set.
func measured(t *testing.T, m Measurement, set string) (all []Result) {
	t.Helper()
	engine := cpu.New(gpuexec.CPUOptions{Workers: 1})
	o := Options{Options: sets.Options{Objects: 800, Asked: 16}, Sets: []string{set}, Batch: 8, Batches: []int{1, 8}, Recall: 0.9, Runs: 1, Engine: engine}
	err := m.Do(t.Context(), o, func(r Result) error {
		r.By("a test")
		all = append(all, r)
		return nil
	})
	if err := errors.Join(err, engine.Close()); err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("nothing was measured")
	}
	return all
}

func TestChoice(t *testing.T) {
	for _, r := range measured(t, choice(), "strands") {
		r := r.(*ChoiceResult)
		if len(r.Ways) < 2 || r.Taken == "" || r.OverBest < 1 || r.Within != (r.OverBest <= 1.15) {
			t.Errorf("%+v", r)
		}
	}
}

// Ways that find all do, in batches of any size, and others what they are asked for; the planner takes one of them.
func TestWays(t *testing.T) {
	methods := make(map[string]bool)
	for _, r := range measured(t, ways(), "overlapping") {
		r := r.(*WayResult)
		methods[r.Method] = true
		if exact := r.Taken != "cells"; exact && r.Found != 1 || r.Found < 0.8 || r.Took <= 0 || r.PerSecond <= 0 || r.Method != "auto" && r.Taken != r.Method {
			t.Errorf("%+v", r)
		}
	}
	if len(methods) != 3 {
		t.Errorf("measured were %v, not scan, cells and auto", methods)
	}
}

// What is exported is what was searched: whoever compares everything finds what a scan answers.
func TestExport(t *testing.T) {
	dir := t.TempDir()
	engine := cpu.New(gpuexec.CPUOptions{Workers: 1})
	o := Options{Options: sets.Options{Objects: 300, Asked: 7}, Sets: []string{"overlapping"}, Batches: []int{1}, Runs: 1, Export: dir, Engine: engine}
	m := ways()
	if err := errors.Join(m.Do(t.Context(), o, func(Result) error { return nil }), engine.Close()); err != nil {
		t.Fatal(err)
	}
	const dims, k = 32, 100
	points, queries, answers := numbers[float32](t, dir, "points.f32", 300*dims), numbers[float32](t, dir, "queries.f32", 7*dims), numbers[uint32](t, dir, "answers.u32", 7*k)
	for q := range 7 {
		last := -1.0
		for _, id := range answers[q*k : (q+1)*k] {
			sum := 0.0
			for d := range dims {
				v := float64(points[int(id)*dims+d]) - float64(queries[q*dims+d])
				sum += v * v
			}
			if sum < last {
				t.Fatalf("query %d: object %d is nearer than the one before it", q, id)
			}
			last = sum
		}
		nearer := 0
		for id := range 300 {
			sum := 0.0
			for d := range dims {
				v := float64(points[id*dims+d]) - float64(queries[q*dims+d])
				sum += v * v
			}
			if sum <= last {
				nearer++
			}
		}
		if nearer != k {
			t.Errorf("query %d: %d objects are as near as the last of %d answers", q, nearer, k)
		}
	}
}

func numbers[T any](t *testing.T, dir, name string, n int) []T {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "overlapping", name))
	if err != nil {
		t.Fatal(err)
	}
	all := make([]T, n)
	if size, err := binary.Decode(content, binary.LittleEndian, all); err != nil || size != len(content) {
		t.Fatalf("%s: %d of %d bytes are read: %v", name, size, len(content), err)
	}
	return all
}

// Searches do about what was expected of them, and never less than they find.
func TestCapacity(t *testing.T) {
	for _, r := range measured(t, capacity(), "color") {
		r := r.(*CapacityResult)
		if r.Distances < r.Hits-1 || r.Blocks < 1 || r.Expected <= 0 {
			t.Errorf("%+v", r)
		}
		if ratio := r.ExpectedDistances / r.Distances; !(ratio > 0.5 && ratio < 2) {
			t.Errorf("%.2f of the distances are expected: %s", ratio, r.Line())
		}
	}
}

func TestGrowth(t *testing.T) {
	for _, r := range measured(t, growth(), "color") {
		r := r.(*GrowthResult)
		if want := int(r.Share*800 + 0.5); r.Objects != want || r.Hits != 8 || r.Method == "scan" && r.Distances != float64(want) {
			t.Errorf("%d objects are wanted: %+v", want, r)
		}
	}
}

// More of the objects find more, and a recall that was asked for is expected.
func TestPermutation(t *testing.T) {
	last := &PermutationResult{}
	for _, r := range measured(t, permutation(), "strands") {
		r := r.(*PermutationResult)
		if r.Recall == 0 && r.Fraction > last.Fraction && last.Question.K == r.Question.K && last.Members == r.Members && r.Similarity == last.Similarity && r.Found < last.Found-1e-9 {
			t.Errorf("%s, and of fewer objects: %s", r.Line(), last.Line())
		}
		// Of two neighbours the index has no row: no interval is told, 0, but a recall is.
		if short := r.Expected < r.Recall || r.Low > 0 && r.Low < r.Recall; r.Found > 1 || r.Recall > 0 && r.Fraction < 1 && short {
			t.Error(r.Line())
		}
		last = r
	}
}

func TestBuilds(t *testing.T) {
	for _, r := range measured(t, builds(), "vector") {
		if r := r.(*BuildsResult); r.Objects != 800 || r.Built <= 0 || r.Bytes == 0 || r.GTS != 0.2 {
			t.Errorf("%+v", r)
		}
	}
}
