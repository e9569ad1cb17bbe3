package stopwords

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

func TestLists(t *testing.T) {
	names := Languages()
	if want := []string{"danish", "dutch", "english", "finnish", "french", "german", "hungarian", "italian", "norwegian", "portuguese", "russian", "spanish",
		"swedish"}; !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
	for _, name := range names {
		words, ok := Of(name)
		if !ok || len(words) < 30 || len(words) > 400 {
			t.Errorf("%s: %v, %d words", name, ok, len(words))
		}
		seen := map[string]bool{}
		for _, word := range words {
			if seen[word] || word != strings.ToLower(word) || !norm.NFC.IsNormalString(word) || strings.ContainsAny(word, " \t|:#,.") {
				t.Errorf("%s: %q", name, word)
			}
			seen[word] = true
		}
	}
	for language, word := range map[string]string{"german": "und", "french": "été", "russian": "не", "english": "the", "spanish": "también", "swedish": "är"} {
		if words, _ := Of(language); !slices.Contains(words, word) {
			t.Errorf("%s without %q", language, word)
		}
	}
	if words, ok := Of("latin"); ok || words != nil {
		t.Errorf("latin: %q", words)
	}
}
