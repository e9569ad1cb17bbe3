package column

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"
)

func wordsOf(text string) []string {
	t := newTerms()
	t.addWords(text)
	return t.strings(nil)
}

// The short way to lower case agrees with the full rules for every letter there is, alone and within a word.
func TestFoldEveryLetter(t *testing.T) {
	full := cases.Lower(language.Und)
	terms := newTerms()
	for c := rune(utf8.RuneSelf); c <= unicode.MaxRune; c++ {
		if !unicode.IsLetter(c) && !unicode.IsNumber(c) && !unicode.IsMark(c) {
			continue
		}
		for _, word := range []string{string(c), "A" + string(c), "Ä" + string(c) + "Ω"} {
			terms.text, terms.ends = terms.text[:0], terms.ends[:0]
			terms.addWord(word)
			want := norm.NFKC.String(full.String(norm.NFKC.String(word)))
			if got := string(terms.text); got != want {
				t.Fatalf("%q (%U): %q, want %q", word, c, got, want)
			}
		}
	}
}

// A word that begins with a character that combines with the one before leaves the word before alone.
func TestWordsDoNotCombine(t *testing.T) {
	if got, want := wordsOf("\uac00 \u11a8"), []string{"\uac00", "\u11a8"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func FuzzWords(f *testing.F) {
	for _, seed := range []string{"Generic Inverted Index", "ΟΔΟΣ İ ﬁ ＦＵＬＬ", "a\u0301\u0323 x²½", "don't 3.14 😀", "\u1E9E\u0345", "\uff9f"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return
		}
		words := wordsOf(text)
		for _, word := range words {
			if word == "" || !norm.NFKC.IsNormalString(word) {
				t.Errorf("%q: word %q", text, word)
			}
		}
		// What stands around a text does not matter, unless it begins with one of the two letters that extend whatever is before
		// them, a blank too (rule WB4).
		first := strings.TrimLeftFunc(text, func(c rune) bool { return unicode.In(c, unicode.M, unicode.Cf) })
		extends := strings.HasPrefix(first, "\uff9e") || strings.HasPrefix(first, "\uff9f")
		if other := wordsOf("  ... " + text + "\n"); !extends && !slices.Equal(words, other) {
			t.Errorf("%q: %q, with blanks around %q", text, words, other)
		}
		if twice := wordsOf(text + "\n" + text); !slices.Equal(twice, slices.Concat(words, words)) {
			t.Errorf("%q: %q, twice %q", text, words, twice)
		}
		// Upper case of ASCII letters does not matter.
		if ascii := strings.Map(func(c rune) rune {
			if 'a' <= c && c <= 'z' {
				return c - 'a' + 'A'
			}
			return c
		}, text); !slices.Equal(words, wordsOf(ascii)) {
			t.Errorf("%q: %q, in upper case %q", text, words, wordsOf(ascii))
		}
	})
}
