package schema

import (
	"fmt"
	"math"
	"strings"

	"github.com/geniemq/geniemq/wire/fields"
)

// A Table is a table of docs/protocol.md, which stands there between a line "<!-- table NAME -->" and a line "<!-- end -->".
type Table struct{ Name, Text string }

// Tables returns all of them.
func Tables() []Table {
	tables := []Table{{"codes", codes()}, {"limits", limits()}, {"query headers", headers(fields.QueryMessage | fields.SearchMessage)},
		{"answer headers", headers(fields.ResultMessage | fields.ReplyMessage)}, {"dead headers", headers(fields.DeadMessage)}}
	for _, o := range []*fields.Object{&fields.Query, &fields.Table, &fields.Group, &fields.Elements, &fields.Condition, &fields.Rescore, &fields.Result, &fields.Hit, &fields.Estimate, &fields.Columns, &fields.Took, &fields.Error, &fields.Answer} {
		tables = append(tables, Table{o.Name, table(o)})
	}
	return tables
}

// Fill puts the tables into a page. It fails where a place for one is missing or does not end.
func Fill(page string) (string, error) {
	for _, t := range Tables() {
		head, rest, ok := strings.Cut(page, "<!-- table "+t.Name+" -->\n")
		_, rest, ends := strings.Cut(rest, "<!-- end -->")
		if !ok || !ends {
			return "", fmt.Errorf("the page has no place for the table %q: a line <!-- table %s -->, and a line <!-- end -->", t.Name, t.Name)
		}
		page = head + "<!-- table " + t.Name + " -->\n" + t.Text + "<!-- end -->" + rest
	}
	return page, nil
}

func table(o *fields.Object) string {
	var b strings.Builder
	b.WriteString("| field | type | default | |\n| --- | --- | --- | --- |\n")
	for i := range o.Fields {
		f := &o.Fields[i]
		def := f.Default
		if f.Required {
			def = "required"
		}
		means := f.Means
		if f.Holds == fields.Reserved {
			means = "Reserved: refused as `unsupported`."
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, kind(f), def, means)
	}
	return b.String()
}

// kind says what a field holds, and its limits.
func kind(f *fields.Field) string {
	switch f.Holds {
	case fields.Bool:
		return "bool"
	case fields.Integer:
		return fmt.Sprintf("integer, %s to %s", people(f.Least), people(f.Most))
	case fields.Hits:
		return fmt.Sprintf("integer, %s to %s, or 0", people(f.Least), people(f.Most))
	case fields.Number:
		return share(f)
	case fields.Text:
		if f.Least > 0 {
			return "string, not empty"
		}
		return "string"
	case fields.Weights:
		return fmt.Sprintf("object of integers, %s to %s", people(f.Least), people(f.Most))
	case fields.Estimates, fields.Nested, fields.List:
		return map[bool]string{true: "list of ", false: ""}[f.Holds == fields.List] + "[" + f.Of.Name + "](#" + strings.ReplaceAll(anchors[f.Of.Name], " ", "-") + ")" +
			map[bool]string{true: " by column", false: ""}[f.Holds == fields.Estimates]
	}
	return kinds[f.Holds]
}

// anchors are the headings that objects are described under.
var anchors = map[string]string{"rescore": "rescore", "took": "result", "error": "errors", "estimate": "hits", "result": "result"}

var kinds = map[fields.Kind]string{
	fields.Reserved: "", fields.ID: "string or integer", fields.Scalar: "number, string or bool", fields.Scalars: "list of these, not empty",
	fields.Set: "list of numbers and strings, not empty", fields.Vector: "list of numbers, not empty", fields.Point: "two numbers",
	fields.Row: "[conditions](#condition) by attribute, not empty", fields.Conditions: "list of [conditions](#condition) with `attr`, not empty",
	fields.Filter: "[conditions](#condition) by attribute, or a list of such; not empty", fields.Unit: "`\"bucket\"`", fields.Form: "`\"columns\"`",
	fields.Rows: "[table](#tables)", fields.Common: "object of fields of a query", fields.Array: "[array](#arrays)", fields.Groups: "list of [groups](#tables)",
	fields.Queries: "list of queries, not empty", fields.Texts: "list of strings", fields.Packed: "[packed](#columns)", fields.JSON: "object",
	fields.Nullables: "list", fields.HitList: "list of [hits](#hits), or [columns](#columns)",
}

func share(f *fields.Field) string {
	low, high := "", ""
	if f.Least > -math.MaxFloat32 {
		low = map[bool]string{true: "above ", false: "from "}[f.AboveLeast] + people(f.Least)
	}
	if f.Most < math.MaxFloat32 {
		high = map[bool]string{true: "below ", false: "to "}[f.BelowMost] + people(f.Most)
	}
	return strings.TrimSuffix("number, "+strings.TrimSpace(low+" "+high), ", ")
}

// people is a number with commas.
func people(v float64) string {
	digits := fmt.Sprintf("%.0f", math.Abs(v))
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	if v < 0 {
		return "-" + digits
	}
	return digits
}

func codes() string {
	var b strings.Builder
	b.WriteString("| code | what it means | what to do | HTTP |\n| --- | --- | --- | --- |\n")
	for _, c := range fields.Codes {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %d |\n", c.Name, c.Means, c.Do, c.HTTP)
	}
	return b.String()
}

func limits() string {
	return fmt.Sprintf(`| what | at most |
| --- | --- |
| bytes of a body, uncompressed | %s, in a message or in the [object store](#large-queries) |
| queries of a message | %s |
| items of a query: its conditions and the values in them, or the elements of its vector or set | %s |
| bytes of a string | %s |
| arrays and objects within each other | %d |
| hits that the queries of a message ask for together | %s |
`, people(fields.MaxBody), people(fields.MaxQueries), people(fields.MaxItems), people(fields.MaxString), fields.MaxDepth, people(fields.MaxSumK))
}

func headers(on fields.Message) string {
	var b strings.Builder
	b.WriteString("| header | what it says |\n| --- | --- |\n")
	for _, h := range fields.Headers {
		if h.On&on != 0 {
			fmt.Fprintf(&b, "| `%s` | %s |\n", h.Name, h.Means)
		}
	}
	return b.String()
}
