package translate

import (
	"encoding/json"
	"strings"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/schema"
)

// Example is a query that finds something in an index: its first object, where that has what it takes. It holds no
// apostrophe.
func Example(x *index.Index) string {
	query := map[string]any{"k": 3}
	if x.Schema().Kind == schema.Sequences && x.Objects() > 0 {
		query["text"] = x.Text(x.Objects() / 2)
	} else {
		row := make(map[string]any)
		for i, a := range x.Attributes() {
			switch {
			case len(row) == 3 || a.Keywords == 0:
			case a.Type == schema.Number:
				row[a.Name] = map[string]float64{"min": a.Min, "max": (a.Min + a.Max) / 2}
			default:
				row[a.Name] = x.KeywordName(i, a.Keywords/2)
			}
		}
		query["row"] = row
	}
	text, err := json.Marshal(query)
	if err != nil {
		return "{}"
	}
	return strings.ReplaceAll(string(text), "'", `\u0027`) // it is shown between quotes, for a shell
}
