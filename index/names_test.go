package index_test

import (
	"context"
	"slices"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/ngram"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
)

func TestGramNames(t *testing.T) {
	b, err := onebyone.NewBuilder(schemaFor(t, schema.Sequences), []schema.AttributeSpec{{Name: "text", Type: schema.Text}}, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var s ngram.Scanner
	for s.Reset([]rune("éaéa"), 2); s.Next(); {
		b.AddString(0, string(s.Key()))
	}
	b.AddString(0, "\xFF") // no n-gram
	if err := b.EndObject("", nil, "éaéa"); err != nil {
		t.Fatal(err)
	}
	data, err := b.Bytes(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	x, err := index.OpenBytes(data)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for kw := range x.Attributes()[0].Keywords {
		names = append(names, x.KeywordName(0, kw))
	}
	if want := []string{"aé", "a›", "éa", "éa #2", "‹é", "\xFF"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	if x.Text(0) != "éaéa" {
		t.Errorf("text %q", x.Text(0))
	}
}

// TestNearestWordsInARow: the nearest of words in a row are written as people write them.
func TestNearestWordsInARow(t *testing.T) {
	b := newBuilder(t, parseSchema(t, "name: n\ncolumns: [{name: title, type: text, ngrams: 2}]"))
	b.add(&schema.Record{Cells: []schema.Cell{{Values: []string{"red shoes"}}}})
	_, q := b.open()
	for value, want := range map[string]string{"reed shoes": "red shoes", "reed": "red", "purple": ""} {
		if got := q.Nearest("title", value); got != want {
			t.Errorf("nearest to %q: %q, want %q", value, got, want)
		}
	}
}
