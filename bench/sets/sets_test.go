package sets

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/index/schema"
)

// made are the data sets that need no files.
var made = []string{"vector", "strands", "color", "overlapping"}

func TestShareAndDistinct(t *testing.T) {
	same := func(a, b schema.Cell) bool {
		return slices.Equal(a.Vector, b.Vector) && slices.Equal(a.Values, b.Values)
	}
	for _, name := range made {
		s, err := Open(name, Options{Objects: 1000, Asked: 20, Share: 0.5, Distinct: 0.2})
		if err != nil {
			t.Fatal(err)
		}
		var different []schema.Cell
		for _, c := range s.Objects {
			if !slices.ContainsFunc(different, func(d schema.Cell) bool { return same(c, d) }) {
				different = append(different, c)
			}
		}
		if len(s.Objects) != 500 || len(different) != 100 || len(s.Asked) != 20 {
			t.Errorf("%s has %d objects, %d different, and %d are asked for; want 500, 100, 20", name, len(s.Objects), len(different), len(s.Asked))
		}
		again, err := Open(name, Options{Objects: 1000, Asked: 20, Share: 0.5, Distinct: 0.2})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(s.Objects, again.Objects, same) {
			t.Errorf("%s is another one when it is made again", name)
		}
		if _, err := s.Build(context.Background(), 1, "index: [scan]", nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open("nothing", Options{}); err == nil {
		t.Error("a data set that there is not was opened")
	}
}

// Made embeddings are as far apart as real ones are said to be.
func TestEmbeddings(t *testing.T) {
	s, err := Open("vector", Options{Objects: 400})
	if err != nil {
		t.Fatal(err)
	}
	sum, squares, n := 0.0, 0.0, 0.0
	for i, a := range s.Objects {
		for _, b := range s.Objects[:i] {
			dot := 0.0
			for j, x := range a.Vector {
				dot += float64(x) * float64(b.Vector[j])
			}
			angle := math.Acos(dot) * 180 / math.Pi
			sum, squares, n = sum+angle, squares+angle*angle, n+1
		}
	}
	mean := sum / n
	if deviation := math.Sqrt(squares/n - mean*mean); math.Abs(mean-75) > 2 || math.Abs(deviation-5) > 2 {
		t.Errorf("angles are %.1f +- %.1f degrees, want 75 +- 5", mean, deviation)
	}
}
