package fold

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

func TestFold(t *testing.T) {
	fold := New()
	for _, class := range [][]string{ // what the first is, all are
		{"emile", "Émile", "EMILE", "émile", "e\u0301mile", "Ê̄mile"}, {"strasse", "Straße", "STRASSE", "Straẞe"}, {"istanbul", "İstanbul", "Istanbul"},
		{"naive", "naïve", "NAÏVE"}, {"tieng viet", "Tiếng Việt"}, {"øre", "ØRE"}, {"łodz", "Łódź"}, {"fine", "ﬁne", "ＦＩＮＥ"},
		{"αθηνα", "Αθήνα", "ΑΘΗΝΑ", "Ἀθηνᾶ"}, {"οδοσ", "οδός", "ΟΔΟΣ"}, {"αι", "αΙ"}, {"αδω", "ᾄδω"},
		{"елка", "Ёлка", "ёлка"}, {"маи", "май", "МАЙ"},
		// Marks that are no accents.
		{"हिन्दी"}, {"ไทยไม่"}, {"がぎ", "か\u3099ぎ"}, {"パ", "ﾊﾟ"}, {"שָׁלוֹם"}, {"مُحَمَّد"}, {"한국어", "한국어"}, {"1\u0308"}, {"\u0301"},
		{"aहि", "Áहि"}, {"", ""}, {"it's", "IT'S"},
	} {
		for _, spelling := range class {
			if got, want := fold(spelling), norm.NFKC.String(class[0]); got != want {
				t.Errorf("%q (%+q) becomes %q (%+q), want %q", spelling, spelling, got, got, want)
			}
		}
	}
	for _, different := range [][2]string{{"कि", "कु"}, {"は", "ば"}, {"ป่า", "ปา"}} {
		if fold(different[0]) == fold(different[1]) {
			t.Errorf("%q and %q become one", different[0], different[1])
		}
	}
}

// TestFoldsOnce: what is folded stays, and case and the way in which a character is typed make no difference; in Latin, Greek and Cyrillic marks make none.
func TestFoldsOnce(t *testing.T) {
	seed := seeded.Seed(t)
	random, fold := rand.New(rand.NewPCG(seed, 0)), New()
	letters := []rune("aZéßİıŁ ﬁǆΣςσάᾳЙё1½ﾊﾟक\u0301\u0323\u0345\u093fがשָ한\u1100\u1161ﷺ™")
	for range 20_000 {
		var b strings.Builder
		for range random.IntN(6) {
			c := letters[random.IntN(len(letters))]
			if random.IntN(4) == 0 {
				c = rune(random.IntN(0x3000))
			}
			if unicode.IsPrint(c) && !unicode.Is(unicode.Cherokee, c) { // of which x/text folds small letters into large ones, and large into small
				b.WriteRune(c)
			}
		}
		text := b.String()
		once := fold(text)
		if again := fold(once); again != once {
			t.Fatalf("%+q becomes %+q, and that %+q", text, once, again)
		}
		for _, other := range []string{norm.NFD.String(text), norm.NFC.String(text)} {
			if got := fold(other); got != once {
				t.Fatalf("%+q becomes %+q, and typed as %+q %+q", text, once, other, got)
			}
		}
		if strings.ContainsRune(norm.NFKD.String(text), '\u0345') { // the iota below a letter, which is an accent here, and a letter where case alone is folded
			continue
		}
		if got := fold(cases.Fold().String(text)); got != once {
			t.Fatalf("%+q becomes %+q, and its case folded %+q", text, once, got)
		}
	}
}
