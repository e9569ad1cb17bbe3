package wire

// scanJSON finds the queries by their brackets alone and leaves the rest to those who decode them: a tokenizer takes as long
// for a look as for decoding. That is sound. In a query that is valid, tokens and brackets agree on where strings are and so
// on where the query ends; in one that is not, a token is wrong at that place at the latest, so that who decodes it notices
// and none of the message counts. What is between the queries and around them is looked at here.
func (b *Batch) scanJSON() bool {
	s := b.text
	i, ok := 0, false
	for _, token := range [...]string{"{", `"queries"`, ":", "["} {
		if i, ok = stepOver(s, i, token); !ok {
			return false
		}
	}
	for {
		if i = stepOverSpace(s, i); i == len(s) || s[i] != '{' || b.limits.checkQueries(b.Len()+1) != nil {
			return false
		}
		start, conditions := i, 0
		if i, conditions = b.scanJSONQuery(i); i < 0 || conditions > (i-start)/leastCondition {
			return false // with more it is malformed, and memory would be taken for it
		}
		b.add(start, conditions)
		next := false
		if i, next = stepOver(s, i, ","); !next {
			break
		}
	}
	for _, token := range [...]string{"]", "}"} {
		if i, ok = stepOver(s, i, token); !ok {
			return false
		}
	}
	return stepOverSpace(s, i) == len(s)
}

// leastCondition is how many bytes a condition has at least.
const leastCondition = len(`"":1,`)

// scanJSONQuery is scanQuery for a query in JSON, of which it sees strings, brackets and commas.
func (b *Batch) scanJSONQuery(i int) (end, conditions int) {
	s := b.text
	open := 0
	members := 0 // of the open field, if it may be a row or items, which are objects; none is empty
	for ; i < len(s); i++ {
		switch s[i] {
		case '"':
			for i++; i < len(s) && s[i] != '"'; i++ {
				if s[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			if open++; open != 2 {
				continue
			}
			members = 0
			if first := stepOverSpace(s, i+1); s[i] == '{' || first < len(s) && s[first] == '{' {
				members = 1
			}
		case ',':
			if open == 2 && members > 0 {
				members++
			}
		case '}', ']':
			if open == 2 {
				conditions += members
			}
			if open--; open == 0 {
				return i + 1, conditions
			}
		}
	}
	return -1, 0
}

// stepOver steps over a token and the space before it, if it is what follows.
func stepOver(s string, i int, token string) (int, bool) {
	i = stepOverSpace(s, i)
	if len(s)-i < len(token) || s[i:i+len(token)] != token {
		return i, false
	}
	return i + len(token), true
}

func stepOverSpace(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\n' || s[i] == '\r' || s[i] == '\t') {
		i++
	}
	return i
}
