package load

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestVectorsAreAsOne: however many decode vectors, in parts of whatever size, they give what one gives: records, bad ones, and what ends the source, which may be cut anywhere,
// compressed, broken while it is read, or have a head that is wrong.
func TestVectorsAreAsOne(t *testing.T) {
	rng := seeded.Rand(t)
	read, bad, ended := 0, 0, 0
	for round := range 600 {
		rows, n := rng.IntN(200), 1+rng.IntN(12)
		format := []Format{NPY, FVecs, BVecs}[rng.IntN(3)]
		var data []byte
		for range rows {
			head := uint32(n)
			if rng.IntN(1000) == 0 {
				head = rng.Uint32N(20)
			}
			if format != NPY {
				data = binary.LittleEndian.AppendUint32(data, head)
			}
			for range n {
				v := rng.Float32()
				if rng.IntN(300) == 0 {
					v = float32(math.NaN())
				}
				if format == BVecs {
					data = append(data, byte(rng.Uint32()))
				} else {
					data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
				}
			}
		}
		if format == NPY {
			data = npy("<f4", "False", rows, n, data)
		}
		switch rng.IntN(4) {
		case 0:
			data = data[:rng.IntN(len(data)+1)]
		case 1:
			data = append(data, make([]byte, rng.IntN(9))...)
		}
		open := func() io.Reader {
			var source io.Reader = bytes.NewReader(data)
			if round%7 == 0 {
				packed := compress(t, string(data))
				if round%2 == 0 {
					packed = packed[:len(packed)-round%len(packed)/2]
				}
				source = bytes.NewReader(packed)
			}
			if round%5 == 0 {
				source = failing{source}
			}
			return source
		}
		o := Options{Format: format}
		want := readOutcome(t, open(), vectorSchema(), o, 1, 0)
		size, workers := 1+rng.IntN(1+rng.IntN(300)), 2+rng.IntN(3)
		if got := readOutcome(t, open(), vectorSchema(), o, workers, size); !same(got, want) {
			t.Fatalf("round %d, %s, %d x %d, parts of %d bytes, %d workers: %d records and %q, not %d and %q", round, format, rows, n, size, workers, len(got.records), got.errs, len(want.records), want.errs)
		}
		read, bad, ended = read+len(want.records), bad+len(want.errs), ended+1
	}
	t.Logf("%d records, %d errors, %d sources", read, bad-2*ended, ended)
	if read < 5000 || bad-2*ended < 50 {
		t.Errorf("%d records and %d errors are too few to show anything", read, bad-2*ended)
	}
}

// TestParquetIsAsOne: the same of Parquet, of groups of rows and pages of any size, whole and damaged.
func TestParquetIsAsOne(t *testing.T) {
	rng := seeded.Rand(t)
	failed := 0
	for round := range 60 {
		n := rng.IntN(300)
		if round%10 == 0 {
			n += 3000
		}
		path := writeParquet(t, someRows(rng, n), parquet.MaxRowsPerRowGroup(int64(1+rng.IntN(n+100))), parquet.PageBufferSize(64+rng.IntN(1<<14)), parquet.DataPageVersion(1+rng.IntN(2)),
			parquet.WriteBufferSize(0))
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if round%3 == 0 {
			data[rng.IntN(len(data))] ^= byte(1 << rng.IntN(8))
		} else if round%7 == 0 {
			data = data[:rng.IntN(len(data))]
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		read := func(workers int) outcome {
			file, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			return readOutcome(t, file, parquetSchema(), Options{Format: Parquet}, workers, 0)
		}
		want := read(1)
		// Where damage makes a page shorter than its header says, the library reads what its memory had before (parquet-go v0.32.0: checkPageDataCapacity looks at the
		// capacity and not at the length), and one reader does not give the same twice.
		steady := func() bool {
			for range 20 {
				if !same(read(1), want) {
					return false
				}
			}
			return true
		}
		for _, workers := range []int{2, 3, 8} {
			if got := read(workers); !same(got, want) && steady() {
				t.Fatalf("round %d, %d rows, %d workers: %d records and %q, not %d and %q", round, n, workers, len(got.records), got.errs, len(want.records), want.errs)
			}
		}
		if round%21 != 0 && round%3 != 0 && round%7 != 0 && len(want.records) != n {
			t.Fatalf("round %d: %d records of %d rows: %q", round, len(want.records), n, want.errs)
		}
		if len(want.records) != n {
			failed++
		}
	}
	if failed < 5 {
		t.Errorf("damage was found %d times: too few to show anything", failed)
	}
}

// BenchmarkReaders reads vectors by one core and by two.
func BenchmarkReaders(b *testing.B) {
	rng := seeded.Rand(b)
	var fvecs []byte
	var rows []parquetRow
	for range 20_000 {
		row := parquetRow{ID: "key", Tags: []string{"some", "tags"}, Price: rng.Float64()}
		fvecs = binary.LittleEndian.AppendUint32(fvecs, 64)
		for range 64 {
			v := rng.Float32()
			fvecs, row.X = binary.LittleEndian.AppendUint32(fvecs, math.Float32bits(v)), append(row.X, v)
		}
		rows = append(rows, row)
	}
	path := writeParquet(b, rows, parquet.MaxRowsPerRowGroup(8000))
	for _, workers := range []int{1, 2} {
		for _, format := range []Format{FVecs, Parquet} {
			b.Run(fmt.Sprintf("%s-%d", format, workers), func(b *testing.B) {
				for b.Loop() {
					var source io.Reader = bytes.NewReader(fvecs)
					s := vectorSchema()
					if format == Parquet {
						file, err := os.Open(path)
						if err != nil {
							b.Fatal(err)
						}
						defer file.Close()
						source, s = file, parquetSchema()
					}
					r, err := NewReader(source, "source", s, Options{Format: format, Workers: workers})
					if err != nil {
						b.Fatal(err)
					}
					n, rec := 0, schema.Record{}
					for ; err == nil; n++ {
						err = r.Next(&rec)
					}
					if err != io.EOF || n != len(rows)+1 {
						b.Fatal(n, err)
					}
				}
				b.ReportMetric(float64(b.N*len(rows))/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}
