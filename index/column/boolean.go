package column

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/geniemq/geniemq/index/schema"
)

// boolean is the type of columns that are true or false.
type boolean struct{ traits }

// parseBool reads true and false in the words of tables: true, yes, t, y, 1, in any case, and their opposites.
func parseBool(text string) (value, ok bool) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true", "yes", "t", "y", "1":
		return true, true
	case "false", "no", "f", "n", "0":
		return false, true
	}
	return false, false
}

// Objects implements Type.
func (boolean) Objects(_ *schema.Schema, c *schema.Column) (ObjectEncoder, error) {
	return booleanObjects{c.Store}, nil
}

type booleanObjects struct{ store bool }

// Encode appends the truth of a cell.
func (e booleanObjects) Encode(dst *schema.Values, cell *schema.Cell) error {
	for _, text := range cell.Values {
		v, ok := parseBool(text)
		if !ok {
			return fmt.Errorf("%.80q is neither true nor false (nor yes, no, t, f, y, n, 1, 0)", text)
		}
		dst.Strings = append(dst.Strings, strconv.FormatBool(v))
	}
	if e.store {
		dst.JSON = append(dst.JSON, strings.Join(dst.Strings, ",")...)
		if len(dst.Strings) > 1 {
			dst.JSON = append(slices.Insert(dst.JSON, 0, '['), ']')
		}
	}
	return nil
}

// Keeps implements Keeper.
func (boolean) Keeps(_ *schema.Schema, c *schema.Column) schema.KeptSpec {
	return schema.KeptSpec{Returned: c.Store}
}

// Queries implements Type.
func (boolean) Queries(_ *schema.Schema, c *schema.Column, first int, v Vocabulary) (QueryEncoder, error) {
	return &textQueries{name: c.Name, position: first, vocabulary: v, unordered: true, word: func(text string) (string, error) {
		v, ok := parseBool(text)
		if !ok {
			return "", Refuse("attribute %q is true or false, not %.80q", c.Name, text)
		}
		return strconv.FormatBool(v), nil
	}}, nil
}
