package column

import (
	"slices"
	"strings"
	"sync"

	"github.com/geniemq/geniemq/index/ngram"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/segment"
)

// terms holds the keywords of one text, words (package segment) or ordered n-grams, end to end in one buffer, so that they become
// strings with one allocation. It is scratch memory for one goroutine.
//
// Ordered n-grams are taken from the text as it stands, neither folded nor normalised; see ngram.Scanner.
type terms struct {
	text  []byte
	ends  []int
	words bool // and not n-grams

	segments *segment.Words
	runes    []rune
	grams    ngram.Scanner

	list     []string // of a query
	keywords []uint32
}

func newTerms() *terms {
	return &terms{segments: segment.NewWords()}
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
	t.list = t.strings(t.list[:0])
	t.keywords = v.LookupAll(t.keywords[:0], attr, t.list)
	known := t.keywords[:0]
	for i, term := range t.list {
		if keyword := t.keywords[i]; keyword != postings.NoKeyword {
			known = append(known, keyword)
			continue
		}
		unknown = true
		if t.words {
			dst.missed(term)
			if !dst.Quiet {
				dst.Warn(Unknown, strings.ReplaceAll(term, rowSeparator, " "))
			}
		}
	}
	clear(t.list) // not to keep the query's text alive in the pool
	slices.Sort(known)
	return slices.Compact(known), unknown
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

// addWords adds the words of a text.
func (t *terms) addWords(text string) { t.text, t.ends = t.segments.Append(t.text, t.ends, text) }

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
