package main

import (
	"strings"
	"testing"
)

// Points, f16 and access paths from a file to inspect: what is a bad record, what was built, and what inspect shows of it.
func TestBuildAndInspectDistances(t *testing.T) {
	dir := t.TempDir()
	schema := write(t, dir, "s.yaml", `name: x
missing: ["", "?"]
columns:
  - {name: at, type: point, invalid: error, from: [lat, lon], index: [tree], tree: {leaf: 2, capacity: 2}}
  - {name: v, type: vector, invalid: error, storage: f16, index: [cells, permutation], cells: {cells: 2}, permutation: {permutants: 2}}
  - {name: s, type: string, metric: edit}
`)
	data := write(t, dir, "x.csv", `lat,lon,v,s
52.5,13.4,0.5 1,abc
91,0,0.5 1,abc
1,?,0.5 1,abc
1,x,0.5 1,abc
?,?,?,?
-90,370,0.25 -2,abd
0,-180,0.1 1,abe
10,10,1 1,abe
`)
	file := dir + "/x.gmq"
	built := command(t, "", nil, "build", "--skip-bad", "--schema", schema, "--input", data, "--output", file)
	if built.code != exitDone {
		t.Fatal(built.err)
	}
	for _, want := range []string{"the latitude is 91", "only 1 of the 2 input columns that it is made of have a value", `"x" is no number`, "element 0 is 0.1, which is no 16-bit float"} {
		if !strings.Contains(built.err, want) {
			t.Errorf("build does not say %q:\n%s", want, built.err)
		}
	}
	got := command(t, "", nil, "inspect", "--json=false", "--verify", file)
	for _, want := range []string{
		"by distance", "at points geo 0 3 scan tree", "v vectors l2 f16 2 3 scan cells permutation",
		"s texts edit 0 3 scan ngram", "at, us per query here k recall queries scan tree taken", "tree on the reference device: ", "built", "at, tree: ", "v, cells: 2 cells", "v, permutation: 2 permutants, rho, fraction 0.01", "intact",
	} {
		if got.code != exitDone || !strings.Contains(strings.Join(strings.Fields(got.out), " "), want) {
			t.Errorf("inspect does not show %q:\n%s%s", want, got.out, got.err)
		}
	}
}
