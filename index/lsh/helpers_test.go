package lsh

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/csv"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/raced"
)

func normal(rng *rand.Rand, n int, scale float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64() * scale)
	}
	return x
}

// some are parameters without fault.
func some(rng *rand.Rand, family Family) Parameters {
	p := Parameters{Family: family, Dim: 1 + rng.IntN(300), Functions: 1 + rng.IntN(70), Buckets: 2 + rng.IntN(300), Width: .1 + 3*rng.Float64(), Seed: rng.Uint64()}
	switch family {
	case Cosine:
		p.Buckets, p.Width = 2, 0
	case L2:
		p.Rehash = rng.IntN(2) == 0
		if !p.Rehash && rng.IntN(2) == 0 {
			p.Centre = normal(rng, p.Dim, 1)
		}
	default:
		p.Rehash = true
	}
	if family.reaches() {
		p.Reach = rng.IntN(5)
	}
	return p
}

// must makes functions.
func must(t testing.TB, p Parameters) *Functions {
	t.Helper()
	f, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// hash hashes vectors.
func hash(t testing.TB, f *Functions, vectors []float32) []uint32 {
	t.Helper()
	dst := make([]uint32, len(vectors)/f.parameters.Dim*f.parameters.Functions)
	if err := f.Hash(dst, vectors, 2); err != nil {
		t.Fatal(err)
	}
	return dst
}

// matches counts the functions on which two vectors agree, as an index would.
func matches(t testing.TB, f *Functions, query, object []float32) (c uint32) {
	t.Helper()
	keywords := hash(t, f, object)
	asked := f.parameters.Asked()
	queried := make([]uint32, f.parameters.Functions*asked)
	if err := f.HashQueries(queried, query, 1); err != nil {
		t.Fatal(err)
	}
	for i, k := range keywords {
		for _, q := range queried[i*asked : (i+1)*asked] {
			if lo, hi := f.parameters.Span(q); lo <= k && k < hi {
				c++
				break
			}
		}
	}
	return c
}

// data returns a file of the folder of the real data, unpacked, or skips the test; in CI the folder must be there.
func data(t testing.TB, elem ...string) []byte {
	t.Helper()
	raced.Skip(t, raced.Data)
	folder := os.Getenv("GENIEMQ_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "shared", "data")
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

// sift returns the points and queries of bigann10k, of 128 dimensions, and the 100 nearest points of each query.
func sift(t testing.TB) (objects, queries []float32, nearest [][]uint32) {
	t.Helper()
	vectors := func(content []byte) (out []float32) {
		for ; len(content) > 0; content = content[4+128:] {
			if d := binary.LittleEndian.Uint32(content); d != 128 {
				t.Fatalf("a vector of %d dimensions", d)
			}
			for _, b := range content[4 : 4+128] {
				out = append(out, float32(b))
			}
		}
		return out
	}
	for content := data(t, "sift_bigann10k", "groundtruth.ivecs"); len(content) > 0; {
		n := binary.LittleEndian.Uint32(content)
		ids := make([]uint32, n)
		for i := range ids {
			ids[i] = binary.LittleEndian.Uint32(content[4+4*i:])
		}
		nearest, content = append(nearest, ids), content[4+4*n:]
	}
	return vectors(data(t, "sift_bigann10k", "base.bvecs.gz")), vectors(data(t, "sift_bigann10k", "queries.bvecs")), nearest
}

// digits returns the handwritten digits of those writers that are there to learn from, of 64 dimensions.
func digits(t testing.TB) (objects []float32) {
	t.Helper()
	rows, err := csv.NewReader(bytes.NewReader(data(t, "optdigits", "optdigits.tra.gz"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		for _, cell := range row[:64] {
			v, err := strconv.ParseFloat(cell, 32)
			if err != nil {
				t.Fatal(err)
			}
			objects = append(objects, float32(v))
		}
	}
	return objects
}
