package main

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// fvecs are so many random vectors, as a file of fvecs.
func fvecs(t *testing.T, n, dims int) string {
	rng := seeded.Rand(t)
	var data []byte
	for range n {
		data = binary.LittleEndian.AppendUint32(data, uint32(dims))
		for range dims {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(rng.NormFloat64())))
		}
	}
	return string(data)
}

// A recall that nothing reaches is told: where the sample is not all there is building goes on, and warns of what is reached; where it is all, it fails. What
// is reached stands in inspect too.
func TestBuildTellsRecall(t *testing.T) {
	if testing.Short() {
		t.Skip("more vectors than a sample has")
	}
	dir := t.TempDir()
	data, few := write(t, dir, "x.fvecs", fvecs(t, 135_000, 2)), write(t, dir, "few.fvecs", fvecs(t, 2_000, 2))
	missed := write(t, dir, "missed.yaml", "name: x\ncolumns: [{name: v, type: vector, functions: 2, recall: 0.9}]\n")
	reached := write(t, dir, "reached.yaml", "name: x\ncolumns: [{name: v, type: vector, recall: 0.9}]\n")

	got := command(t, "", nil, "build", "--schema", missed, "--input", data, "--output", dir+"/missed.gmq")
	want := `warning: column "v": recall 0.9 was asked for, and with all 135000 vectors it is 0.`
	if got.code != exitDone || !strings.Contains(got.err, want) || !strings.Contains(got.err, "by 2 functions with reach") {
		t.Errorf("build does not say %q:\n%s%s", want, got.out, got.err)
	}
	got = command(t, "", nil, "build", "--schema", missed, "--input", few, "--output", dir+"/few.gmq")
	if want := "no hash functions reach a recall of 0.9: the best, 2 functions"; got.code == exitDone || !strings.Contains(got.err, want) {
		t.Errorf("build of what is all does not fail with %q: %d\n%s", want, got.code, got.err)
	}
	got = command(t, "", nil, "build", "--schema", reached, "--input", few, "--output", dir+"/reached.gmq")
	if got.code != exitDone || strings.Contains(got.out+got.err, "warning") {
		t.Errorf("build of what is reached: %d\n%s%s", got.code, got.out, got.err)
	}

	var inspected struct {
		Hashes []struct {
			Column          string
			Functions, Dims int
			Wanted          float64 `json:"recall_wanted"`
			Recall          []struct{ K, Candidates, Recall, Low, High float64 }
		}
	}
	got = command(t, "", nil, "inspect", "--json", dir+"/reached.gmq")
	if err := json.Unmarshal([]byte(got.out), &inspected); err != nil || len(inspected.Hashes) != 1 {
		t.Fatalf("%v\n%s%s", err, got.out, got.err)
	}
	h, told := inspected.Hashes[0], ""
	for _, r := range h.Recall {
		if r.K == 10 && r.Candidates == 80 && r.Recall >= .9 && r.Low < r.Recall && r.Recall <= r.High {
			told = "yes"
		}
	}
	if h.Column != "v" || h.Functions < 3 || h.Dims != 2 || h.Wanted != .9 || told == "" {
		t.Errorf("inspect tells %+v", h)
	}
	got = command(t, "", nil, "inspect", "--json=false", dir+"/reached.gmq")
	for _, want := range []string{"by hash functions similarity dims functions buckets width reach recall wanted v l2 2", "v, share of the nearest", "by 200 vectors held out", "nearest among 10 among 20"} {
		if !strings.Contains(strings.Join(strings.Fields(got.out), " "), want) {
			t.Errorf("inspect does not show %q:\n%s", want, got.out)
		}
	}
}
