package enginetest

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu"
	"github.com/geniemq/geniemq/gpuexec/flatscan"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/nearest"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// realFile is a file of the test data, unpacked.
func realFile(t testing.TB, name string) []byte {
	t.Helper()
	raced.Skip(t, raced.Data)
	content, err := os.ReadFile(dataFile(t, name))
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(name, ".gz") {
		r, err := gzip.NewReader(bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		if content, err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	return content
}

func realLines(t testing.TB, name string) []string {
	return strings.Split(strings.TrimRight(string(realFile(t, name)), "\n"), "\n")
}

// realIndex is an index of real data on the cores of this machine, and on devices.
type realIndex struct {
	t       testing.TB
	x       *index.Index
	queries *index.Queries
	on      []gpuexec.Searcher
}

func newRealIndex(t testing.TB, spec string, cells [][]schema.Cell) *realIndex {
	t.Helper()
	s, err := index.Builtin().ParseSchema([]byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := onebyone.NewObjects(s, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cells {
		if err := objects.Add(&schema.Record{Cells: c}); err != nil {
			t.Fatal(err)
		}
	}
	r := &realIndex{t: t, x: OpenBuilt(t, objects.Builder)}
	if r.queries, err = index.NewQueries(r.x); err != nil {
		t.Fatal(err)
	}
	for _, e := range append(onDevices(t), testedEngine{Engine: cpu.New(gpuexec.CPUOptions{})}) {
		r.on = append(r.on, LoadOn(t, e, r.x))
	}
	return r
}

// ask answers a request in every exact way that the column has, which all have to say what the flat definition says, and returns the hits.
func (r *realIndex) ask(request index.Request) []gpuexec.Hit {
	r.t.Helper()
	var want []gpuexec.Hit
	for i, method := range []string{"scan", "auto", "tree", "cells", "ngram"} {
		if method == "ngram" && (request.Text == nil || request.Near.Radius == nil) {
			continue
		}
		request.Near.Method = method
		made, err := r.queries.Plan(new(postings.MatchQuery), &request)
		if err != nil && i > 0 && strings.Contains(err.Error(), "has no "+method) {
			continue
		}
		if err != nil {
			r.t.Fatal(err)
		}
		q := made.Query.(*distance.Query)
		if i == 0 {
			want = r.flat(q)
		}
		for _, on := range r.on {
			answers := make([]gpuexec.Answer, 1)
			if err := on.Search(r.t.Context(), []gpuexec.Plan{{Family: made.Family, Query: q, K: q.K}}, answers, nil); err != nil || answers[0].Err != nil {
				r.t.Fatal(err, answers[0].Err)
			}
			if !slices.Equal(answers[0].Hits, want) || !answers[0].Exact {
				r.t.Fatalf("%s by %s: %v, want %v", on.Capacity().Form, method, answers[0].Hits, want)
			}
		}
	}
	return want
}

func (r *realIndex) flat(q *distance.Query) (hits []gpuexec.Hit) {
	space, err := q.Column.Space()
	if err != nil {
		r.t.Fatal(err)
	}
	asker, err := q.Asker(space)
	if err != nil {
		r.t.Fatal(err)
	}
	found, _ := flatscan.Nearest(asker, r.x.Objects(), metric.Want{K: q.K, Most: q.Most}, q.Column.Has)
	for _, h := range found {
		hits = append(hits, gpuexec.Hit{ID: h.ID, Score: h.Value})
	}
	return hits
}

// around asks for the nearest objects, for those within the distance of the last of them, and within a little less: which has fewer.
func (r *realIndex) around(request index.Request) {
	r.t.Helper()
	request.Near.K = 10
	hits := r.ask(request)
	if len(hits) == 0 {
		return
	}
	m := r.x.Distances().At(0).Metric
	if request.Near.Column != "" {
		m = r.x.Distances().Column(request.Near.Column).Metric
	}
	radius := m.Report(hits[len(hits)-1].Score)
	request.Near.K, request.Near.Radius = 1000, &radius
	if got := r.ask(request); len(got) < len(hits) {
		r.t.Fatalf("%d within %v, and %d are nearest", len(got), radius, len(hits))
	}
	if less := math.Nextafter(radius, 0); less < radius {
		request.Near.Radius = &less
		for _, h := range r.ask(request) {
			if m.Report(h.Score) > less {
				r.t.Fatalf("%v is beyond %v", m.Report(h.Score), less)
			}
		}
	}
}

// sparse says of which of the data a test takes one: in a short run, under the race detector, the definition's loops over all of it take minutes and find nothing more.
func sparse() int {
	if testing.Short() {
		return 8
	}
	return 1
}

// TestDistancesOfCities: cities by great circles and by latitude and longitude as a plane, by a scan and by trees of boxes.
func TestDistancesOfCities(t *testing.T) {
	rng := seeded.Rand(t)
	var cells [][]schema.Cell
	var at [][2]float64
	for i, line := range realLines(t, "cities15000/cities15000.txt.gz") {
		if i%sparse() > 0 {
			continue
		}
		fields := strings.Split(line, "\t")
		lat, err1 := strconv.ParseFloat(fields[4], 64)
		lon, err2 := strconv.ParseFloat(fields[5], 64)
		if err1 != nil || err2 != nil {
			t.Fatal(line)
		}
		at = append(at, [2]float64{lat, lon})
		cells = append(cells, []schema.Cell{{Values: fields[4:6]}, {Values: fields[4:6]}})
	}
	r := newRealIndex(t, `{name: cities, columns: [{name: on, type: point, index: [tree]}, {name: plane, type: vector, metric: l2, dims: 2, index: [tree]}]}`, cells)
	for range Rounds(make([]struct{}, 20)) {
		p := at[rng.IntN(len(at))]
		if rng.IntN(2) == 0 {
			p = [2]float64{rng.Float64()*180 - 90, rng.Float64()*360 - 180}
		}
		r.around(index.Request{Point: &nearest.Point{Lat: p[0], Lon: p[1]}, Near: nearest.Near{Column: "on"}})
		r.around(index.Request{Vector: []float32{float32(p[0]), float32(p[1])}, Near: nearest.Near{Column: "plane"}})
	}
	spread, err := r.x.Distances().Column("plane").Spread()
	if err != nil || spread.Dimension() < 0.9 || spread.Dimension() > 1.6 { // 1.2 by the design
		t.Errorf("the intrinsic dimension is %v, %v", spread.Dimension(), err)
	}
}

// TestDistancesOfDigits: the exact nearest neighbour of handwritten digits has the right label for 1,761 of 1,797, as is known.
func TestDistancesOfDigits(t *testing.T) {
	read := func(name string) (cells [][]schema.Cell, labels []string) {
		for _, line := range realLines(t, name)[1:] {
			fields := strings.Split(line, ",")
			cells = append(cells, []schema.Cell{{Values: fields[:64]}})
			labels = append(labels, fields[64])
		}
		return cells, labels
	}
	train, labels := read("optdigits/optdigits.tra.gz")
	test, truth := read("optdigits/optdigits.tes.gz")
	r := newRealIndex(t, `{name: digits, columns: [{name: v, type: vector, metric: l2, storage: u8, dims: 64, index: [cells, tree]}]}`, train)
	plans := make([]gpuexec.Plan, len(test))
	var vectors [][]float32
	for i, c := range test {
		vector := make([]float32, 64)
		for j, text := range c[0].Values {
			v, err := strconv.ParseFloat(text, 32)
			if err != nil {
				t.Fatal(err)
			}
			vector[j] = float32(v)
		}
		vectors = append(vectors, vector)
		made, err := r.queries.Plan(new(postings.MatchQuery), &index.Request{Vector: vector, Near: nearest.Near{K: 1, Method: "scan"}})
		if err != nil {
			t.Fatal(err)
		}
		plans[i] = gpuexec.Plan{Family: made.Family, Query: made.Query, K: 1}
	}
	for _, on := range r.on {
		answers := make([]gpuexec.Answer, len(plans))
		if err := on.Search(t.Context(), plans, answers, nil); err != nil {
			t.Fatal(err)
		}
		right := 0
		for i, a := range answers {
			if labels[a.Hits[0].ID] == truth[i] {
				right++
			}
		}
		if right != 1761 || len(test) != 1797 {
			t.Errorf("%d of %d digits are right, 1,761 of 1,797 are known to be", right, len(test))
		}
	}
	for _, vector := range vectors[:10] {
		r.around(index.Request{Vector: vector})
	}
}

// TestDistancesOfSIFT: the hits are the neighbours that come with the data.
func TestDistancesOfSIFT(t *testing.T) {
	vectors := func(name string) (all [][]float32) {
		for data := realFile(t, name); len(data) > 0; data = data[4+128:] {
			v := make([]float32, 128)
			for i, b := range data[4 : 4+128] {
				v[i] = float32(b)
			}
			all = append(all, v)
		}
		return all
	}
	base, queries, truth := vectors("sift_bigann10k/base.bvecs.gz"), vectors("sift_bigann10k/queries.bvecs"), realFile(t, "sift_bigann10k/groundtruth.ivecs")
	var cells [][]schema.Cell
	for _, v := range base {
		cells = append(cells, []schema.Cell{{Vector: v}})
	}
	r := newRealIndex(t, `{name: sift, columns: [{name: v, type: vector, metric: l2, storage: u8, dims: 128, index: [cells]}]}`, cells)
	for i, q := range queries {
		row := truth[i*404:][:404]
		if binary.LittleEndian.Uint32(row) != 100 {
			t.Fatal("the neighbours are not 100 each")
		}
		asked := index.Request{Vector: q, Near: nearest.Near{K: 100}}
		hits := r.flat(r.query(asked))
		if i%10 == 0 {
			hits = r.ask(asked)
		}
		for j, h := range hits {
			id := binary.LittleEndian.Uint32(row[4+4*j:])
			sum := 0.0
			for e := range q {
				d := float64(q[e]) - float64(base[id][e])
				sum += d * d
			}
			if sum != h.Score { // which of equally near ones comes first is nobody's to say but ours
				t.Fatalf("query %d: hit %d is %+v, and neighbour %d is at %v", i, j, h, id, sum)
			}
		}
	}
}

func (r *realIndex) query(request index.Request) *distance.Query {
	r.t.Helper()
	request.Near.Method = "scan"
	made, err := r.queries.Plan(new(postings.MatchQuery), &request)
	if err != nil {
		r.t.Fatal(err)
	}
	return made.Query.(*distance.Query)
}

// TestDistancesOfTheAtmosphere: seven fields per place, by l1 and l2, with trees.
func TestDistancesOfTheAtmosphere(t *testing.T) {
	rng := seeded.Rand(t)
	var cells [][]schema.Cell
	var all [][]string
	for i, line := range realLines(t, "nasa_atmos/atmos.csv.gz")[1:] {
		fields := strings.Split(line, ",")[4:11]
		if i%(8*sparse()) > 0 || slices.ContainsFunc(fields, func(s string) bool { _, err := strconv.ParseFloat(s, 32); return err != nil }) {
			continue
		}
		all = append(all, fields)
		cells = append(cells, []schema.Cell{{Values: fields}, {Values: fields}})
	}
	r := newRealIndex(t, `{name: atmosphere, columns: [{name: l1, type: vector, metric: l1, dims: 7, index: [tree]}, {name: l2, type: vector, metric: l2, dims: 7, index: [tree]}]}`, cells)
	for range Rounds(make([]struct{}, 20)) {
		v := make([]float32, 7)
		for i, text := range all[rng.IntN(len(all))] {
			x, _ := strconv.ParseFloat(text, 32)
			v[i] = float32(x) + rng.Float32()
		}
		for _, column := range []string{"l1", "l2"} {
			r.around(index.Request{Vector: v, Near: nearest.Near{Column: column}})
		}
	}
}

// TestDistancesOfTexts: words and reads of DNA by edit distance, of a column of strings with a tree and of sequences.
func TestDistancesOfTexts(t *testing.T) {
	rng := seeded.Rand(t)
	var words, reads []string
	for i, w := range strings.Fields(string(realFile(t, "words/american-english-insane.gz"))) {
		if i%(60*sparse()) == 0 {
			words = append(words, w)
		}
	}
	for i, line := range realLines(t, "dna/ERR127302_1_subset.fastq.gz") {
		if i%(16*sparse()) == 1 {
			reads = append(reads, line)
		}
	}
	for name, texts := range map[string][]string{"words": words, "reads": reads} {
		var cells [][]schema.Cell
		for _, text := range texts {
			cells = append(cells, []schema.Cell{{Values: []string{text}}})
		}
		for _, spec := range []string{`{name: %s, columns: [{name: s, type: string, metric: edit, index: [tree]}]}`, `{name: %s, kind: sequences, columns: [{name: s, type: text}]}`} {
			r := newRealIndex(t, fmt.Sprintf(spec, name), cells)
			for range Rounds(make([]struct{}, 8)) {
				whole := []rune(texts[rng.IntN(len(texts))])
				text := string(whole[:rng.IntN(len(whole))]) + RandomString(rng, "ACe", 1+rng.IntN(4))
				r.around(index.Request{Text: &text})
			}
		}
	}
}
