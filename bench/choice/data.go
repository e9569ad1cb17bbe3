package choice

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/nearest"
	"github.com/geniemq/geniemq/index/schema"
)

// set is a data set: the cells of its objects, those of others that are asked for, and what is asked.
type set struct {
	name, columns string // of the schema
	objects       [][]schema.Cell
	asked         []index.Request // without k and radius
	ks            []int
	radii         []float64
}

// heldOut is one object in so many that is asked for and is no object.
const heldOut = 64

// deal shuffles objects and holds some out.
func (s *set) deal(all [][]schema.Cell, request func(c []schema.Cell) index.Request) {
	rng := rand.New(rand.NewPCG(1, 1))
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	n := min(len(all)/heldOut, 256)
	for _, c := range all[:n] {
		s.asked = append(s.asked, request(c))
	}
	s.objects = all[n:]
}

func byVector(c []schema.Cell) index.Request { return index.Request{Vector: c[0].Vector} }

func byText(c []schema.Cell) index.Request { return index.Request{Text: &c[0].Values[0]} }

func byPoint(c []schema.Cell) index.Request {
	lat, _ := strconv.ParseFloat(c[0].Values[0], 64) // as they were written
	lon, _ := strconv.ParseFloat(c[0].Values[1], 64)
	return index.Request{Point: &nearest.Point{Lat: lat, Lon: lon}}
}

// sets reads the data sets.
func sets(folder string) (all []*set, err error) {
	cities, err := table(folder, "cities15000/cities15000.txt.gz", "\t", 0, []int{4, 5})
	if err != nil {
		return nil, err
	}
	var places [][]schema.Cell
	for _, v := range cities {
		lat, lon := strconv.FormatFloat(float64(v[0]), 'g', -1, 32), strconv.FormatFloat(float64(v[1]), 'g', -1, 32)
		places = append(places, []schema.Cell{{Values: []string{lat, lon}}})
	}
	city := &set{name: "cities15000 geo", columns: "{name: c, type: point, index: [tree]}", ks: []int{1, 10, 100}, radii: []float64{10_000, 100_000}}
	city.deal(places, byPoint)
	all = append(all, city)

	air, err := table(folder, "nasa_atmos/atmos.csv.gz", ",", 1, []int{4, 5, 6, 7, 8, 9, 10})
	if err != nil {
		return nil, err
	}
	all = append(all, vectors("nasa_atmos l1", "l1", air, []float64{0.5, 2}))

	var columns []int
	for i := range 64 {
		columns = append(columns, i)
	}
	digits, err := table(folder, "optdigits/optdigits.tra.gz", ",", 0, columns)
	if err != nil {
		return nil, err
	}
	all = append(all, vectors("optdigits l1", "l1", digits, []float64{60}), vectors("optdigits cosine", "cosine", digits, nil))

	words, err := read(folder, "words/american-english-insane.gz")
	if err != nil {
		return nil, err
	}
	var texts [][]schema.Cell
	for _, w := range strings.Fields(string(words)) {
		texts = append(texts, []schema.Cell{{Values: []string{w}}})
	}
	list := &set{name: "words edit", columns: "{name: c, type: string, metric: edit, index: [tree, ngram]}", ks: []int{1, 10}, radii: []float64{1, 2}}
	list.deal(texts, byText)
	list.objects = list.objects[:min(len(list.objects), 100_000)]
	all = append(all, list)

	reads, err := read(folder, "dna/ERR127302_1_subset.fastq.gz")
	if err != nil {
		return nil, err
	}
	strands := &set{name: "dna edit", columns: "{name: c, type: string, metric: edit, ngram: 8, index: [tree, ngram]}", ks: []int{1}, radii: []float64{2, 8}}
	strands.deal(fastq(reads), byText)
	return append(all, strands), nil
}

// vectors is a set of vectors, each element in units of its standard deviation where a radius is asked for in such.
func vectors(name, metric string, rows [][]float32, radii []float64) *set {
	var cells [][]schema.Cell
	for _, v := range rows {
		cells = append(cells, []schema.Cell{{Vector: v}})
	}
	s := &set{name: name, columns: fmt.Sprintf("{name: c, type: vector, metric: %s, dims: %d, index: [tree]}", metric, len(rows[0])), ks: []int{1, 10, 100}, radii: radii}
	s.deal(cells, byVector)
	return s
}

// fastq is the reads of a file, of which every second of four lines is one.
func fastq(content []byte) (cells [][]schema.Cell) {
	lines := bufio.NewScanner(bytes.NewReader(content))
	for n := 0; lines.Scan(); n++ {
		if n%4 == 1 {
			cells = append(cells, []schema.Cell{{Values: []string{lines.Text()}}})
		}
	}
	return cells
}

// table reads columns of numbers. Rows in which one is missing are left out.
func table(folder, name, separator string, header int, columns []int) (rows [][]float32, err error) {
	content, err := read(folder, name)
	if err != nil {
		return nil, err
	}
	for _, line := range strings.Split(strings.TrimSpace(string(content)), "\n")[header:] {
		fields := strings.Split(strings.TrimSpace(line), separator)
		var row []float32
		for _, c := range columns {
			if v, err := strconv.ParseFloat(fields[min(c, len(fields)-1)], 32); err == nil {
				row = append(row, float32(v))
			}
		}
		if len(row) == len(columns) {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s has no rows of numbers", name)
	}
	return rows, nil
}

func read(folder, name string) ([]byte, error) {
	f, err := os.Open(filepath.Join(folder, filepath.FromSlash(name)))
	if err != nil {
		return nil, fmt.Errorf("reading real data (--data names their folder): %w", err)
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return io.ReadAll(r)
}
