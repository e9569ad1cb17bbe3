package column

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"unicode/utf8"

	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/ngram"
	"github.com/geniemq/geniemq/index/schema"
)

// str is the type of columns of records that are strings: indexed by their ordered n-grams, as sequences are, and, for filters that ask for one
// string and no other, by the whole. Strings that share all their n-grams need not be equal, so that these cannot tell.
type str struct{ traits }

// Check fills in ngram.
func (t str) Check(s *schema.Schema, c *schema.Column) []error {
	faults := append(t.traits.Check(s, c), distance.Check(c, distance.Texts)...)
	c.NGram = cmp.Or(c.NGram, schema.DefaultNGram)
	if c.NGram < 1 || c.NGram > schema.MaxNGram {
		faults = append(faults, fmt.Errorf("ngram %d: must be 1 to %d", c.NGram, schema.MaxNGram))
	}
	return faults
}

// Attributes implements Type: one of n-grams, one of whole strings.
func (t str) Attributes(c *schema.Column) []schema.AttributeSpec {
	return append(t.traits.Attributes(c), schema.AttributeSpec{Name: c.Name + wholeSuffix, Type: schema.Text})
}

// wholeSuffix follows the name of a column in that of the attribute of its whole strings.
const wholeSuffix = " (whole)"

// shortest bounds the strings that are their own keywords, in bytes; of longer ones a digest is.
const shortest = 24

// wholeKeyword is the keyword of a string: itself, or a digest that no string is, since it is not UTF-8.
func wholeKeyword(text string) string {
	if len(text) <= shortest {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return "\xff" + string(sum[:16])
}

// Keeps implements Keeper: the strings, which are compared by edit distance.
func (str) Keeps(_ *schema.Schema, c *schema.Column) schema.KeptSpec {
	return schema.KeptSpec{Form: schema.KeptTexts, Returned: c.Store}
}

// KeywordName implements Namer.
func (str) KeywordName(_ *schema.Schema, c *schema.Column, keyword string) string {
	return ngram.Name(keyword, c.NGram)
}

// Objects implements Type.
func (str) Objects(_ *schema.Schema, c *schema.Column) (ObjectEncoder, error) {
	return &stringObjects{sequenceObjects{n: c.NGram, pool: new(termPool)}}, nil
}

type stringObjects struct{ sequenceObjects }

// Encode appends the n-grams of the string that a cell is, then the whole.
func (e *stringObjects) Encode(dst *schema.Values, cell *schema.Cell) error {
	if len(cell.Values) > 1 {
		return fmt.Errorf("holds a list of %d values, but a string is one", len(cell.Values))
	}
	if err := e.sequenceObjects.Encode(dst, cell); err != nil || len(cell.Values) == 0 {
		return err
	}
	dst.Ends = append(dst.Ends, len(dst.Strings), len(dst.Strings)+1)
	dst.Strings = append(dst.Strings, wholeKeyword(cell.Values[0]))
	return nil
}

// Queries implements Type.
func (str) Queries(_ *schema.Schema, c *schema.Column, first int, v Vocabulary) (QueryEncoder, error) {
	return &stringQueries{position: first, vocabulary: v, n: c.NGram}, nil
}

// stringQueries finds strings by their n-grams.
type stringQueries struct {
	position   int // of the n-grams; the whole follows
	vocabulary Vocabulary
	n          int
	pool       termPool
}

// Items adds the item of a string: its n-grams.
func (e *stringQueries) Items(dst *Draft, c *Condition) error {
	text, err := c.string(valueForm)
	if err != nil {
		return err
	}
	return e.Text(dst, text)
}

// Text adds the item of a string.
func (e *stringQueries) Text(dst *Draft, text string) error {
	if dst.asks() {
		dst.Asked.Text, dst.Asked.NGram = text, e.n
	}
	t := e.pool.get()
	defer e.pool.Put(t)
	t.addGrams(text, e.n)
	keywords, _ := t.lookup(dst, e.position, e.vocabulary)
	if len(keywords) == 0 {
		dst.Warn(Unmeetable, "")
	}
	return dst.Keywords(e.position, keywords)
}

// string returns the one string that a condition of a form is.
func (c *Condition) string(of form) (string, error) {
	s, err := c.read()
	if err != nil {
		return "", err
	}
	if s.form != of || len(s.values) != 1 || s.values[0].Kind != StringKind && s.values[0].Kind != NumberKind {
		return "", Refuse(`column %q holds strings: write "abc" in row, {"is":"abc"} in filter and exclude`, c.Attr)
	}
	text := s.values[0].text()
	if !utf8.ValidString(text) {
		return "", Refuse("column %q: the string is not valid UTF-8", c.Attr)
	}
	return text, nil
}
