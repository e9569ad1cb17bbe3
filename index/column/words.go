package column

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/geniemq/geniemq/index/schema"
)

// words is the type of columns of documents, which are indexed by their words.
type words struct{ traits }

// Check fills in that terms are kept where hits are put in the order of a measure.
func (w words) Check(s *schema.Schema, c *schema.Column) []error {
	faults := w.traits.Check(s, c)
	if c.Keep == "" && s.Rescore != nil && s.Rescore.Column == c.Name {
		c.Keep = schema.KeepTerms
	}
	if c.Keep != "" && c.Keep != schema.KeepTerms {
		faults = append(faults, fmt.Errorf("keep %q is unknown: texts of documents keep %s, or nothing without it", c.Keep, schema.KeepTerms))
	}
	return faults
}

// Keeps implements Keeper: the words, by which texts are compared, if they are wanted.
func (words) Keeps(_ *schema.Schema, c *schema.Column) (keeps schema.KeptSpec) {
	if c.Keep == schema.KeepTerms {
		keeps = keptTerms(c)
		keeps.Returned = false // documents store what is returned as payloads
	}
	return keeps
}

// Objects implements Type.
func (words) Objects(s *schema.Schema, _ *schema.Column) (ObjectEncoder, error) {
	return &wordObjects{stop: stopWords(s.StopWords), pool: new(termPool)}, nil
}

// stopWords returns the words of a list. They go the way of all words, so that a list in any case and normal form works.
func stopWords(list schema.StopWords) map[string]struct{} {
	stop := make(map[string]struct{}, len(list))
	t := newTerms()
	for _, word := range list {
		t.addWords(word)
	}
	for _, word := range t.strings(nil) {
		stop[word] = struct{}{}
	}
	return stop
}

type wordObjects struct {
	stop  map[string]struct{}
	row   int // most words in a row
	store bool
	pool  *termPool
}

// Encode appends the words of a cell, as a set, and how often each occurs.
func (e *wordObjects) Encode(dst *schema.Values, cell *schema.Cell) error {
	t := e.pool.get()
	defer e.pool.Put(t)
	for _, value := range cell.Values {
		if !utf8.ValidString(value) {
			return notUTF8(value)
		}
		t.addTextWords(value, e.stop, e.row)
	}
	first := len(dst.Strings)
	dst.Strings = t.strings(dst.Strings)
	words := dst.Strings[first:]
	slices.Sort(words)
	n := 0
	for i, word := range words {
		if i > 0 && word == words[n-1] {
			dst.Frequencies[len(dst.Frequencies)-1]++
			continue
		}
		words[n] = word
		n++
		dst.Frequencies = append(dst.Frequencies, 1)
	}
	dst.Strings = dst.Strings[:first+n]
	if e.store {
		dst.JSON = appendStrings(dst.JSON, cell.Values, false)
	}
	return nil
}

// Queries implements Type.
func (words) Queries(s *schema.Schema, c *schema.Column, first int, v Vocabulary) (QueryEncoder, error) {
	e := &documentQueries{stop: stopWords(s.StopWords)}
	e.termQueries.add = func(t *terms, text string) { t.addTextWords(text, e.stop, 0) }
	e.textQueries = textQueries{name: c.Name, position: first, vocabulary: v, word: e.oneWord}
	return e, nil
}

// documentQueries finds documents by their words.
type documentQueries struct {
	termQueries
	stop map[string]struct{}
}

// Clauses implements FilterEncoder; see textClauses.
func (e *documentQueries) Clauses(dst *Draft, c *Condition) error {
	return textClauses(dst, e.position, e.vocabulary, &e.pool, e.stop, c)
}

// termQueries finds texts, of which a column's keywords are the terms.
type termQueries struct {
	textQueries
	add  func(t *terms, text string)
	pool termPool
}

// Text adds the item of a text: its distinct terms.
func (e *termQueries) Text(dst *Draft, text string) error {
	t := e.pool.get()
	defer e.pool.Put(t)
	e.add(t, text)
	return t.known(dst, e.position, e.vocabulary)
}

// oneWord returns the one word that a text is.
func (e *termQueries) oneWord(text string) (string, error) {
	t := e.pool.get()
	defer e.pool.Put(t)
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
