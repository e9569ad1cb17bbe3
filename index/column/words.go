package column

import (
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
)

// Words is the type of columns of documents, which are indexed by their words.
type Words struct{}

// Name returns text.
func (Words) Name() string { return string(schema.TextColumn) }

// In is true of documents.
func (Words) In(kind schema.Kind) bool { return kind == schema.Documents }

// Check returns every fault.
func (Words) Check(_ *schema.Schema, c *schema.Column) []error {
	return append(foreign(c, "store", "layout"), checkLayout(c, schema.Text)...)
}

// Attributes returns one attribute of texts.
func (Words) Attributes(c *schema.Column) []schema.AttributeSpec { return textAttribute(c) }

// Objects returns the encoder of texts as words.
func (Words) Objects(s *schema.Schema, _ *schema.Column) (ObjectEncoder, error) {
	e := &wordObjects{stop: make(map[string]struct{}, len(s.StopWords)), pool: termPool()}
	// Stop words go the way of all words, so that a list in any case and normal form works.
	t := newTerms()
	for _, word := range s.StopWords {
		t.addWords(word)
	}
	for _, word := range t.strings(nil) {
		e.stop[word] = struct{}{}
	}
	return e, nil
}

// termPool returns a pool of *terms, the memory of one call each.
func termPool() *sync.Pool { return &sync.Pool{New: func() any { return newTerms() }} }

type wordObjects struct {
	stop map[string]struct{}
	pool *sync.Pool
}

// Encode appends the words of a cell, as a set: words that come again are dropped.
func (e *wordObjects) Encode(dst *schema.Values, cell *schema.Cell) error {
	t := e.pool.Get().(*terms)
	defer e.pool.Put(t)
	t.reset()
	for _, value := range cell.Values {
		if !utf8.ValidString(value) {
			return notUTF8(value)
		}
		t.addWords(value)
	}
	first := len(dst.Strings)
	dst.Strings = t.strings(dst.Strings)
	words := dst.Strings[first:]
	slices.Sort(words)
	words = slices.DeleteFunc(slices.Compact(words), func(word string) bool {
		_, stopped := e.stop[word]
		return stopped
	})
	dst.Strings = dst.Strings[:first+len(words)]
	return nil
}

// Queries returns the encoder of words and of texts.
func (Words) Queries(_ *schema.Schema, c *schema.Column, first int, v Vocabulary) (QueryEncoder, error) {
	e := &wordQueries{pool: termPool()}
	e.textQueries = textQueries{name: c.Name, position: first, vocabulary: v, word: e.oneWord}
	return e, nil
}

type wordQueries struct {
	textQueries
	pool *sync.Pool
}

// Text adds the item of a text: its distinct words.
func (e *wordQueries) Text(dst *postings.MatchQuery, text string) error {
	t := e.pool.Get().(*terms)
	defer e.pool.Put(t)
	t.reset()
	t.addWords(text)
	t.item(dst, e.position, e.vocabulary)
	return nil
}

// oneWord returns the one word that a text is.
func (e *wordQueries) oneWord(text string) (string, error) {
	t := e.pool.Get().(*terms)
	defer e.pool.Put(t)
	t.reset()
	t.addWords(text)
	switch n := len(t.ends); n {
	case 1:
		return string(t.text), nil
	case 0:
		return "", Refuse("attribute %q: %.80q has no word to look for", e.name, text)
	default:
		return "", Refuse("attribute %q: %.80q is %d words: write an item for each, or use text", e.name, text, n)
	}
}
