package index_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/objects"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

func TestNewBuilderFaults(t *testing.T) {
	_, err := index.Builtin().NewBuilder(&schema.Schema{Name: "a b", Kind: schema.Rows}, []schema.AttributeSpec{
		{Name: "", Type: schema.Text}, {Name: "x", Type: schema.Text}, {Name: "x", Type: schema.Text}, {Name: "y"},
		{Name: "z", Type: schema.Number, Edges: "log"}, {Name: "w", Type: schema.Number, Buckets: schema.MaxBuckets + 1},
		{Name: "l", Type: schema.Text, Layout: "striped"}, {Name: "\xFF", Type: schema.Text},
	}, index.BuilderOptions{})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		`name "a b"`, `attribute 0 "": the name`, `attribute 2 "x": declared twice`, `attribute 3 "y": unknown type`,
		`attribute 4 "z": unknown edges`, `attribute 5 "w": 1048577 buckets`, `attribute 6 "l": layout`, `attribute 7 "\xff": the name`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not tell %q", err, want)
		}
	}
	if _, err := index.Builtin().NewBuilder(nil, nil, index.BuilderOptions{}); err == nil {
		t.Error("no schema is accepted")
	}
}

func TestRefusedValues(t *testing.T) {
	b, err := index.Builtin().NewBuilder(schemaFor(t, schema.Rows), []schema.AttributeSpec{
		{Name: "n", Type: schema.Number}, {Name: "o", Type: schema.Ordinal, Keywords: 5},
	}, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	batch := b.NewBatch()
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if err := batch.AddNumber(0, v); err == nil || !strings.Contains(err.Error(), "not a finite number") {
			t.Errorf("AddNumber(%v): %v", v, err)
		}
	}
	if err := batch.AddOrdinal(1, 5); err == nil {
		t.Error("ordinal 5 of 5 is accepted")
	}
	if batch.AddNumber(1, 1) == nil || batch.AddOrdinal(0, 1) == nil {
		t.Error("a value of another type is accepted")
	}
	// AddString has no result: its error comes when the object ends, and stays, because the encoder is wrong.
	for range 2 {
		err := b.AddObjects(t.Context(), 1, func(dst *postings.Batch, _ int) error {
			dst.AddString(0, "x")
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), "takes no strings") {
			t.Errorf("EndObject: %v", err)
		}
	}
	if _, err := b.Bytes(context.Background()); err == nil {
		t.Error("a builder with an error writes")
	}
}

// TestDuplicateKeys adds objects whose keys others have: nothing of them may be left, keywords included.
func TestDuplicateKeys(t *testing.T) {
	random := seeded.Rand(t)
	m := randomModel(random, 3000)
	for id := range m.objects {
		m.objects[id].key = "k" + strconv.Itoa(id)
	}
	want := m.bytes(t, index.BuilderOptions{})

	b, err := onebyone.NewBuilder(schemaFor(t, schema.Rows), m.specs, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for id, o := range m.objects {
		if id > 0 && random.IntN(3) == 0 {
			for attr, spec := range m.specs {
				switch spec.Type {
				case schema.Text:
					b.AddString(attr, "only here "+strconv.Itoa(id))
					b.AddString(attr, "a")
				case schema.Number:
					b.AddNumber(attr, 1e9)
				}
			}
			other := uint32(random.IntN(id))
			err := b.EndObject("k"+strconv.Itoa(int(other)), []byte(`{"x":1}`), "text")
			var duplicate *objects.DuplicateKeyError
			if !errors.As(err, &duplicate) || duplicate.First != other || int(duplicate.Second) != id {
				t.Fatalf("key of object %d again at %d: %v", other, id, err)
			}
		}
		m.add(t, b, o)
		if err := b.EndObject(o.key, []byte(o.payload), o.sequence); err != nil {
			t.Fatal(err)
		}
	}
	if b.Objects() != len(m.objects) {
		t.Errorf("%d objects, want %d", b.Objects(), len(m.objects))
	}
	got, err := b.Bytes(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Error("dropped objects leave traces")
	}
}

// stored says whether an index has sections of a kind.
func stored(x *index.Index, kind store.SectionKind) bool {
	return slices.ContainsFunc(x.Sections(), func(s store.Section) bool { return s.Kind == kind })
}

func TestKeys(t *testing.T) {
	build := func(keys ...string) (*index.Index, error) {
		b, err := onebyone.NewBuilder(schemaFor(t, schema.Rows), nil, index.BuilderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			if err := b.EndObject(key, nil, ""); err != nil {
				return nil, err
			}
		}
		data, err := b.Bytes(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return index.OpenBytes(data)
	}
	x, err := build("", "", "")
	if err != nil || stored(x, objects.SectionKeys) || x.Key(2) != "2" {
		t.Errorf("default keys are stored, or wrong: %v", err)
	}
	x, err = build("", "b", "", "zero")
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range []string{"0", "b", "2", "zero", "4"} {
		if got := x.Key(uint32(id)); got != want {
			t.Errorf("Key(%d) = %q, want %q", id, got, want)
		}
	}
	for _, c := range []struct {
		keys []string
		want objects.DuplicateKeyError
	}{
		{[]string{"a", "b", "a"}, objects.DuplicateKeyError{Key: "a", First: 0, Second: 2}},
		{[]string{"", "", "1"}, objects.DuplicateKeyError{Key: "1", First: 1, Second: 2}},  // the default key of object 1
		{[]string{"x", "2", ""}, objects.DuplicateKeyError{Key: "2", First: 1, Second: 2}}, // the default key of object 2
	} {
		_, err := build(c.keys...)
		var duplicate *objects.DuplicateKeyError
		if !errors.As(err, &duplicate) || *duplicate != c.want {
			t.Errorf("%q: %v, want %v", c.keys, err, &c.want)
		} else if text := err.Error(); !strings.Contains(text, strconv.Itoa(int(c.want.First))) ||
			!strings.Contains(text, strconv.Itoa(int(c.want.Second))) {
			t.Errorf("%q does not name both objects", text)
		}
	}
}

// TestTooManyKeywords declares more keywords than 32 bits number.
func TestTooManyKeywords(t *testing.T) {
	b, err := onebyone.NewBuilder(schemaFor(t, schema.Rows), []schema.AttributeSpec{
		{Name: "a", Type: schema.Ordinal, Keywords: 1 << 31}, {Name: "b", Type: schema.Ordinal, Keywords: 1 << 31},
	}, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Bytes(context.Background()); err == nil || !strings.Contains(err.Error(), "an index holds at most 4294967295") {
		t.Errorf("2^32 keywords: %v", err)
	}
}

// TestSchemaIsCopied changes the schema after NewBuilder.
func TestSchemaIsCopied(t *testing.T) {
	s := schemaFor(t, schema.Rows)
	b, err := onebyone.NewBuilder(s, nil, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.Name, s.Columns[0].Name = "other", "other"
	data, err := b.Bytes(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	x, err := index.OpenBytes(data)
	if err != nil {
		t.Fatal(err)
	}
	if x.Schema().Name != "test" || x.Schema().Columns[0].Name != "a" {
		t.Errorf("the stored schema is %+v", x.Schema())
	}
}
