package index_test

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/load"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/postings/single"
	"github.com/geniemq/geniemq/index/refusal"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
	"github.com/geniemq/geniemq/internal/testkit/raced"
)

// parseSchema reads a schema. Its columns refuse what they cannot take, unless the text says otherwise, so that tests see why.
func parseSchema(t testing.TB, text string) *schema.Schema {
	t.Helper()
	s, err := index.Builtin().ParseSchema([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Columns {
		s.Columns[i].Invalid = cmp.Or(s.Columns[i].Invalid, schema.InvalidError)
	}
	return s
}

// builder makes an index in memory, record by record.
type builder struct {
	t       testing.TB
	objects onebyone.Objects
}

func newBuilder(t testing.TB, from *schema.Schema) *builder {
	t.Helper()
	objects, err := onebyone.NewObjects(from, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &builder{t, objects}
}

func (b *builder) add(rec *schema.Record) {
	b.t.Helper()
	if err := b.objects.Add(rec); err != nil {
		b.t.Fatal(err)
	}
}

func (b *builder) open() (*index.Index, *index.Queries) {
	b.t.Helper()
	data, err := b.objects.Bytes(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	x, err := index.OpenBytes(data)
	if err != nil {
		b.t.Fatal(err)
	}
	q, err := index.NewQueries(x)
	if err != nil {
		b.t.Fatal(err)
	}
	return x, q
}

// textIndex builds an index of one text an object.
func textIndex(t testing.TB, from string, texts ...string) (*index.Index, *index.Queries) {
	t.Helper()
	b := newBuilder(t, parseSchema(t, from))
	for i, text := range texts {
		b.add(&schema.Record{Line: int64(i + 1), Cells: []schema.Cell{{Values: []string{text}}}})
	}
	return b.open()
}

// dataFile returns the path of a file of the test data, which are no part of the repository.
func dataFile(t testing.TB, name string) string {
	t.Helper()
	raced.Skip(t, raced.Data)
	dir := os.Getenv("GENIEMQ_DATA")
	if dir == "" {
		root, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
				break
			}
			root = filepath.Dir(root)
		}
		dir = filepath.Join(root, "..", "shared", "data")
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("test data: %v (set GENIEMQ_DATA)", err)
		}
		t.Skipf("test data: %v (set GENIEMQ_DATA)", err)
	}
	return path
}

// loadRecords reads all records of a file; bad records go to bad, which may be nil when there must be none.
func loadRecords(t testing.TB, from *schema.Schema, path string, options load.Options, bad func(*load.BadRecord)) []schema.Record {
	t.Helper()
	r, err := load.Open(path, from, options)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	records, err := r.All(bad)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// loadIndex builds an index of all records of a file.
func loadIndex(t testing.TB, from *schema.Schema, path string, options load.Options) (*index.Index, *index.Queries, []schema.Record) {
	t.Helper()
	records := loadRecords(t, from, path, options, nil)
	b := newBuilder(t, from)
	for i := range records {
		b.add(&records[i])
	}
	x, q := b.open()
	return x, q, records
}

// matchCounts counts by the definition, posting by posting.
func matchCounts(x *index.Index, q *postings.MatchQuery) []uint64 {
	counts := make([]uint64, x.Objects())
	var decoder postings.Decoder
	for _, p := range q.Presences {
		counter := single.Counter{Lists: x.Lists, Query: q}
		for id := range counts {
			if counter.Holds(p, uint32(id)) {
				counts[id] += uint64(p.Weight)
			}
		}
	}
	for tile := range x.Tiles() {
		base := tile * store.TileObjects
		for _, item := range q.Items {
			postings := decoder.Postings(x.Lists, tile, int(item.Attr))
			for _, span := range q.ItemSpans(item) {
				for _, id := range postings.Run(span.Lo, span.Hi) {
					counts[base+int(id)] += uint64(item.Weight)
				}
			}
		}
	}
	return counts
}

type hit struct {
	id    int
	count uint64
}

// top returns the first k hits by (count descending, id ascending).
func top(counts []uint64, k int) []hit {
	var hits []hit
	for id, count := range counts {
		if count > 0 {
			hits = append(hits, hit{id, count})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return int(b.count) - int(a.count) })
	return hits[:min(k, len(hits))]
}

func number(v float64) *column.Value {
	value := column.NumberValue(v)
	return &value
}

func text(s string) *column.Value {
	value := column.StringValue(s)
	return &value
}

// checkQuery checks what every consumer of a query relies on.
func checkQuery(t testing.TB, x *index.Index, q *postings.MatchQuery) {
	t.Helper()
	for i, item := range q.Items {
		if item.Weight < 1 || item.Weight > postings.MaxWeight {
			t.Errorf("item %d has weight %d", i, item.Weight)
		}
		keywords := x.Attributes()[item.Attr].Keywords
		end := int64(-1)
		for _, span := range q.ItemSpans(item) {
			if int64(span.Lo) <= end || span.Lo >= span.Hi || span.Hi > keywords {
				t.Errorf("item %d of attribute %d with %d keywords: spans %v", i, item.Attr, keywords, q.ItemSpans(item))
				break
			}
			end = int64(span.Hi)
		}
	}
}

func wantRefusal(t testing.TB, err error, parts ...string) {
	t.Helper()
	var bad *refusal.Error
	if !errors.As(err, &bad) {
		t.Errorf("error %v is no refusal", err)
		return
	}
	for _, part := range parts {
		if !strings.Contains(bad.Reason, part) {
			t.Errorf("error %q does not say %q", bad.Reason, part)
		}
	}
	if strings.Contains(bad.Reason, "\n") {
		t.Errorf("error %q has several lines", bad.Reason)
	}
}
