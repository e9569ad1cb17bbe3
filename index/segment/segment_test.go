package segment

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	uax29 "github.com/clipperhouse/uax29/v2/words"
	"golang.org/x/text/cases"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"

	"github.com/geniemq/geniemq/internal/testkit/raced"
)

func wordsOf(text string) []string { return cut(NewWords().Append(nil, nil, text)) }

func cut(text []byte, ends []int) (words []string) {
	start := 0
	for _, end := range ends {
		words = append(words, string(text[start:end]))
		start = end
	}
	return words
}

// byLibrary is Append without the short way.
func byLibrary(text string) []string {
	w := NewWords()
	var dst []byte
	var ends []int
	for segments := uax29.FromString(text); segments.Next(); {
		if segment := segments.Value(); isWord(segment) {
			dst = w.fold(dst, segment)
			ends = append(ends, len(dst))
		}
	}
	return cut(dst, ends)
}

// TestPlain: the short way to words finds those of the library, in all texts of up to four characters of those that rules are about, and of two that no
// rule is about, each text by itself and in front of others.
func TestPlain(t *testing.T) {
	raced.Skip(t, raced.One)
	letters := []string{"a", "Z", "7", "_", ".", ",", ":", ";", "'", `"`, " ", "-", "\r", "\n", "\u0301", "\u00ad", "\u200d", "\u05d0", "\u30a2", "\uff9e", "\u2003", "\U0001f600", "\U0001f1e6", "é", "\xff"}
	var extend func(text string, more int)
	extend = func(text string, more int) {
		for _, text := range []string{text, text + " b", text + "c", text + "1"} {
			if got, want := wordsOf(text), byLibrary(text); !slices.Equal(got, want) {
				t.Fatalf("%q: %q, the library has %q", text, got, want)
			}
		}
		if more > 0 {
			for _, c := range letters {
				extend(text+c, more-1)
			}
		}
	}
	extend("", 4)
}

// FuzzPlain does so with texts of any length.
func FuzzPlain(f *testing.F) {
	for _, seed := range []string{"Generic Inverted Index", "a.b.c 3.14,5 snake_case don't. x:y; \"q\" 1'2", "...  \uff9e ..é \r\n\u0301 a\u0301b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) { // which columns refuse; what the library makes of such bytes depends on what is before
			return
		}
		if got, want := wordsOf(text), byLibrary(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, the library has %q", text, got, want)
		}
	})
}

func BenchmarkWords(b *testing.B) {
	for name, text := range map[string]string{
		"English": "A user-centered interface for querying distributed multimedia databases, and what it's for.",
		"German":  "Zugriffspfade für räumliche Anfragen über größere Datenmengen",
	} {
		b.Run(name, func(b *testing.B) {
			w := NewWords()
			var dst []byte
			var ends []int
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				dst, ends = w.Append(dst[:0], ends[:0], text)
			}
		})
	}
}

// The short way to lower case agrees with the full rules for every letter there is, alone and within a word.
func TestFoldEveryLetter(t *testing.T) {
	full := cases.Lower(language.Und)
	words := NewWords()
	for c := rune(utf8.RuneSelf); c <= unicode.MaxRune; c++ {
		if !unicode.IsLetter(c) && !unicode.IsNumber(c) && !unicode.IsMark(c) {
			continue
		}
		for _, word := range []string{string(c), "A" + string(c), "Ä" + string(c) + "Ω"} {
			want := norm.NFKC.String(full.String(norm.NFKC.String(word)))
			if got := string(words.fold(nil, word)); got != want {
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
	for _, seed := range []string{"Generic Inverted Index", "ΟΔΟΣ İ ﬁ ＦＵＬＬ", "a\u0301\u0323 x²½", "don't 3.14 😀", "\u1E9E\u0345", "\uff9f", " \uff9f"} {
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
		// them, a blank too (rule WB4), or several (WB3d).
		first := strings.TrimLeftFunc(text, func(c rune) bool { return unicode.In(c, unicode.M, unicode.Cf, unicode.Zs) })
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
