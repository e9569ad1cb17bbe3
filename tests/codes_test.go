package tests

import (
	"encoding/json"
	"slices"
	"testing"
)

// TestLongCodes: integers with more digits than a float64 has are found as what they are, in every shape of a condition: they are codes of categories, and elements of sets.
func TestLongCodes(t *testing.T) {
	codes := []string{"9007199254740993", "9007199254740992", "18446744073709551615", "18446744073709551614", "-9007199254740993", "123456789012345678901234567890"}
	a := newAsker(t, "{name: codes, columns: [{name: code, type: category}, {name: codes, type: set}]}", codes, codes)
	for i, code := range codes {
		n := json.Number(code)
		for _, q := range []object{
			{"row": object{"code": n}},
			{"row": object{"code": object{"in": []any{n}}}},
			{"row": object{"codes": []any{n}}},
			{"row": object{"code": code}},
			{"items": []object{{"attr": "code", "value": n}}},
			{"filter": object{"code": n}},
			{"filter": object{"codes": object{"all": []any{n}}}},
			{"filter": object{"codes": object{"any": []any{n, "x"}}}},
			{"set": []any{n}},
		} {
			if hits := a.ask([]object{q})[0]; !slices.Equal(hits, []uint32{uint32(i)}) {
				t.Errorf("%v finds %v, and it is %d", q, hits, i)
			}
		}
	}
}
