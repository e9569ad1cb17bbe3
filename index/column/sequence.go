package column

import (
	"fmt"
	"unicode/utf8"

	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/ngram"
	"github.com/geniemq/geniemq/index/schema"
)

// sequence is the type of columns of strings that are compared by edit distance, through their ordered n-grams.
type sequence struct{ traits }

// Check returns every fault.
func (t sequence) Check(s *schema.Schema, c *schema.Column) []error {
	return append(t.traits.Check(s, c), distance.Check(c, distance.Texts)...)
}

// KeywordName implements Namer.
func (sequence) KeywordName(s *schema.Schema, _ *schema.Column, keyword string) string {
	return ngram.Name(keyword, s.NGram)
}

// Objects implements Type.
func (sequence) Objects(s *schema.Schema, _ *schema.Column) (ObjectEncoder, error) {
	return &sequenceObjects{n: s.NGram, pool: new(termPool)}, nil
}

type sequenceObjects struct {
	n    int
	pool *termPool
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
	t := e.pool.get()
	defer e.pool.Put(t)
	t.addGrams(cell.Values[0], e.n)
	dst.Strings = t.strings(dst.Strings)
	dst.Text = cell.Values[0]
	return nil
}

// Queries implements Type.
func (sequence) Queries(s *schema.Schema, c *schema.Column, first int, v Vocabulary) (QueryEncoder, error) {
	whole := func(string) (string, error) {
		return "", Refuse("attribute %q holds sequences, which are asked for as a whole: use text", c.Name)
	}
	return &sequenceQueries{termQueries{
		textQueries: textQueries{name: c.Name, position: first, vocabulary: v, word: whole},
		add:         func(t *terms, text string) { t.addGrams(text, s.NGram) },
	}, s.NGram}, nil
}

type sequenceQueries struct {
	termQueries
	ngram int
}

// NGram is the schema's.
func (e *sequenceQueries) NGram() int { return e.ngram }
