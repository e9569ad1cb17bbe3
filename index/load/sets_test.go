package load

import (
	"slices"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index/schema"
)

// A set that is written as a JSON array in a format of texts is the list that it is in JSON; what is none stays one element, and so does a string of JSON.
func TestSetsWrittenAsJSON(t *testing.T) {
	s := &schema.Schema{Name: "a", Missing: []string{"", "-", "[0]"}, Columns: []schema.Column{
		{Name: "s", Type: schema.SetColumn}, {Name: "d", Type: schema.SetColumn, Split: "|"}, {Name: "c", Type: schema.CategoryColumn},
	}}
	for _, c := range []struct {
		text, fault string
		want        []string
	}{
		{`["a","b"]`, "", []string{"a", "b"}}, {` [ "a b", 5.0, 7, true, null, "-" ] `, "", []string{"a b", "5", "7", "true"}},
		{`["a"]`, "", []string{"a"}}, {`[]`, "", nil}, {`[0]`, "", nil}, {`[0.0]`, "", []string{"0"}},
		{`[a,b]`, "", []string{"[a,b]"}}, {`['a']`, "", []string{"['a']"}}, {`["a"`, "", []string{`["a"`}}, {`["a"] x]`, "", []string{`["a"] x]`}},
		{`"a"`, "", []string{`"a"`}}, {`{"a":1}`, "", []string{`{"a":1}`}}, {`[1,[2]]`, "a list within a list", nil},
	} {
		r, err := NewReader(strings.NewReader("s\td\tc\n"+c.text+"\t"+c.text+"\t"+c.text+"\n"), "a.tsv", s, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var rec schema.Record
		if err := r.Next(&rec); err != nil {
			t.Fatal(err)
		}
		if got := rec.Cells[0]; !strings.Contains(got.Fault, c.fault) || (got.Fault == "") != (c.fault == "") || c.fault == "" && !slices.Equal(got.Values, c.want) {
			t.Errorf("%s: %+v, want %q %s", c.text, got, c.want, c.fault)
		}
		as := []string{strings.TrimSpace(c.text)}
		if s.Missing[2] == as[0] {
			as = nil
		}
		if !slices.Equal(rec.Cells[1].Values, as) || !slices.Equal(rec.Cells[2].Values, as) {
			t.Errorf("%s: with a separator %q, as a category %q", c.text, rec.Cells[1].Values, rec.Cells[2].Values)
		}
	}
	r, err := NewReader(strings.NewReader(`{"s":"[\"a\",\"b\"]"}`), "a.jsonl", s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var rec schema.Record
	if err := r.Next(&rec); err != nil || !slices.Equal(rec.Cells[0].Values, []string{`["a","b"]`}) {
		t.Errorf("a string of JSON: %+v, %v", rec, err)
	}
	lines := &schema.Schema{Name: "a", Columns: []schema.Column{{Name: "s", Type: schema.SetColumn}}}
	if r, err = NewReader(strings.NewReader("[\"a\",2]\n"), "a.txt", lines, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := r.Next(&rec); err != nil || !slices.Equal(rec.Cells[0].Values, []string{"a", "2"}) {
		t.Errorf("a line: %+v, %v", rec, err)
	}
}
