// Package fold makes texts equal that differ in case and accents alone.
//
// Compatibility forms are taken apart (NFKD): full-width letters and ligatures are their plain forms. Case is folded by the full rules of Unicode: ß
// is ss. Accents are the marks without a width (category Mn) on letters of the scripts Latin, Greek and Cyrillic, and these are dropped: é is e, ή is
// η, й is и. On letters of other scripts such marks are no accents: they are vowels in Devanagari, Thai, Arabic and Hebrew, and make another
// syllable of one in Kana. They stay. At the end the rest is put together again (NFKC).
package fold

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// New returns what folds texts. It is safe for concurrent use, and folds what is folded to itself.
func New() func(text string) string {
	pool := sync.Pool{New: func() any {
		c := cases.Fold()
		return &c
	}}
	return func(text string) string {
		if folded, ok := ascii(text); ok {
			return folded
		}
		caser := pool.Get().(*cases.Caser)
		defer pool.Put(caser)
		text = caser.String(plain(text))
		return norm.NFKC.String(plain(text)) // what is folded may have marks of its own
	}
}

// ascii folds a text of nothing but ASCII.
func ascii(text string) (folded string, ok bool) {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return "", false
		}
	}
	return strings.ToLower(text), true
}

// plain takes a text apart and drops accents.
func plain(text string) string {
	text = norm.NFKD.String(text)
	var kept strings.Builder
	kept.Grow(len(text))
	accented := false // the last letter is of those that have accents
	for _, c := range text {
		if unicode.Is(unicode.Mn, c) {
			if !accented {
				kept.WriteRune(c)
			}
			continue
		}
		accented = unicode.In(c, unicode.Latin, unicode.Greek, unicode.Cyrillic)
		kept.WriteRune(c)
	}
	return kept.String()
}
