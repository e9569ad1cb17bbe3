package records

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestNoFilter: nobody is told that nothing passes a filter that is not there.
func TestNoFilter(t *testing.T) {
	a := build(t, "{name: n, columns: [{name: s, type: string}, {name: c, type: category}]}", "")
	for _, c := range []struct {
		query string
		none  bool
	}{
		{`{"total":true}`, false}, {`{"row":{"c":"x"},"total":true}`, false}, {`{"text":"abc","radius":1,"total":true}`, false},
		{`{"filter":{"c":"x"}}`, true}, {`{"filter":{"c":{"missing":true}},"total":true}`, true}, {`{"exclude":{"c":"x"},"total":true}`, true},
		{`{"text":"abc","radius":1,"total":true,"filter":{"c":"x"}}`, true},
	} {
		if r := a.ask(c.query); r.Err != nil || slices.Contains(r.Warnings, nonePass) != c.none {
			t.Errorf("%s of no objects: %v, warnings %q", c.query, r.Err, r.Warnings)
		}
	}
}

// TestNearNames: a name that was meant is found where two letters changed places, and up to two are wrong.
func TestNearNames(t *testing.T) {
	a := build(t, "{name: n, columns: [{name: title, type: text}, {name: age, type: number}, {name: sex, type: category}]}", `{"title":"x","age":1,"sex":"y"}`)
	for wrong, meant := range map[string]string{
		"titel": "title", "Title": "title", "TITEL": "title", "itle": "title", "titles": "title", "tjtlf": "title", "tle": "", "aeg": "age", "gae": "age", "agee": "age", "esx": "sex", "body": "", "xyz": "", "": "",
	} {
		r := a.ask(fmt.Sprintf(`{"row":{%q:1}}`, wrong))
		if r.Err == nil || strings.Contains(r.Err.Message, "did you mean") != (meant != "") || meant != "" && !strings.Contains(r.Err.Message, "(did you mean "+meant+"?)") {
			t.Errorf("%q: %v, and %q is meant", wrong, r.Err, meant)
		}
	}
}
