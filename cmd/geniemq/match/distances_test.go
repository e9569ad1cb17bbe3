package match

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/real"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// metres is the great circle between two places by the haversine, on the sphere that geo has.
func metres(a, b []float64) float64 {
	rad := math.Pi / 180
	h := math.Pow(math.Sin((b[0]-a[0])*rad/2), 2) + math.Cos(a[0]*rad)*math.Cos(b[0]*rad)*math.Pow(math.Sin((b[1]-a[1])*rad/2), 2)
	return 2 * 6371008.8 * math.Asin(math.Min(1, math.Sqrt(h)))
}

// measures are distances by definition.
var measures = map[string]func(a, b []float64) float64{
	"l1": func(a, b []float64) (d float64) {
		for i := range a {
			d += math.Abs(a[i] - b[i])
		}
		return d
	},
	"l2": func(a, b []float64) (d float64) {
		for i := range a {
			d += (a[i] - b[i]) * (a[i] - b[i])
		}
		return math.Sqrt(d)
	},
	"linf": func(a, b []float64) (d float64) {
		for i := range a {
			d = max(d, math.Abs(a[i]-b[i]))
		}
		return d
	},
	"cosine":  func(a, b []float64) float64 { return 1 - cosine(a, b) },
	"angular": func(a, b []float64) float64 { return math.Acos(max(-1, min(1, cosine(a, b)))) * 180 / math.Pi },
	"hamming": func(a, b []float64) (d float64) {
		for i := range a {
			if a[i] != b[i] {
				d++
			}
		}
		return d
	},
	"geo": metres,
}

func cosine(a, b []float64) float64 {
	var dot, x, y float64
	for i := range a {
		dot, x, y = dot+a[i]*b[i], x+a[i]*a[i], y+b[i]*b[i]
	}
	return dot / math.Sqrt(x*y)
}

// near is a pair by definition.
type nearPair struct {
	row, object int
	distance    float64
}

// nearest are, of each row, the k nearest objects within a distance, those of equal distance by their number; within leaves out the row itself.
func nearest(rows, objects [][]float64, distance func(a, b []float64) float64, k int, most float64, within bool) (pairs []nearPair) {
	for i, row := range rows {
		var found []nearPair
		for j, object := range objects {
			if row == nil || object == nil || within && i == j {
				continue
			}
			if d := distance(row, object); d <= most {
				found = append(found, nearPair{i, j, d})
			}
		}
		slices.SortStableFunc(found, func(a, b nearPair) int { return cmp.Compare(a.distance, b.distance) })
		pairs = append(pairs, found[:min(k, len(found))]...)
	}
	return pairs
}

// agree compares pairs of the output of match, as rows of CSV, with those of the definition. Of objects that are equally far from a row any may be the last; pairs at the very limit may be in or out.
func agree(t *testing.T, got [][]string, want []nearPair, rows, objects [][]float64, distance func(a, b []float64) float64, most float64) {
	t.Helper()
	const tolerance = 1e-6
	byRow := make(map[int][]float64)
	for _, p := range want {
		byRow[p.row] = append(byRow[p.row], p.distance)
	}
	seen := make(map[[2]string]bool)
	for i := 0; i < len(got); {
		row, _ := strconv.Atoi(got[i][0])
		wanted := byRow[row]
		delete(byRow, row)
		n := 0
		for ; i < len(got) && got[i][0] == strconv.Itoa(row); i, n = i+1, n+1 {
			p := got[i]
			object, _ := strconv.Atoi(p[2])
			said, err := strconv.ParseFloat(p[6], 64)
			d := distance(rows[row], objects[object])
			if err != nil || math.Abs(said-d) > tolerance*(1+d) || p[4] != strconv.Itoa(n+1) || seen[[2]string{p[0], p[2]}] {
				t.Fatalf("%v: the distance is %v (%v)", p, d, err)
			}
			seen[[2]string{p[0], p[2]}] = true
			if score, err := strconv.ParseFloat(p[5], 64); most > 0 && !math.IsInf(most, 1) && (err != nil || math.Abs(score-(1-d/most)) > 2e-6) {
				t.Fatalf("%v: the score is %v", p, 1-d/most)
			}
			if n < len(wanted) && math.Abs(wanted[n]-d) > tolerance*(1+d) {
				t.Fatalf("%v is number %d, and by definition one at %v is", p, n+1, wanted[n])
			}
		}
		if n < len(wanted) && wanted[n] < most*(1-tolerance) || n > len(wanted) {
			t.Fatalf("row %d has %d pairs, and by definition %v", row, n, wanted)
		}
	}
	for row, wanted := range byRow {
		if wanted[0] < most*(1-tolerance) {
			t.Fatalf("row %d has no pair, and by definition %v", row, wanted)
		}
	}
}

// numbers writes rows of numbers as CSV: vectors, of single floats, or points, of doubles. Some rows have none.
func numbers(r *rand.Rand, n, dims int, points bool, draw func(i int) float64) (text string, rows [][]float64) {
	var b strings.Builder
	b.WriteString("id,v\n")
	for i := range n {
		if r.IntN(20) == 0 {
			fmt.Fprintf(&b, "k%d,\n", i)
			rows = append(rows, nil)
			continue
		}
		row := make([]float64, dims)
		fmt.Fprintf(&b, "k%d,", i)
		for j := range row {
			v := draw(j)
			if row[j] = float64(float32(v)); points {
				row[j] = v
			}
			fmt.Fprintf(&b, "%v ", row[j])
		}
		b.WriteByte('\n')
		rows = append(rows, row)
	}
	return b.String(), rows
}

// TestNearest: match and dedupe of vectors and points find the pairs of the definition, whatever the metric is, with and without a limit, from an own service and from a worker.
func TestNearest(t *testing.T) {
	r := seeded.Rand(t)
	for _, name := range raced.Of([]string{"l1", "l2", "linf", "cosine", "angular", "hamming", "geo", "l2 by hashes", "l1 by hashes", "laplacian by hashes", "cosine by hashes"},
		[]string{"l2", "geo", "cosine by hashes"}) {
		t.Run(name, func(t *testing.T) {
			name, hashed := strings.CutSuffix(name, " by hashes")
			if testing.Short() && hashed && name != "cosine" {
				t.Skip("one family of hash functions is enough for a short run: the others go the same way")
			}
			dir := t.TempDir()
			kind, dims, draw := "vector", 1+r.IntN(6), func(int) float64 { return r.NormFloat64() }
			switch name {
			case "geo":
				kind, dims, draw = "point", 2, func(i int) float64 { return []float64{180 * (r.Float64() - .5), 360 * (r.Float64() - .5)}[i] }
			case "hamming":
				draw = func(int) float64 { return float64(r.IntN(3)) }
			case "cosine", "angular":
				dims++ // in one dimension there are two directions
			}
			column, objectsAtMost := "metric: "+name, "20"
			if hashed { // of a hundred functions with wide buckets all objects share some, so that they are among so many candidates, also those far out
				column, objectsAtMost = fmt.Sprintf("similarity: %s, functions: %d, seed: %d", name, 100+r.IntN(200), r.IntN(1000)), "400"
				if name != "cosine" {
					column += ", width: 8"
				}
				name = map[string]string{"l2": "l2", "l1": "l1", "laplacian": "l1", "cosine": "angular"}[name]
			}
			spec := fmt.Sprintf("name: far\nkey: id\ncolumns:\n  - {name: v, type: %s, %s}\n", kind, column)
			indexed, objects := numbers(r, 300, dims, name == "geo", draw)
			asked, rows := numbers(r, 100, dims, name == "geo", draw)
			described := write(t, dir, "s.yaml", spec)
			all := write(t, dir, "far.csv", indexed)
			file := build(t, dir, all, spec)
			input := write(t, dir, "asked.csv", asked)
			some := nearest(rows, objects, measures[name], 1, math.Inf(1), false)
			limit := some[r.IntN(len(some))].distance * (1 + r.Float64())
			k := 1 + r.IntN(8)
			args := []string{"match", "--index", "far=" + file, "--input", input, "--schema", described, "--k", strconv.Itoa(k), "--candidates", objectsAtMost}
			agree(t, records(t, succeeds(t, args...).out)[1:], nearest(rows, objects, measures[name], k, math.Inf(1), false), rows, objects, measures[name], math.Inf(1))
			limited := append(slices.Clone(args), "--max-distance", fmt.Sprint("v=", limit))
			own := succeeds(t, limited...).out
			agree(t, records(t, own)[1:], nearest(rows, objects, measures[name], k, limit, false), rows, objects, measures[name], limit)
			limited[2] = "far"
			if remote := succeeds(t, append(limited, "--nats", worker(t, file))...).out; remote != own {
				t.Errorf("a worker finds others:\n%s\nnot\n%s", remote, own)
			}

			// Of rows among themselves each pair comes once.
			found := records(t, succeeds(t, "dedupe", all, "--schema", described, "--k", "400", "--candidates", "400", "--max-distance", fmt.Sprint(limit)).out)[1:]
			var both [][]string
			for _, p := range found {
				both = append(both, []string{p[0], p[1], p[2], p[3], "", p[4], p[5]}, []string{p[2], p[3], p[0], p[1], "", p[4], p[5]})
			}
			slices.SortStableFunc(both, func(a, b []string) int {
				x, y := make([]float64, 3), make([]float64, 3)
				for i, at := range []int{0, 6, 2} {
					x[i], _ = strconv.ParseFloat(a[at], 64)
					y[i], _ = strconv.ParseFloat(b[at], 64)
				}
				return slices.Compare(x, y)
			})
			for i := range both {
				if both[i][4] = "1"; i > 0 && both[i][0] == both[i-1][0] {
					rank, _ := strconv.Atoi(both[i-1][4])
					both[i][4] = strconv.Itoa(rank + 1)
				}
			}
			agree(t, both, nearest(objects, objects, measures[name], 400, limit, true), objects, objects, measures[name], limit)
		})
	}
}

// fields reads the first n records of a file of real data.
func fields(t *testing.T, name string, comma rune, n int) (all [][]string) {
	t.Helper()
	file, err := os.Open(real.File(t, name))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	if comma == '\t' { // which knows no quotes
		for lines := bufio.NewScanner(text); lines.Scan() && len(all) < n; {
			all = append(all, strings.Split(lines.Text(), "\t"))
		}
		return all
	}
	for r := csv.NewReader(text); len(all) < n; {
		record, err := r.Read()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, record)
	}
	return all
}

// TestCities: cities within 20 km of each other, of a file that nobody has described, are those of the definition; and names beside places tell which of them are the same.
func TestCities(t *testing.T) {
	dir := t.TempDir()
	n, least := 1500, 100
	if testing.Short() {
		n, least = 300, 10
	}
	var places [][]float64
	var b strings.Builder
	for _, city := range fields(t, "cities15000/cities15000.txt.gz", '\t', n) {
		lat, errLat := strconv.ParseFloat(city[4], 64)
		lon, errLon := strconv.ParseFloat(city[5], 64)
		if errLat != nil || errLon != nil {
			t.Fatal(city)
		}
		places = append(places, []float64{lat, lon})
		fmt.Fprintf(&b, "%s\t%s\t%s\t%s\n", city[0], city[1], city[4], city[5])
	}
	input := write(t, dir, "cities.tsv", b.String())
	const most = 20_000
	args := []string{"dedupe", input, "--names", "id,name,latitude,longitude", "--k", "200", "--candidates", "200"}
	o := succeeds(t, append(args, "--by", "where", "--weight", "name=0", "--max-distance", fmt.Sprint(most))...)
	want := make(map[[2]string]float64)
	for _, p := range nearest(places, places, metres, n, most, true) {
		want[[2]string{strconv.Itoa(min(p.row, p.object)), strconv.Itoa(max(p.row, p.object))}] = p.distance
	}
	got := records(t, o.out)
	if strings.Join(got[0], ",") != "row,key,other,other_key,score,distance" || len(got)-1 != len(want) || len(want) < least {
		t.Fatalf("%v: %d pairs, and by definition %d\n%s", got[0], len(got)-1, len(want), o.said)
	}
	for _, p := range got[1:] {
		d, err := strconv.ParseFloat(p[5], 64)
		if w, ok := want[[2]string{p[0], p[2]}]; !ok || err != nil || math.Abs(d-w) > 1e-3 {
			t.Errorf("%v: by definition %v (%v)", p, w, ok)
		}
	}
	// The name finds candidates, and what lies too far away is none of them whatever it is called.
	named := records(t, succeeds(t, append(args, "--max-distance", fmt.Sprint(most), "--min", "0")...).out)[1:]
	for _, p := range named {
		if _, ok := want[[2]string{p[0], p[2]}]; !ok {
			t.Errorf("%v are farther apart than %d m", p, most)
		}
	}
	// The place finds candidates, and the name is half of the score.
	o = succeeds(t, append(args, "--by", "where", "--weight", "where=1", "--max-distance", fmt.Sprint("where=", most))...)
	if byPlace := records(t, o.out); len(byPlace)-1 != len(want) || strings.Contains(o.said, "comparing latitude") {
		t.Errorf("by place %d pairs, not %d\n%s", len(byPlace)-1, len(want), o.said)
	}
	if len(named) == 0 {
		t.Error("no pair by names")
	}
	if o := succeeds(t, args...); !strings.Contains(o.said, "column where is not compared") {
		t.Errorf("without a limit: %s", o.said)
	}
}

// first are the first records of a file of real data below its header, and a file that has these alone.
func first(t *testing.T, dir, name string, n int) (records [][]string, path string) {
	t.Helper()
	records = fields(t, name, ',', n)
	var b strings.Builder
	if err := csv.NewWriter(&b).WriteAll(records); err != nil {
		t.Fatal(err)
	}
	return records, write(t, dir, strings.TrimSuffix(filepath.Base(name), ".gz")+".csv", b.String())
}

// TestDigits: the nearest picture of the training set has the class of a picture of the test set as often as is published, and is the nearest by definition.
func TestDigits(t *testing.T) {
	dir := t.TempDir()
	trained, tested, known := math.MaxInt, math.MaxInt, 1761
	if testing.Short() {
		trained, tested, known = 701, 151, 0
	}
	train, learned := first(t, dir, "optdigits/optdigits.tra.gz", trained)
	test, input := first(t, dir, "optdigits/optdigits.tes.gz", tested)
	file := build(t, dir, learned, "name: digits\ninput: {format: csv}\ncolumns:\n  - {name: block, type: vector, from: [Block*], metric: l2}\n")
	o := succeeds(t, "match", "--index", "digits="+file, "--input", input, "--map", "block=block", "--k", "1")
	pairs := records(t, o.out)[1:]
	if len(pairs) != len(test)-1 {
		t.Fatalf("%d rows have pairs\n%s", len(pairs), o.said)
	}
	vectors := func(records [][]string) (all [][]float64) {
		for _, record := range records[1:] {
			v := make([]float64, 64)
			for i := range v {
				v[i], _ = strconv.ParseFloat(record[i], 64)
			}
			all = append(all, v)
		}
		return all
	}
	rows, objects := vectors(test), vectors(train)
	right := 0
	for _, p := range pairs {
		row, errRow := strconv.Atoi(p[0])
		object, errObject := strconv.Atoi(p[2])
		if errRow != nil || errObject != nil {
			t.Fatal(p)
		}
		if test[row+1][64] == train[object+1][64] {
			right++
		}
	}
	if right != known && known > 0 {
		t.Errorf("%d of %d have the class of their nearest, and %d are known to", right, len(pairs), known)
	}
	agree(t, pairs, nearest(rows, objects, measures["l2"], 1, math.Inf(1), false), rows, objects, measures["l2"], math.Inf(1))

	// What init proposes is found by hash functions, and is nearly that.
	hashed := build(t, dir, learned, "")
	approximate := records(t, succeeds(t, "match", "--index", "digits="+hashed, "--input", input, "--map", "block=block", "--k", "1", "--max-distance", "1000").out)[1:]
	same := 0
	for i, p := range approximate {
		if d, err := strconv.ParseFloat(p[6], 64); err == nil && fmt.Sprintf("%.4f", d) == fmt.Sprintf("%.4f", must(strconv.ParseFloat(pairs[i][6], 64))) {
			same++
		}
	}
	if len(approximate) != len(pairs) || same < len(pairs)*9/10 {
		t.Errorf("by hash functions %d of %d are as near", same, len(pairs))
	}
}

func must(v float64, _ error) float64 { return v }

// TestDistanceUsage: what cannot be meant, and what nobody knows, is said.
func TestDistanceUsage(t *testing.T) {
	dir := t.TempDir()
	data := write(t, dir, "d.csv", "id,name,a,b,n\nk0,red canvas shoes,1 2,3 4,1\nk1,blue canvas shoes,1 3,3 4,2\n")
	columns := func(list string) string {
		return write(t, dir, "s.yaml", "name: d\nkey: id\ncolumns:\n"+list)
	}
	const a, b, n, name = "  - {name: a, type: vector, metric: l2, store: true}\n", "  - {name: b, type: vector, metric: cosine, store: true}\n", "  - {name: n, type: number, store: true}\n", "  - {name: name, type: text, stop_words: none, store: true}\n"
	const products = "  - {name: a, type: vector, metric: ip, store: true}\n"
	for _, c := range []struct {
		schema string
		args   []string
		fails  bool
		says   string
	}{
		{a + b, []string{"--max-distance", "5"}, true, "say of which column, as in --max-distance where=5; vectors or points are compared in a, b"},
		{a + b, []string{"--max-distance", "n=5"}, true, "--max-distance n=5: no vectors or points of that name are compared"},
		{a, []string{"--max-distance", "-1"}, true, "must be a distance of 0 or more"},
		{a, []string{"--max-distance", "a=x"}, true, "must be a distance of 0 or more"},
		{a + n, nil, true, "nobody knows which of them is far beside other columns: say so by --max-distance a=DISTANCE"},
		{a + name, nil, false, "column a is not compared"},
		{products, nil, true, "nothing to compare: column a is not compared: it is searched by products, which say nothing of likeness"},
		{products + name, nil, false, "column a is not compared: it is searched by products"},
		{b + name, nil, false, "comparing b (vector, weight 1); distances are cosine"},
		{a + name, []string{"--by", "a", "--max-distance", "2"}, false, "comparing a (vector, weight 4), by which candidates are found; distances are l2, at most 2"},
		{a + n, []string{"--by", "n"}, true, "candidates are found by a text, string, set, vector or point"},
		{a, []string{"--max-distance", "1"}, false, "k0,1,k1,0.000000,1\n"},
		{a, []string{"--max-distance", "0.9"}, false, "0 of them in 0 pairs"},
		{b + name, []string{"--max-distance", "b=0"}, false, "0,k0,1,k1,"},
	} {
		o := command(t.Context(), "", append([]string{"dedupe", data, "--schema", columns(c.schema)}, c.args...)...)
		if says := fmt.Sprint(o.out, o.said, o.err); (o.err != nil) != c.fails || !strings.Contains(says, c.says) {
			t.Errorf("%q %v: %s\nit should say %q", c.schema, c.args, says, c.says)
		}
	}
}
