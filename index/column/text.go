package column

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/geniemq/geniemq/index/schema"
)

// text is the type of columns of records that are texts, indexed by their words and, if wanted, by words in a row.
type text struct{ traits }

// Check fills in stop words.
func (t text) Check(s *schema.Schema, c *schema.Column) []error {
	faults := t.traits.Check(s, c)
	if c.StopWords == nil {
		c.StopWords = schema.EnglishStopWords()
	}
	if c.NGrams < 0 || c.NGrams > schema.MaxWordNGram {
		faults = append(faults, fmt.Errorf("ngrams %d: must be 1 to %d", c.NGrams, schema.MaxWordNGram))
	}
	return faults
}

// KeywordName implements Namer.
func (text) KeywordName(_ *schema.Schema, _ *schema.Column, keyword string) string {
	return strings.ReplaceAll(keyword, rowSeparator, " ")
}

// Objects implements Type.
func (text) Objects(_ *schema.Schema, c *schema.Column) (ObjectEncoder, error) {
	return &wordObjects{stop: stopWords(c.StopWords), row: c.NGrams, store: c.Store, pool: new(termPool)}, nil
}

// Keeps implements Keeper: the words, by which texts are compared.
func (text) Keeps(_ *schema.Schema, c *schema.Column) schema.KeptSpec { return keptTerms(c) }

// Queries implements Type.
func (text) Queries(_ *schema.Schema, c *schema.Column, first int, v Vocabulary) (QueryEncoder, error) {
	return &wordQueries{name: c.Name, position: first, vocabulary: v, stop: stopWords(c.StopWords), row: c.NGrams}, nil
}

// wordQueries finds texts by their words.
type wordQueries struct {
	name       string
	position   int
	vocabulary Vocabulary
	stop       map[string]struct{}
	row        int // most words in a row
	pool       termPool
}

// Items adds the items of a text: its distinct words.
func (e *wordQueries) Items(dst *Draft, c *Condition) error {
	s, err := c.read()
	switch {
	case err != nil:
		return err
	case s.form != valueForm || s.values[0].Kind == Null:
		return Refuse(`column %q holds texts: write words, "red shoes"; all and any belong to filter and exclude`, e.name)
	case !utf8.ValidString(s.values[0].String):
		return Refuse("column %q: the text is not valid UTF-8", e.name)
	}
	return e.Text(dst, s.values[0].text())
}

// Text adds the items of a text.
func (e *wordQueries) Text(dst *Draft, text string) error {
	t := e.pool.get()
	defer e.pool.Put(t)
	t.addTextWords(text, e.stop, e.row)
	return t.known(dst, e.position, e.vocabulary)
}
