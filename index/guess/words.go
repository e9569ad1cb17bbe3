package guess

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/geniemq/geniemq/index/schema"
)

// guessWords tells texts, names and categories apart.
func (c *Column) guessWords() {
	texts := c.values.texts
	distinct, _ := count(texts)
	words, bytes := 0, 0
	for _, text := range texts {
		words += len(strings.Fields(text))
		bytes += len(text)
	}
	mean := float64(words) / float64(len(texts))
	varied := float64(distinct) / float64(len(texts))
	names := varied >= 0.5 && letters(texts) >= 0.7
	c.Store = true
	links, _ := share(texts, func(text string) bool {
		return strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://")
	})
	switch {
	case links >= most && varied > 0.5:
		c.Type, c.Store, c.Why = schema.PayloadColumn, false, "links, which come with hits and are not searched"
	case mean >= 2.5 && (varied >= 0.3 || mean >= 8):
		c.Type, c.Why = schema.TextColumn, fmt.Sprintf("texts of %.0f words", mean)
		c.IDF = true
	case names && len(texts) >= fewRecords:
		if c.Type = schema.StringColumn; listed(texts) {
			c.Type, c.IDF = schema.TextColumn, true
		}
		c.Why = fmt.Sprintf("names, %d distinct of %d, such as %q", distinct, len(texts), example(texts, func(string) bool { return true }))
		c.Unsure = "as a category they would be found only as they are written"
	default:
		c.Type, c.Why = schema.CategoryColumn, fmt.Sprintf("%d distinct of %d, such as %q", distinct, len(texts), example(texts, func(string) bool { return true }))
		if mean >= 1.5 || cases(texts) {
			c.Fold = true
		}
		switch typed, n, other := typedOf(texts); {
		case n > 2 && 2*typed >= n && !leadingZeros(texts):
			c.Unsure = fmt.Sprintf("%d of %d are numbers or dates; as such the others, as %.60q, would count as no value", typed, n, other)
		case varied >= 0.9 && len(texts) >= fewRecords:
			c.Unsure = "nearly every record has another one"
		case names && varied > 0.5 && len(texts) > 2:
			c.Unsure = "so few records do not tell names from categories: as a string misspelt ones would be found too"
		}
	}
}

// spelled proposes the order of hits by edit distances for a column of words, and tells of it where names have several.
//
// What people misspell is found by pieces that it shares with what was meant, but other words share as many. The order by edit distances puts the right one
// first more often. It is no order for names of several words, of which people ask a part: shorter names are nearer to the part than the name itself.
func (g *Guess) spelled() {
	at := slices.IndexFunc(g.Columns, func(c Column) bool { return c.Known && c.Type == schema.StringColumn })
	if at < 0 || g.Text {
		return
	}
	c := &g.Columns[at]
	order := schema.Rescore{By: "edit", Column: c.Name}
	if one, _ := share(c.values.texts, func(text string) bool { return len(strings.Fields(text)) == 1 }); one >= most {
		g.Rescore = &order
		g.note("hits of queries that ask %q come in the order of edit distances, for words that are misspelt", c.Name)
		return
	}
	if text, err := flow(order); err == nil {
		g.note("hits of queries that ask %q come in the order of counts, which finds names by a part of them; where whole names are asked and misspelt, add: rescore: %s", c.Name, text)
	}
}

// listed says that texts are several names each, between commas or the like. One comma may stand within a name.
func listed(texts []string) bool {
	lists, _ := share(texts, func(text string) bool {
		return strings.Count(text, ",")+strings.Count(text, ";")+strings.Count(text, "|") > 1
	})
	return lists >= 0.1
}

// typedOf counts the numbers and dates among the first of texts, and finds one that is neither.
func typedOf(texts []string) (typed, n int, other string) {
	n = min(len(texts), lookedRecords)
	of, other := share(texts[:n], looksTyped)
	return int(of*float64(n) + 0.5), n, other
}

// letters is the share of letters and blanks in texts.
func letters(texts []string) float64 {
	n, all := 0, 0
	for _, text := range texts {
		for _, r := range text {
			all++
			if unicode.IsLetter(r) || r == ' ' || r == '\'' || r == '-' || r == '.' {
				n++
			}
		}
	}
	return float64(n) / float64(max(1, all))
}

// cases says that some texts differ in case alone.
func cases(texts []string) bool {
	seen := make(map[string]string)
	for _, text := range texts {
		lower := strings.ToLower(text)
		if first, ok := seen[lower]; ok && first != text {
			return true
		}
		seen[lower] = text
	}
	return false
}
