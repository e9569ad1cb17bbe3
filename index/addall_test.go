package index_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

var errUnread = errors.New("a record that cannot be read")

// someRecords are records of random columns, some of which cannot be used: keys that come twice, numbers that are none, lines that cannot be read.
func someRecords(random *rand.Rand, n int) []schema.Record {
	records := make([]schema.Record, n)
	for i := range records {
		number := strconv.Itoa(random.IntN(3000))
		if random.IntN(500) == 0 {
			number = "many"
		}
		rec := schema.Record{Line: int64(i + 1), Cells: []schema.Cell{{Values: []string{number}}, {}, {Values: []string{"title " + strconv.Itoa(random.IntN(5000))}}, {}}}
		for range random.IntN(4) {
			rec.Cells[1].Values = append(rec.Cells[1].Values, "tag"+strconv.Itoa(random.IntN(40)))
		}
		if random.IntN(2) == 0 {
			rec.Cells[3].Values = []string{"kept " + strconv.Itoa(i)}
		}
		if random.IntN(10) > 0 {
			rec.Key = "k" + strconv.Itoa(i)
			if random.IntN(1000) == 0 {
				rec.Key, rec.Cells[2].Values = "k"+strconv.Itoa(random.IntN(i+1)), []string{"only here " + strconv.Itoa(i)}
			}
		}
		if random.IntN(700) == 0 {
			rec.Line = -1
		}
		records[i] = rec
	}
	return records
}

// TestAddAll: records that are added on any number of workers make the file, and the faults, that adding them one by one makes.
func TestAddAll(t *testing.T) {
	random := seeded.Rand(t)
	schemas := []string{
		"name: a\nkey: k\ncolumns: [{name: n, type: number, buckets: 50}, {name: t, type: category}, {name: s, type: category, layout: rare}, {name: p, type: payload}]",
		"name: a\nkind: rows\nkey: k\ncolumns: [{name: n, type: number, edges: exact}, {name: t, type: category}, {name: s, type: category}, {name: p, type: payload}]",
		"name: a\ncolumns: [{name: n, type: number, store: true}, {name: t, type: set, store: true}, {name: s, type: text}, {name: p, type: string}]",
		"name: a\nkind: sequences\ncolumns: [{name: n, type: skip}, {name: t, type: payload}, {name: s, type: text}, {name: p, type: payload}]",
	}
	sizes := raced.Of([]int{0, 1, 1023, 1025, 5000, store.TileObjects + 3000}, []int{1025, 5000})
	for _, text := range schemas {
		s := parseSchema(t, text)
		n := sizes[random.IntN(len(sizes))]
		records := someRecords(random, n)
		var want []string
		plain, err := onebyone.NewObjects(s, index.BuilderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var good []schema.Record
		for i := range records {
			if records[i].Line < 0 {
				want = append(want, errUnread.Error())
			} else if err := plain.Add(&records[i]); err != nil {
				want = append(want, err.Error())
			} else {
				good = append(good, records[i])
			}
		}
		file, err := plain.Bytes(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, workers := range []int{1, 2, 5} {
			objects, err := index.NewObjects(s, index.BuilderOptions{Workers: workers})
			if err != nil {
				t.Fatal(err)
			}
			var faults []string
			if err := objects.AddAll(t.Context(), sourceOf(records, &faults)); err != nil {
				t.Fatal(err)
			}
			got, err := objects.Bytes(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(faults, want) {
				t.Fatalf("%d workers: %d faults %q, want %d %q", workers, len(faults), faults, len(want), want)
			}
			if !bytes.Equal(got, file) {
				t.Fatalf("%d records on %d workers make another file\n%s", n, workers, text)
			}
		}
		clean, err := index.NewObjects(s, index.BuilderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := clean.AddAll(t.Context(), sourceOf(good, nil)); err != nil {
			t.Fatal(err)
		}
		if got, err := clean.Bytes(t.Context()); err != nil || !bytes.Equal(got, file) {
			t.Fatalf("%d of %d records that cannot be used leave something in the file (%v)\n%s", n-len(good), n, err, text)
		}
	}
}

// sourceOf gives records, as copies.
func sourceOf(records []schema.Record, faults *[]string) index.Source {
	next := 0
	return index.Source{
		Next: func(rec *schema.Record) error {
			if next == len(records) {
				return io.EOF
			}
			from := &records[next]
			next++
			if from.Line < 0 {
				return errUnread
			}
			rec.Line, rec.Key, rec.Cells = from.Line, from.Key, append(rec.Cells[:0], from.Cells...)
			return nil
		},
		Skippable: func(err error) bool { return err == errUnread },
		Bad: func(err error) error {
			*faults = append(*faults, err.Error())
			return nil
		},
	}
}

// TestAddAllEnds: what ends a source, or is the whole index's, ends AddAll with its reason, and nothing is lost before.
func TestAddAllEnds(t *testing.T) {
	s := parseSchema(t, "name: a\nkind: rows\nkey: k\ncolumns: [{name: n, type: number}, {name: t, type: category, layout: sliced}]")
	record := func(i int) schema.Record {
		return schema.Record{Line: int64(i + 1), Key: strconv.Itoa(i), Cells: []schema.Cell{{Values: []string{strconv.Itoa(i)}}, {Values: []string{"x"}}}}
	}
	broken := errors.New("the disk is broken")
	for name, c := range map[string]struct {
		spoil   func(rec *schema.Record)
		next    error
		want    string
		objects int
	}{
		"source":    {next: broken, want: "broken", objects: 3000},
		"record":    {spoil: func(rec *schema.Record) { rec.Cells[0].Values[0] = "none" }, want: "line 3001: column n", objects: 3000},
		"key":       {spoil: func(rec *schema.Record) { rec.Key = "7" }, want: "line 3001: column k", objects: 3000},
		"index":     {spoil: func(rec *schema.Record) { rec.Cells[1].Values = []string{"x", "y"} }, want: "2 values in one object", objects: -1},
		"too short": {spoil: func(rec *schema.Record) { rec.Cells = rec.Cells[:1] }, want: "the record has 1 cells", objects: 3000},
	} {
		objects, err := index.NewObjects(s, index.BuilderOptions{Workers: 3})
		if err != nil {
			t.Fatal(err)
		}
		next := 0
		err = objects.AddAll(t.Context(), index.Source{Next: func(rec *schema.Record) error {
			if next == 20_000 {
				return io.EOF
			}
			if *rec = record(next); next == 3000 {
				if c.next != nil {
					return c.next
				}
				c.spoil(rec)
			}
			next++
			return nil
		}})
		if err == nil || !strings.Contains(err.Error(), c.want) || c.objects >= 0 && objects.Objects() != c.objects {
			t.Errorf("%s: %v, %d objects", name, err, objects.Objects())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	objects, err := index.NewObjects(s, index.BuilderOptions{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	err = objects.AddAll(ctx, index.Source{Next: func(rec *schema.Record) error {
		if *rec = record(n); n == 5000 {
			cancel()
		}
		n++
		return nil
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestAddObjects: values that are added on any number of workers make the file that adding them object by object makes.
func TestAddObjects(t *testing.T) {
	random := seeded.Rand(t)
	s := schemaFor(t, schema.Rows)
	specs := []schema.AttributeSpec{{Name: "n", Type: schema.Number}, {Name: "t", Type: schema.Text}, {Name: "o", Type: schema.Ordinal, Keywords: 9}}
	const n = store.TileObjects + 2000
	seed := random.Uint64()
	type taker interface {
		AddString(attr int, v string)
		AddNumber(attr int, v float64) error
		AddOrdinal(attr int, v uint32) error
	}
	add := func(to taker, i int) error {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		if r.IntN(3) > 0 {
			to.AddString(1, fmt.Sprint("word", r.IntN(300)))
		}
		return errors.Join(to.AddNumber(0, float64(r.IntN(100))), to.AddOrdinal(2, r.Uint32N(9)))
	}
	plain, err := onebyone.NewBuilder(s, specs, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := errors.Join(add(plain, i), plain.EndObject("", nil, "")); err != nil {
			t.Fatal(err)
		}
	}
	want, err := plain.Bytes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, workers := range []int{1, 2, 7} {
		b, err := onebyone.NewBuilder(s, specs, index.BuilderOptions{Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.AddObjects(t.Context(), n, func(dst *postings.Batch, i int) error { return add(dst, i) }); err != nil {
			t.Fatal(err)
		}
		if got, err := b.Bytes(t.Context()); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d workers make another file, %v", workers, err)
		}
	}
}

// BenchmarkBuilding adds objects on some workers: rows of 14 columns, and signatures of 128 numbers that need no encoding.
func BenchmarkBuilding(b *testing.B) {
	text := "name: t\nkind: rows\ncolumns:\n"
	for i := range 14 {
		text += fmt.Sprintf("- {name: c%d, type: %s}\n", i, []string{"number", "category"}[i%2])
	}
	s := parseSchema(b, text)
	random := rand.New(rand.NewPCG(1, 2))
	rows := make([]schema.Record, 20_000)
	for i := range rows {
		for c := range 14 {
			rows[i].Cells = append(rows[i].Cells, schema.Cell{Values: []string{strconv.Itoa(random.IntN(50 * (c + 1)))}})
		}
	}
	specs := make([]schema.AttributeSpec, 128)
	for i := range specs {
		specs[i] = schema.AttributeSpec{Name: strconv.Itoa(i), Type: schema.Number, Edges: schema.Exact}
	}
	const n = 100_000
	for _, workers := range []int{1, 2} {
		name := fmt.Sprintf("%d workers", workers)
		b.Run("rows, "+name, func(b *testing.B) {
			for b.Loop() {
				objects, err := index.NewObjects(s, index.BuilderOptions{Workers: workers})
				if err != nil {
					b.Fatal(err)
				}
				next := 0
				read := func(rec *schema.Record) error {
					if next == n {
						return io.EOF
					}
					*rec = rows[next%len(rows)]
					next++
					return nil
				}
				err = objects.AddAll(b.Context(), index.Source{Next: read})
				if err != nil || objects.Objects() != n {
					b.Fatal(objects.Objects(), err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/object")
		})
		b.Run("signatures, "+name, func(b *testing.B) {
			for b.Loop() {
				builder, err := index.Builtin().NewBuilder(schemaFor(b, schema.Rows), specs, index.BuilderOptions{Workers: workers})
				if err != nil {
					b.Fatal(err)
				}
				err = builder.AddObjects(b.Context(), n, func(dst *postings.Batch, i int) (err error) {
					for attr := range specs {
						err = errors.Join(err, dst.AddNumber(attr, float64((i+attr)*7%67)))
					}
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/object")
		})
	}
}
