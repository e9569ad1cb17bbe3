package permutation

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/csv"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/recall"
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
	path := filepath.Join(append([]string{folder}, elem...)...)
	content, err := os.ReadFile(path)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("the real data must be there in CI: %v", err)
		}
		t.Skipf("no real data: %v; set GENIEMQ_DATA to its folder", err)
	}
	if strings.HasSuffix(path, ".gz") {
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

// texts are a space of texts under edit distance.
func texts(t testing.TB, all []string) metric.Space {
	t.Helper()
	s, err := metric.NewTexts(uint32(len(all)), func(i uint32) string { return all[i] }, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// words are so many of the list that are nothing but small letters, drawn with seed 1.
func words(t testing.TB, n uint32) metric.Space {
	var all, some []string
	for w := range strings.FieldsSeq(string(data(t, "words", "american-english-insane.gz"))) {
		if strings.Trim(w, "abcdefghijklmnopqrstuvwxyz") == "" {
			all = append(all, w)
		}
	}
	for _, i := range recall.Draw(uint32(len(all)), n, 1) {
		some = append(some, all[i])
	}
	return texts(t, some)
}

// reads are the first 64 bases of DNA reads.
func reads(t testing.TB) metric.Space {
	var all []string
	for i, line := range strings.Split(string(data(t, "dna", "ERR127302_1_subset.fastq.gz")), "\n") {
		if i%4 == 1 {
			all = append(all, line[:64])
		}
	}
	return texts(t, all)
}

func vectors(t testing.TB, m metric.Metric, dims int, elements []float32) metric.Space {
	t.Helper()
	s, err := metric.NewVectors(m, dims, elements)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// sift are 10,000 SIFT features under l2.
func sift(t testing.TB) metric.Space {
	var elements []float32
	for content := data(t, "sift_bigann10k", "base.bvecs.gz"); len(content) > 0; content = content[4+128:] {
		if d := binary.LittleEndian.Uint32(content); d != 128 {
			t.Fatalf("a vector of %d dimensions", d)
		}
		for _, b := range content[4 : 4+128] {
			elements = append(elements, float32(b))
		}
	}
	return vectors(t, metric.Metric{Kind: metric.L2}, 128, elements)
}

// atmospheres are the satellite fields of nasa_atmos, as columns of one scale, under l1.
func atmospheres(t testing.TB) metric.Space {
	rows, err := csv.NewReader(bytes.NewReader(data(t, "nasa_atmos", "atmos.csv.gz"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	const dims = 7
	var elements []float32
	for _, row := range rows[1:] {
		for _, cell := range row[len(row)-dims:] {
			v, err := strconv.ParseFloat(cell, 32)
			if err != nil {
				v = math.NaN()
			}
			elements = append(elements, float32(v))
		}
	}
	n := len(elements) / dims
	for j := range dims {
		mean, square, known := 0.0, 0.0, 0.0
		for i := range n {
			if v := float64(elements[i*dims+j]); v == v {
				mean, square, known = mean+v, square+v*v, known+1
			}
		}
		mean /= known
		deviation := math.Sqrt(square/known - mean*mean)
		for i := range n {
			e := &elements[i*dims+j]
			if *e != *e {
				*e = float32(mean)
			}
			*e = float32((float64(*e) - mean) / deviation)
		}
	}
	return vectors(t, metric.Metric{Kind: metric.L1}, dims, elements)
}

// colors are made like features of pictures, 50,000 of 282 bytes of which half are 0, around 1,000 centres, under l1 (as bench/sets has them).
func colors(t testing.TB) metric.Space {
	t.Helper()
	const n, dims, clusters = 50_000, 282, 1000
	rng := rand.New(rand.NewPCG('c', 1))
	var centres [clusters][dims]float64
	for c := range centres {
		for j := range dims {
			if rng.IntN(2) == 0 {
				centres[c][j] = min(255, 1+40*rng.ExpFloat64())
			}
		}
	}
	elements := make([]uint8, 0, n*dims)
	for range n {
		for _, e := range centres[rng.IntN(clusters)] {
			if e > 0 {
				e = math.Round(min(255, max(0, e+8*rng.NormFloat64())))
			}
			elements = append(elements, uint8(e))
		}
	}
	space, err := metric.NewVectors(metric.Metric{Kind: metric.L1}, dims, elements)
	if err != nil {
		t.Fatal(err)
	}
	return space
}
