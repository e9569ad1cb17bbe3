package index_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// TestRoundTrip compares built indexes with the objects they were built from, at the sizes where bitmaps and
// tiles begin and end.
func TestRoundTrip(t *testing.T) {
	const T = store.TileObjects
	for _, n := range raced.Of([]int{0, 1, 2, 31, 32, 33, 63, 64, 65, 1000, T - 1, T, T + 1, 2*T + 3}, []int{65, 1000}) {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			random := seeded.Rand(t)
			m := randomModel(random, n)
			m.check(t, m.open(t), random)
		})
	}
}

// TestVocabularySizes checks one keyword, one for every object, and the sizes at which directory words end.
func TestVocabularySizes(t *testing.T) {
	raced.Skip(t, raced.Same)
	for _, keywords := range []int{1, 31, 32, 33, 64, 100_000} {
		t.Run(strconv.Itoa(keywords), func(t *testing.T) {
			random := seeded.Rand(t)
			m := &model{specs: []schema.AttributeSpec{
				{Name: "text", Type: schema.Text}, {Name: "ordinal", Type: schema.Ordinal, Keywords: uint32(keywords)},
			}}
			for id := range max(200, keywords) {
				m.objects = append(m.objects, modelObject{values: [][]any{
					{fmt.Sprintf("%x", id*7919%keywords)}, {uint32(id * 7919 % keywords)},
				}})
			}
			m.check(t, m.open(t), random)
		})
	}
}

// TestRepeats checks that a keyword an object has r times is r adjacent postings, beyond the 16 bits of an id too.
func TestRepeats(t *testing.T) {
	m := &model{specs: []schema.AttributeSpec{{Name: "bag", Type: schema.Text}}}
	many := make([]any, 70_000)
	for i := range many {
		many[i] = "x"
	}
	m.objects = []modelObject{
		{values: [][]any{{"x", "y", "x"}}}, {values: [][]any{many}}, {values: [][]any{nil}}, {values: [][]any{{"x"}}},
	}
	x := m.open(t)
	m.check(t, x, seeded.Rand(t))
	if a := x.Attributes()[0]; a.MaxPerObject != 70_000 || a.Objects != 3 {
		t.Errorf("MaxPerObject %d of %d objects, want 70000 of 3", a.MaxPerObject, a.Objects)
	}
	q := new(postings.MatchQuery)
	q.StartItem(0, 3)
	q.AddSpan(0, 1)
	q.StartItem(0, 5)
	if bound := x.CountBound(q); bound != 210_000 {
		t.Errorf("CountBound = %d, want 210000: an item without spans adds nothing", bound)
	}
}

// TestSameBytes checks that the bytes depend on the input alone: not on the run, the workers, or where they go.
func TestSameBytes(t *testing.T) {
	random := seeded.Rand(t)
	m := randomModel(random, store.TileObjects+1000)
	want := m.bytes(t, index.BuilderOptions{Workers: 1})
	if !bytes.Equal(want, m.bytes(t, index.BuilderOptions{Workers: 7})) {
		t.Error("seven workers build other bytes than one")
	}
	b := m.builder(t, index.BuilderOptions{})
	for range 2 {
		path := filepath.Join(t.TempDir(), "a.gmq")
		var last, total int64
		if err := b.WriteFile(context.Background(), path, func(done, all int64) {
			if done < last {
				t.Errorf("progress falls from %d to %d", last, done)
			}
			last, total = done, all
		}); err != nil {
			t.Fatal(err)
		}
		if last != total || total == 0 {
			t.Errorf("progress ends at %d of %d", last, total)
		}
		x, err := index.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want, data) {
			t.Error("the file has other bytes than Bytes returns")
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
		if err := x.Close(); err != nil {
			t.Errorf("second Close: %v", err)
		}
	}
}

// TestFormatIsStable fixes the bytes of a file with every kind of section: when they change, indexes that exist change their
// version, or can no longer be read, and the format version may have to.
func TestFormatIsStable(t *testing.T) {
	x, err := index.OpenBytes(smallIndex(t))
	if err != nil {
		t.Fatal(err)
	}
	if want := "30d4affe01bf1806"; x.Version() != want {
		t.Errorf("version %s, want %s", x.Version(), want)
	}
}

// TestUnaligned opens bytes that do not begin at a multiple of 8.
func TestUnaligned(t *testing.T) {
	random := seeded.Rand(t)
	m := randomModel(random, 500)
	data := m.bytes(t, index.BuilderOptions{})
	for shift := 1; shift < 8; shift++ {
		shifted := append(make([]byte, shift, shift+len(data)), data...)[shift:]
		x, err := index.OpenBytes(shifted)
		if err != nil {
			t.Fatal(err)
		}
		m.check(t, x, random)
	}
}

// TestLookupAllocatesNothing holds the path of every query to its promise.
func TestLookupAllocatesNothing(t *testing.T) {
	m := randomModel(seeded.Rand(t), 2000)
	m.specs[3].Layout = schema.LayoutPostings.String()
	x := m.open(t)
	word := attributeOf(t, x, "word")
	key := []byte("abc")
	if n := testing.AllocsPerRun(100, func() {
		x.Lookup(word, string(key))
		x.LowerBound(word, "b")
		p := x.Postings(0, word)
		p.Run(0, 1)
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}
