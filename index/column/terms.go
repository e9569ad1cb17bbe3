package column

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	uax29 "github.com/clipperhouse/uax29/v2/words"
	"golang.org/x/text/cases"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"

	"github.com/geniemq/geniemq/index/ngram"
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
	text  []byte
	ends  []int
	words bool // and not n-grams

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

// termPool is a pool of *terms, the memory of one call each.
type termPool struct{ sync.Pool }

func (p *termPool) get() *terms {
	t, ok := p.Get().(*terms)
	if !ok {
		return newTerms()
	}
	t.text, t.ends, t.words = t.text[:0], t.ends[:0], false
	return t
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

// known adds the terms that the index knows, and warns of words that it does not know.
func (t *terms) known(dst *Draft, attr int, v Vocabulary) error {
	if len(t.ends) == 0 {
		dst.Warn(NothingLeft, "")
	}
	keywords, _ := t.lookup(dst, attr, v)
	return dst.Keywords(attr, keywords)
}

// lookup returns the keywords of the terms, distinct and ascending, and whether some are unknown. It warns of words that are. The keywords
// are good until the memory is used again.
func (t *terms) lookup(dst *Draft, attr int, v Vocabulary) (keywords []uint32, unknown bool) {
	t.list, t.keywords = t.strings(t.list[:0]), t.keywords[:0]
	for _, term := range t.list {
		if keyword, ok := v.Lookup(attr, term); ok {
			t.keywords = append(t.keywords, keyword)
			continue
		}
		unknown = true
		if t.words {
			dst.missed(term)
			dst.Warn(Unknown, strings.ReplaceAll(term, rowSeparator, " "))
		}
	}
	clear(t.list) // not to keep the query's text alive in the pool
	slices.Sort(t.keywords)
	return slices.Compact(t.keywords), unknown
}

// rowSeparator stands between words in a row. It is in no word, since it ends words as all controls do.
const rowSeparator = "\x1f"

// addTextWords adds the words of a text that are no stop words, and after them those of 2 to so many words in a row, in the text that is left.
func (t *terms) addTextWords(text string, stop map[string]struct{}, row int) {
	t.words = true
	first := len(t.ends)
	t.addWords(text)
	t.drop(first, stop)
	last := len(t.ends)
	for n := 2; n <= row; n++ {
		for i := first; i+n <= last; i++ {
			for j := i; j < i+n; j++ {
				if j > i {
					t.text = append(t.text, rowSeparator...)
				}
				t.text = append(t.text, t.text[t.start(j):t.ends[j]]...)
			}
			t.ends = append(t.ends, len(t.text))
		}
	}
}

// start returns where a term begins.
func (t *terms) start(term int) int {
	if term == 0 {
		return 0
	}
	return t.ends[term-1]
}

// drop drops those of the terms from first on that are to be left out.
func (t *terms) drop(first int, stop map[string]struct{}) {
	if len(stop) == 0 {
		return
	}
	n, start, to := first, t.start(first), t.start(first)
	for _, end := range t.ends[first:] {
		if _, stopped := stop[string(t.text[start:end])]; !stopped {
			to += copy(t.text[to:], t.text[start:end])
			t.ends[n] = to
			n++
		}
		start = end
	}
	t.text, t.ends = t.text[:to], t.ends[:n]
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
	segments := uax29.FromString(text)
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
