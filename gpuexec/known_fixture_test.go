package gpuexec

import (
	"bufio"
	"compress/gzip"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// readLines reads a text file, compressed or not.
func readLines(t testing.TB, name string) []string {
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

// numberRows reads rows of small numbers: as columns, or as a bag of numbers in one dimension.
func numberRows(t testing.TB, name string, bag bool) *world {
	t.Helper()
	w := &world{}
	for _, line := range readLines(t, name) {
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
		w.objects = append(w.objects, object)
		for len(w.vocabulary) < len(object) {
			w.vocabulary = append(w.vocabulary, 1)
		}
		for a, keywords := range object {
			w.vocabulary[a] = max(w.vocabulary[a], slices.Max(keywords)+1)
		}
	}
	w.build(t)
	return w
}

// rowPlan asks for a row, every number within radius, a repeated number again.
func (w *world) rowPlan(row, radius uint32, k int) Plan {
	var plan Plan
	plan.Match.K = k
	for a, keywords := range w.objects[row] {
		for _, kw := range keywords {
			plan.Match.Query.StartItem(uint32(a), 1)
			plan.Match.Query.AddSpan(kw-min(kw, radius), min(kw+radius+1, w.vocabulary[a]))
		}
	}
	return plan
}

const wordsFile = "words/american-english-insane.gz"
