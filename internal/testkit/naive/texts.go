package naive

import "math/rand/v2"

// EditDistance is the textbook matrix, two rows of it.
func EditDistance(a, b []rune) int {
	prev, cur := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i, r := range a {
		cur[0] = i + 1
		for j, s := range b {
			cost := 1
			if r == s {
				cost = 0
			}
			cur[j+1] = min(prev[j]+cost, prev[j+1]+1, cur[j]+1)
		}
		prev, cur = cur, prev
	}
	return prev[len(b)]
}

// Alphabets mix symbols of one byte, of Latin-1, of two to four bytes and the largest code point.
func Alphabets() [][]rune {
	return [][]rune{
		[]rune("ab"),
		[]rune("acgt"),
		[]rune("abcdefghijklmnopqrstuvwxyz '"),
		[]rune("aäöüßé"),
		[]rune("ab検索файл𝄞\U0010ffff"),
	}
}

// Text is random symbols.
func Text(rng *rand.Rand, alphabet []rune, length int) []rune {
	text := make([]rune, length)
	for i := range text {
		text[i] = alphabet[rng.IntN(len(alphabet))]
	}
	return text
}

// Edited returns text after the given number of random edits, so that its distance is at most that.
func Edited(rng *rand.Rand, alphabet, text []rune, edits int) []rune {
	out := append([]rune(nil), text...)
	for range edits {
		i := rng.IntN(len(out) + 1)
		switch op := rng.IntN(3); {
		case op == 0 || len(out) == 0 || i == len(out):
			out = append(out[:i], append([]rune{alphabet[rng.IntN(len(alphabet))]}, out[i:]...)...)
		case op == 1:
			out = append(out[:i], out[i+1:]...)
		default:
			out[i] = alphabet[rng.IntN(len(alphabet))]
		}
	}
	return out
}
