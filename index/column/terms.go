package column

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
	"golang.org/x/text/cases"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"

	"github.com/geniemq/geniemq/index/ngram"
	"github.com/geniemq/geniemq/index/postings"
)

// terms holds the keywords of one text, words or ordered n-grams, end to end in one buffer, so that they become
// strings with one allocation. It is scratch memory for one goroutine.
//
// Words are what the schema's words: uax29-lower names. The steps may not change as long as they bear that name,
// since indexes hold what they produced:
//
//  1. The text is segmented by the word boundaries of Unicode (UAX #29).
//  2. A segment without a letter or a number is dropped: blanks, punctuation, symbols, emoji.
//  3. The rest is normalised to NFKC, lower-cased by the full rules of Unicode (the final sigma included, those of
//     single languages not), and normalised again.
//
// NFKC and not NFC, because a search should not see how a character was typed: full-width letters, ligatures and
// superscripts are their plain forms. It comes after segmentation, because before it would glue together what was
// apart: "Sony™" would become "sonytm".
//
// Ordered n-grams are taken from the text as it stands, neither folded nor normalised; see ngram.Scanner.
type terms struct {
	text []byte
	ends []int

	normal, lower []byte // a word on its way
	caser         cases.Caser
	runes         []rune
	grams         ngram.Scanner

	list     []string // of a query
	keywords []uint32
}

func newTerms() *terms {
	return &terms{caser: cases.Lower(language.Und)}
}

func (t *terms) reset() {
	t.text, t.ends = t.text[:0], t.ends[:0]
}

// strings appends the terms to dst in the order of the text, repeats included. They share one new string.
func (t *terms) strings(dst []string) []string {
	all := string(t.text)
	start := 0
	for _, end := range t.ends {
		dst = append(dst, all[start:end])
		start = end
	}
	return dst
}

// item adds the item of the terms that the index knows.
func (t *terms) item(dst *postings.MatchQuery, attr int, v Vocabulary) {
	t.list, t.keywords = t.strings(t.list[:0]), t.keywords[:0]
	for _, term := range t.list {
		if keyword, ok := v.Lookup(attr, term); ok {
			t.keywords = append(t.keywords, keyword)
		}
	}
	slices.Sort(t.keywords)
	dst.StartItem(uint32(attr), 1)
	for i, keyword := range t.keywords {
		if i == 0 || keyword != t.keywords[i-1] {
			dst.AddSpan(keyword, keyword+1)
		}
	}
	clear(t.list) // not to keep the query's text alive in the pool
}

// addGrams adds the ordered n-grams of a text.
func (t *terms) addGrams(text string, n int) {
	t.runes = t.runes[:0]
	for _, c := range text {
		t.runes = append(t.runes, c)
	}
	for t.grams.Reset(t.runes, n); t.grams.Next(); {
		gram, occurrence := t.grams.Gram()
		t.text = ngram.AppendKey(t.text, gram, occurrence)
		t.ends = append(t.ends, len(t.text))
	}
}

// addWords adds the words of a text.
func (t *terms) addWords(text string) {
	segments := words.FromString(text)
	for segments.Next() {
		if segment := segments.Value(); isWord(segment) {
			t.addWord(segment)
		}
	}
}

func isWord(segment string) bool {
	for _, c := range segment {
		if unicode.IsLetter(c) || unicode.IsNumber(c) {
			return true
		}
	}
	return false
}

func (t *terms) addWord(word string) {
	start := len(t.text)
	for i := range len(word) {
		c := word[i]
		if c >= utf8.RuneSelf {
			t.text = t.text[:start]
			t.foldWord(word)
			break
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		t.text = append(t.text, c)
	}
	t.ends = append(t.ends, len(t.text))
}

// foldWord appends a word that is not all ASCII, normalised and in lower case. Normalising into an empty buffer and
// not straight behind the words before keeps words from combining with each other, and spares an allocation.
func (t *terms) foldWord(word string) {
	t.normal = norm.NFKC.AppendString(t.normal[:0], word)
	t.lower = t.lower[:0]
	for _, c := range string(t.normal) {
		if c == 'Σ' || c == 'İ' {
			// The letters whose lower case depends on their place or is more than one letter. Caser knows all
			// the rules but allocates, so that only these words pay for it. Lower case is at most half as long
			// again (two bytes may become three), so the result always fits.
			t.lower = append(t.lower[:0], make([]byte, 2*len(t.normal))...)
			n, _, _ := t.caser.Transform(t.lower, t.normal, true)
			t.lower = t.lower[:n]
			break
		}
		t.lower = utf8.AppendRune(t.lower, unicode.ToLower(c))
	}
	t.normal = norm.NFKC.Append(t.normal[:0], t.lower...)
	t.text = append(t.text, t.normal...)
}
