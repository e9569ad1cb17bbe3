package load

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// epoch is the day 0 of Parquet.
var epoch = time.Unix(0, 0).UTC()

// vectorSchema is that of objects which are a vector.
func vectorSchema() *schema.Schema {
	return &schema.Schema{Name: "v", Columns: []schema.Column{{Name: "x", Type: schema.VectorColumn}, {Name: "note", Type: schema.PayloadColumn}}}
}

// readVectors reads a source to its end, or to the first error.
func readVectors(data []byte, format Format) (all [][]float32, err error) {
	r, err := NewReader(bytes.NewReader(data), "v."+string(format), vectorSchema(), Options{Format: format})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var rec schema.Record
	for {
		if err := r.Next(&rec); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return all, err
		}
		all = append(all, slices.Clone(rec.Cells[0].Vector))
	}
}

// npy is an array as numpy.save writes it.
func npy(kind, order string, rows, columns int, data []byte) []byte {
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': (%d, %d), }", kind, order, rows, columns)
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	out := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	return append(append(out, header...), data...)
}

func TestVectorsRoundTrip(t *testing.T) {
	rng := seeded.Rand(t)
	for range 50 {
		rows, n := rng.IntN(20), 1+rng.IntN(50)
		var want [][]float32
		var f4, f8, u1, fvecs, bvecs []byte
		for range rows {
			var x []float32
			fvecs = binary.LittleEndian.AppendUint32(fvecs, uint32(n))
			bvecs = binary.LittleEndian.AppendUint32(bvecs, uint32(n))
			for range n {
				b := uint8(rng.Uint32())
				v := float32(b)
				x = append(x, v)
				f4 = binary.LittleEndian.AppendUint32(f4, math.Float32bits(v))
				fvecs = binary.LittleEndian.AppendUint32(fvecs, math.Float32bits(v))
				f8 = binary.BigEndian.AppendUint64(f8, math.Float64bits(float64(v)))
				u1, bvecs = append(u1, b), append(bvecs, b)
			}
			want = append(want, x)
		}
		for _, source := range []struct {
			format Format
			data   []byte
		}{
			{NPY, npy("<f4", "False", rows, n, f4)}, {NPY, npy(">f8", "False", rows, n, f8)}, {NPY, npy("|u1", "False", rows, n, u1)},
			{FVecs, fvecs}, {BVecs, bvecs},
		} {
			got, err := readVectors(source.data, source.format)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("%s, %d x %d: %v\n%v, want\n%v", source.format, rows, n, err, got, want)
			}
			if rows > 0 { // cut anywhere it is an error, but between vectors that have their lengths
				cut := rng.IntN(len(source.data))
				got, err := readVectors(source.data[:cut], source.format)
				whole := source.format != NPY && cut%(len(source.data)/rows) == 0
				if (err == nil) != whole || !slices.EqualFunc(got, want[:len(got)], slices.Equal) {
					t.Fatalf("%s cut to %d of %d bytes: %d vectors, %v", source.format, cut, len(source.data), len(got), err)
				}
			}
		}
	}
}

func TestVectorsRefused(t *testing.T) {
	f4 := binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(math.NaN())))
	for _, c := range []struct {
		format Format
		data   []byte
		says   string
	}{
		{NPY, []byte("hello"), "is not an array of NumPy"},
		{NPY, npy("<f4", "True", 1, 1, f4), "stored by columns"},
		{NPY, npy("<f4", "False", 1, 1, f4), "element 0 is NaN"},
		{NPY, npy("<c8", "False", 1, 1, nil), "of type c8"},
		{NPY, npy("<f4", "False", 1, 0, nil), "1 to 65536 elements"},
		{NPY, npy("<f4", "False", 1, 1<<40, nil), "1 to 65536 elements"},
		{NPY, npy("<f4", "False", 2, 1, []byte{0, 0, 0, 0}), "truncated"},
		{FVecs, []byte{0, 0, 0, 0}, "vector 1 has 0 elements"},
		{FVecs, []byte{255, 255, 255, 255}, "vector 1 has -1 elements"},
		{BVecs, []byte{1, 0, 0, 0, 7, 2, 0, 0, 0, 7, 7}, "vector 2 has 2 elements, the ones before have 1"},
		{BVecs, []byte{1, 0}, "truncated"},
		{Parquet, []byte("PAR1"), "from a file"},
	} {
		if _, err := readVectors(c.data, c.format); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %q: %v, want %q", c.format, c.data[:min(20, len(c.data))], err, c.says)
		}
	}
	s := vectorSchema()
	s.Columns[1].Type = schema.CategoryColumn
	if _, err := NewReader(bytes.NewReader(nil), "a.fvecs", s, Options{}); err == nil || !strings.Contains(err.Error(), `column "note"`) {
		t.Errorf("a second column: %v", err)
	}
}

func FuzzVectors(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 7}, uint8(0))
	f.Add(npy("<f4", "False", 1, 1, []byte{0, 0, 0, 0}), uint8(2))
	f.Fuzz(func(t *testing.T, data []byte, format uint8) {
		formats := []Format{BVecs, FVecs, NPY}
		all, _ := readVectors(data, formats[int(format)%len(formats)])
		bytes := 0
		for _, x := range all {
			bytes += len(x)
		}
		if bytes > len(data) {
			t.Fatalf("%d elements of %d bytes", bytes, len(data))
		}
	})
}

type parquetRow struct {
	ID     string    `parquet:"id"`
	X      []float32 `parquet:"x,list"`
	Tags   []string  `parquet:"tags,list"`
	Price  float64   `parquet:"price"`
	Count  *int32    `parquet:"count,optional"`
	Day    int32     `parquet:"day,date"`
	Cost   int64     `parquet:"cost,decimal(2:18)"`
	Unused int64     `parquet:"unused"`
	Yes    bool      `parquet:"yes"`
}

func parquetSchema(extra ...schema.Column) *schema.Schema {
	return &schema.Schema{Name: "p", Key: "id", Columns: append([]schema.Column{
		{Name: "x", Type: schema.VectorColumn}, {Name: "tags", Type: schema.CategoryColumn}, {Name: "price", Type: schema.NumberColumn},
		{Name: "count", Type: schema.PayloadColumn}, {Name: "day", Type: schema.CategoryColumn}, {Name: "cost", Type: schema.NumberColumn},
		{Name: "yes", Type: schema.CategoryColumn},
	}, extra...)}
}

func writeParquet(t testing.TB, rows []parquetRow, options ...parquet.WriterOption) string {
	path := filepath.Join(t.TempDir(), "p.parquet")
	var b bytes.Buffer
	w := parquet.NewGenericWriter[parquetRow](&b, append([]parquet.WriterOption{parquet.MaxRowsPerRowGroup(37)}, options...)...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func someRows(rng *rand.Rand, n int) (rows []parquetRow) {
	for i := range n {
		row := parquetRow{ID: fmt.Sprint("k", i), Price: rng.NormFloat64(), Day: int32(rng.IntN(30000)), Cost: rng.Int64N(1e6) - 5e5, Yes: i%2 == 0}
		for range rng.IntN(5) {
			row.X = append(row.X, rng.Float32())
			row.Tags = append(row.Tags, fmt.Sprint("t", rng.IntN(9)))
		}
		if n := rng.Int32N(100); n > 50 {
			row.Count = &n
		}
		rows = append(rows, row)
	}
	return rows
}

func TestParquet(t *testing.T) {
	rng := seeded.Rand(t)
	rows := someRows(rng, 200)
	path := writeParquet(t, rows)
	r, err := Open(path, parquetSchema(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var rec schema.Record
	for i, row := range rows {
		if err := r.Next(&rec); err != nil {
			t.Fatal(i, err)
		}
		texts := func(column int, want ...string) {
			t.Helper()
			if got := rec.Cells[column].Values; !slices.Equal(got, want) {
				t.Errorf("row %d: column %d is %q, want %q", i, column, got, want)
			}
		}
		if rec.Key != row.ID || rec.Line != int64(i+1) || !slices.Equal(rec.Cells[0].Vector, row.X) {
			t.Fatalf("row %d: %+v, want %+v", i, rec, row)
		}
		texts(1, row.Tags...)
		texts(2, fmt.Sprint(row.Price))
		if count := string(rec.Cells[3].JSON); row.Count == nil && count != "" || row.Count != nil && count != fmt.Sprint(*row.Count) {
			t.Errorf("row %d: count %q, want %v", i, count, row.Count)
		}
		texts(4, epoch.AddDate(0, 0, int(row.Day)).Format("2006-01-02"))
		sign, cost := "", row.Cost
		if cost < 0 {
			sign, cost = "-", -cost
		}
		texts(5, fmt.Sprintf("%s%d.%02d", sign, cost/100, cost%100))
		texts(6, fmt.Sprint(row.Yes))
	}
	if err := r.Next(&rec); !errors.Is(err, io.EOF) {
		t.Errorf("after the last row: %v", err)
	}
	if _, err := Open(path, parquetSchema(schema.Column{Name: "prise", Type: schema.NumberColumn}), Options{}); err == nil || !strings.Contains(err.Error(), "did you mean price") {
		t.Errorf("a misspelt column: %v", err)
	}
}

// TestParquetDamaged: no damage of a file ends the process, and no error is silent about the file.
func TestParquetDamaged(t *testing.T) {
	rng := seeded.Rand(t)
	path := writeParquet(t, []parquetRow{{ID: "a", X: []float32{1, 2}, Tags: []string{"x"}}, {ID: "b", X: []float32{3}}})
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for range 300 {
		bad := slices.Clone(data)
		if rng.IntN(3) == 0 {
			bad = bad[:rng.IntN(len(bad))]
		} else {
			bad[rng.IntN(len(bad))] ^= byte(1 << rng.IntN(8))
		}
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		err := func() error {
			r, err := Open(path, parquetSchema(), Options{})
			if err != nil {
				return err
			}
			defer r.Close()
			var rec schema.Record
			for range 10 {
				if err := r.Next(&rec); err != nil {
					if errors.Is(err, io.EOF) {
						return nil
					}
					return err
				}
			}
			return nil
		}()
		if err != nil {
			refused++
			if !strings.Contains(err.Error(), path) {
				t.Errorf("the error does not name the file: %v", err)
			}
		}
	}
	if refused < 100 {
		t.Errorf("only %d of 300 damaged files are refused", refused)
	}
}
