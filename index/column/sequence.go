package column

import (
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/geniemq/geniemq/index/ngram"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
)

// Sequence is the type of columns of strings that are compared by edit distance, through their ordered n-grams.
type Sequence struct{}

// Name returns text.
func (Sequence) Name() string { return string(schema.TextColumn) }

// In is true of sequences.
func (Sequence) In(kind schema.Kind) bool { return kind == schema.Sequences }

// Check returns every fault.
func (Sequence) Check(_ *schema.Schema, c *schema.Column) []error {
	return append(foreign(c, "layout"), checkLayout(c, schema.Text)...)
}

// Attributes returns one attribute of texts.
func (Sequence) Attributes(c *schema.Column) []schema.AttributeSpec { return textAttribute(c) }

// KeywordName returns an n-gram in words.
func (Sequence) KeywordName(s *schema.Schema, _ *schema.Column, keyword string) string {
	return ngram.Name(keyword, s.NGram)
}

// Objects returns the encoder of texts as ordered n-grams.
func (Sequence) Objects(s *schema.Schema, _ *schema.Column) (ObjectEncoder, error) {
	return &sequenceObjects{n: s.NGram, pool: termPool()}, nil
}

type sequenceObjects struct {
	n    int
	pool *sync.Pool
}

// Encode appends the n-grams of the text that a cell is, and keeps the text.
func (e *sequenceObjects) Encode(dst *schema.Values, cell *schema.Cell) error {
	switch {
	case len(cell.Values) > 1:
		return fmt.Errorf("holds a list of %d texts, but a sequence is one text", len(cell.Values))
	case len(cell.Values) == 0:
		return nil
	case !utf8.ValidString(cell.Values[0]):
		return notUTF8(cell.Values[0])
	}
	t := e.pool.Get().(*terms)
	defer e.pool.Put(t)
	t.reset()
	t.addGrams(cell.Values[0], e.n)
	dst.Strings = t.strings(dst.Strings)
	dst.Text = cell.Values[0]
	return nil
}

// Queries returns the encoder of texts.
func (Sequence) Queries(s *schema.Schema, c *schema.Column, first int, v Vocabulary) (QueryEncoder, error) {
	e := &sequenceQueries{n: s.NGram, pool: termPool()}
	e.textQueries = textQueries{name: c.Name, position: first, vocabulary: v, word: e.noWord}
	return e, nil
}

type sequenceQueries struct {
	textQueries
	n    int
	pool *sync.Pool
}

// Text adds the item of a text: its ordered n-grams.
func (e *sequenceQueries) Text(dst *postings.MatchQuery, text string) error {
	t := e.pool.Get().(*terms)
	defer e.pool.Put(t)
	t.reset()
	t.addGrams(text, e.n)
	t.item(dst, e.position, e.vocabulary)
	return nil
}

// noWord refuses values: there is no part of a sequence to look for.
func (e *sequenceQueries) noWord(string) (string, error) {
	return "", Refuse("attribute %q holds sequences, which are asked for as a whole: use text", e.name)
}
