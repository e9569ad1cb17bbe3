// Package naive is what tests compare with: definitions written down as they read, and slow.
package naive

import "unicode"

// GramOverlap is the match count of two strings by their ordered n-grams, n at most 8, by definition: the sum over all n-grams of the
// smaller number of occurrences (Lemma 5.1). Strings are padded by n - 1 symbols on either side that are in no text.
func GramOverlap(a, b []rune, n int) (overlap int) {
	type gram [8]rune
	each := func(text []rune, visit func(gram)) {
		var padded []rune
		for i := range n - 1 {
			padded = append(padded, unicode.MaxRune+1+rune(i))
		}
		padded = append(padded, text...)
		for i := range n - 1 {
			padded = append(padded, unicode.MaxRune+9+rune(i))
		}
		for i := 0; i+n <= len(padded); i++ {
			var g gram
			copy(g[:], padded[i:i+n])
			visit(g)
		}
	}
	counts := make(map[gram]int)
	each(a, func(g gram) { counts[g]++ })
	each(b, func(g gram) {
		if counts[g] > 0 {
			counts[g]--
			overlap++
		}
	})
	return overlap
}
