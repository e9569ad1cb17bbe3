package tree

import (
	"bytes"
	"compress/gzip"
	"context"
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
	"time"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/internal/testkit/raced"
)

// data returns a file of the folder of the real data, unpacked, or skips the test; in CI the folder must be there.
func data(t testing.TB, elem ...string) []byte {
	t.Helper()
	raced.Skip(t, raced.Data)
	folder := os.Getenv("GENIEMQ_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "..", "shared", "data")
	}
	packed, err := os.ReadFile(filepath.Join(append([]string{folder}, elem...)...))
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the real data must be there in CI: %v", err)
		}
		t.Skipf("no real data: %v; set GENIEMQ_DATA to its folder", err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// columns reads some columns of a table of numbers. Rows in which one is missing are left out.
func fields(t testing.TB, content []byte, separator string, header bool, cols ...int) (x []float32) {
	t.Helper()
	rows := strings.Split(strings.TrimSpace(string(content)), "\n")
	if header {
		rows = rows[1:]
	}
	for _, line := range rows {
		var numbers []float32
		row := strings.Split(strings.TrimSpace(line), separator)
		for _, c := range cols {
			if v, err := strconv.ParseFloat(row[c], 32); err == nil {
				numbers = append(numbers, float32(v))
			}
		}
		if len(numbers) == len(cols) {
			x = append(x, numbers...)
		}
	}
	return x
}

func cities(t testing.TB) []float32 {
	return fields(t, data(t, "cities15000", "cities15000.txt.gz"), "\t", false, 4, 5)
}

// atmosphere is seven fields, each in units of its standard deviation.
func atmosphere(t testing.TB) []float32 {
	const d = 7
	x := fields(t, data(t, "nasa_atmos", "atmos.csv.gz"), ",", true, 4, 5, 6, 7, 8, 9, 10)
	for j := range d {
		var column []float64
		for i := j; i < len(x); i += d {
			column = append(column, float64(x[i]))
		}
		mean, variance := moments(column)
		for i := j; i < len(x); i += d {
			x[i] = float32((float64(x[i]) - mean) / math.Sqrt(variance))
		}
	}
	return x
}

func digits(t testing.TB) []float32 {
	all := make([]int, 64)
	for i := range all {
		all[i] = i
	}
	return fields(t, data(t, "optdigits", "optdigits.tra.gz"), ",", true, all...)
}

func words(t testing.TB) []string {
	return strings.Fields(string(data(t, "words", "american-english-insane.gz")))
}

func vectors(t testing.TB, kind metric.Kind, dims int, x []float32) *metric.Vectors {
	t.Helper()
	s, err := metric.NewVectors(metric.Metric{Kind: kind}, dims, x)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func points(t testing.TB, degrees []float32) *metric.Points {
	t.Helper()
	var units []float64
	for i := 0; i < len(degrees); i += 2 {
		u, err := metric.Unit(float64(degrees[i]), float64(degrees[i+1]))
		if err != nil {
			t.Fatal(err)
		}
		units = append(units, u[:]...)
	}
	s, err := metric.NewPoints(units)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// heldOut are objects that are asked for, and that no answer may have.
func heldOut(n int) (queries []uint32) {
	rng := rand.New(rand.NewPCG(5, 5))
	for _, i := range rng.Perm(n)[:100] {
		queries = append(queries, uint32(i))
	}
	return queries
}

// measured is a search whose share of distances section 5 of the design tells.
type measured struct {
	name  string
	space metric.Space
	want  metric.Want
	table string // the design's
	trees []Options
}

// TestShareOfDistances searches real data, holds the answers against comparing everything, and logs the share of the distances that are
// computed, beside what the design measured with prototypes, and what the calibration expected.
func TestShareOfDistances(t *testing.T) {
	pivots := []Options{{Bounds: Pivot, Capacity: 5, Leaf: 32}, {Bounds: Pivot, Capacity: 20, Leaf: 32}, {Bounds: Pivot, Capacity: 80, Leaf: 32}}
	boxes := []Options{{Bounds: Box, Capacity: 8, Leaf: 32}, {Bounds: Box, Capacity: 8, Leaf: 128}}
	both := append(slices.Clone(pivots), boxes...)
	k := func(k int) metric.Want { return metric.Want{K: k, Most: math.Inf(1)} }
	within := func(v float64) metric.Want { return metric.Want{K: math.MaxInt, Most: v} }
	list := words(t)
	rng := rand.New(rand.NewPCG(6, 6))
	rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	if os.Getenv("GENIEMQ_FULL") == "" {
		list = list[:10000]
	}
	texts, err := metric.NewTexts(uint32(len(list)), func(i uint32) string { return list[i] }, nil)
	if err != nil {
		t.Fatal(err)
	}
	city, air, digit := cities(t), atmosphere(t), digits(t)
	for _, m := range []measured{
		{"cities15000 L2 k=10", vectors(t, metric.L2, 2, city), k(10), "pivots 0.36 / 0.65 / 0.73, boxes 0.24 / 0.61", both},
		{"nasa_atmos L1 k=10", vectors(t, metric.L1, 7, air), k(10), "pivots 6.9 / 10.9 / 28, boxes 2.5 / 6.1", both},
		{"nasa_atmos L2 k=10", vectors(t, metric.L2, 7, air), k(10), "pivots 12.1 (capacity 10), boxes 1.4 / 3.4", both},
		{"cities15000 geo k=10", points(t, city), k(10), "nothing", both},
		{"optdigits cosine k=10", vectors(t, metric.Cosine, 64, digit), k(10), "nothing", pivots},
		{fmt.Sprintf("words %d r=1", len(list)), texts, within(1), "pivots 2.3 / 4.7 / 6.1", pivots},
		{fmt.Sprintf("words %d r=2", len(list)), texts, within(2), "pivots 14 / 18 / 20", pivots},
		{fmt.Sprintf("words %d k=1", len(list)), texts, k(1), "pivots 35 / 35 / 47", pivots},
		{fmt.Sprintf("words %d k=8", len(list)), texts, k(8), "pivots 56 / 66 / 71", pivots},
		{"optdigits L1 k=1", vectors(t, metric.L1, 64, digit), k(1), "pivots 33 / 61 / 76", pivots},
		{"optdigits L1 k=10", vectors(t, metric.L1, 64, digit), k(10), "pivots 59 / 90 / 91", pivots},
	} {
		if testing.Short() && !strings.HasPrefix(m.name, "optdigits") && !strings.HasPrefix(m.name, "cities") {
			continue
		}
		t.Run(m.name, m.run)
	}
}

func (m measured) run(t *testing.T) {
	n := m.space.Len()
	asked := heldOut(int(n))
	switch {
	case testing.Short():
		asked = asked[:10]
	case os.Getenv("GENIEMQ_FULL") == "":
		asked = asked[:40]
	}
	var line strings.Builder
	for _, o := range m.trees {
		began := time.Now()
		tree := mustBuild(t, m.space, o)
		built := time.Since(began)
		work, batched := Work{}, Work{}
		asks := make([]Ask, len(asked))
		for i, object := range asked {
			asks[i] = Ask{Asker: tree.Positions(m.space.Of(object)), Want: m.want, Pass: func(id uint32) bool { return id != object }}
			got, err := tree.Search(context.Background(), asks[i])
			if err != nil {
				t.Fatal(err)
			}
			work.add(got.Work)
			if i < 10 {
				plain := asks[i]
				plain.Asker = m.space.Of(object)
				if right := everything(n, plain); !got.same(right) {
					t.Fatalf("%v: object %d: %d hits, not %d, or others", tree.Shape(), object, len(got.Hits), len(right.Hits))
				}
			}
		}
		all, err := tree.SearchAll(context.Background(), asks, 1<<14)
		if err != nil {
			t.Fatal(err)
		}
		for i := range all {
			batched.add(all[i].Work)
		}
		share := func(w Work) float64 {
			if o.Bounds == Box {
				w.Nodes = 0
			}
			return 100 * (w.Nodes + w.Distances) / float64(len(asked)) / float64(n)
		}
		expected := tree.Expect(m.want).Work
		if o.Bounds == Box {
			expected.Nodes = 0
		}
		fmt.Fprintf(&line, "\n  %v: %.2f %% (batch %.2f %%, expected %.2f %%), built in %v, idim %.1f", tree.Shape(), share(work), share(batched),
			100*(expected.Nodes+expected.Distances)/float64(n), built.Round(time.Millisecond), tree.Calibration().Idim)
	}
	t.Logf("%s: the design has %s%s", m.name, m.table, line.String())
}

func (w *Work) add(other Work) {
	w.Nodes, w.Blocks, w.Distances, w.Hits = w.Nodes+other.Nodes, w.Blocks+other.Blocks, w.Distances+other.Distances, w.Hits+other.Hits
}
