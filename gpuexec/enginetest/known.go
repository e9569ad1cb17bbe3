package enginetest

import (
	"bufio"
	"compress/gzip"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/gpuexec"
)

// ReadLines reads a text file, compressed or not.
func ReadLines(t testing.TB, name string) []string {
	t.Helper()
	f, err := os.Open(dataFile(t, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	var lines []string
	s := bufio.NewScanner(r)
	for s.Scan() {
		lines = append(lines, s.Text())
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

// NumberRows reads rows of small numbers: as columns, or as a bag of numbers in one dimension.
func NumberRows(t testing.TB, name string, bag bool) *World {
	t.Helper()
	w := &World{}
	for _, line := range ReadLines(t, name) {
		var object [][]uint32
		for _, field := range strings.Split(strings.TrimRight(line, ",\r "), ",") {
			v, err := strconv.ParseUint(strings.TrimSpace(field), 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			if bag && len(object) > 0 {
				object[0] = append(object[0], uint32(v))
			} else {
				object = append(object, []uint32{uint32(v)})
			}
		}
		w.Objects = append(w.Objects, object)
		for len(w.Vocabulary) < len(object) {
			w.Vocabulary = append(w.Vocabulary, 1)
		}
		for a, keywords := range object {
			w.Vocabulary[a] = max(w.Vocabulary[a], slices.Max(keywords)+1)
		}
	}
	w.Build(t)
	return w
}

// RowPlan asks for a row, every number within radius, a repeated number again.
func (w *World) RowPlan(row, radius uint32, k int) gpuexec.Plan {
	var plan gpuexec.Plan
	plan.K = k
	for a, keywords := range w.Objects[row] {
		for _, kw := range keywords {
			Query(&plan).StartItem(uint32(a), 1)
			Query(&plan).AddSpan(kw-min(kw, radius), min(kw+radius+1, w.Vocabulary[a]))
		}
	}
	return plan
}

const WordsFile = "words/american-english-insane.gz"
