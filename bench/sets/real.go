package sets

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/geniemq/geniemq/index/schema"
)

// cities are places on the globe.
func cities(o *Options, _ int) (cells []schema.Cell, err error) {
	rows, err := table(o.Folder, "cities15000/cities15000.txt.gz", "\t", 0, []int{4, 5})
	for _, v := range rows {
		lat, lon := strconv.FormatFloat(float64(v[0]), 'g', -1, 32), strconv.FormatFloat(float64(v[1]), 'g', -1, 32)
		cells = append(cells, schema.Cell{Values: []string{lat, lon}})
	}
	return cells, err
}

// atmosphere are seven fields of satellites, each in units of its standard deviation. Rows in which one is missing are left out.
func atmosphere(o *Options, _ int) ([]schema.Cell, error) {
	rows, err := table(o.Folder, "nasa_atmos/atmos.csv.gz", ",", 1, []int{4, 5, 6, 7, 8, 9, 10})
	if err != nil {
		return nil, err
	}
	for j := range rows[0] {
		sum, squares := 0.0, 0.0
		for _, row := range rows {
			sum, squares = sum+float64(row[j]), squares+float64(row[j])*float64(row[j])
		}
		mean := sum / float64(len(rows))
		deviation := math.Sqrt(squares/float64(len(rows)) - mean*mean)
		for _, row := range rows {
			row[j] = float32((float64(row[j]) - mean) / deviation)
		}
	}
	return vectors(rows), nil
}

// digits are drawn ones, of 8 x 8 pixels.
func digits(o *Options, _ int) ([]schema.Cell, error) {
	var columns []int
	for i := range 64 {
		columns = append(columns, i)
	}
	rows, err := table(o.Folder, "optdigits/optdigits.tra.gz", ",", 0, columns)
	return vectors(rows), err
}

// sift are features of pictures.
func sift(o *Options, _ int) ([]schema.Cell, error) {
	content, err := read(o.Folder, "sift_bigann10k/base.bvecs.gz")
	if err != nil {
		return nil, err
	}
	const dims = 128
	var rows [][]float32
	for ; len(content) >= 4+dims; content = content[4+dims:] {
		if d := binary.LittleEndian.Uint32(content); d != dims {
			return nil, fmt.Errorf("a vector of %d dimensions, where all have %d", d, dims)
		}
		row := make([]float32, dims)
		for i, b := range content[4 : 4+dims] {
			row[i] = float32(b)
		}
		rows = append(rows, row)
	}
	return vectors(rows), nil
}

// words are all of the list, and letters those of small letters alone.
func words(o *Options, _ int) ([]schema.Cell, error) {
	return list(o, func(string) bool { return true })
}

func letters(o *Options, _ int) ([]schema.Cell, error) {
	return list(o, func(word string) bool { return strings.Trim(word, "abcdefghijklmnopqrstuvwxyz") == "" })
}

func list(o *Options, wanted func(word string) bool) (cells []schema.Cell, err error) {
	content, err := read(o.Folder, "words/american-english-insane.gz")
	for word := range strings.FieldsSeq(string(content)) {
		if wanted(word) {
			cells = append(cells, schema.Cell{Values: []string{word}})
		}
	}
	return cells, err
}

// reads are the first bases of DNA reads, of which every second of four lines is one.
func reads(bases int) func(o *Options, n int) ([]schema.Cell, error) {
	return func(o *Options, _ int) (cells []schema.Cell, err error) {
		content, err := read(o.Folder, "dna/ERR127302_1_subset.fastq.gz")
		lines := bufio.NewScanner(bytes.NewReader(content))
		for n := 0; lines.Scan(); n++ {
			if text := lines.Text(); n%4 == 1 {
				cells = append(cells, schema.Cell{Values: []string{text[:min(len(text), bases)]}})
			}
		}
		return cells, errors.Join(err, lines.Err())
	}
}

func vectors(rows [][]float32) (cells []schema.Cell) {
	for _, row := range rows {
		cells = append(cells, schema.Cell{Vector: row})
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
