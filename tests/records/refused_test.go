package records

import (
	"fmt"
	"strings"
	"testing"
)

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
