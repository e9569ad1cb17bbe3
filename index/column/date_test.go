package column

import (
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index/schema"
)

// TestDateForms: what is no date is answered by the form that the column takes, which is not always ISO 8601.
func TestDateForms(t *testing.T) {
	for parse, says := range map[string]string{"": "write 2024-05-17,", "DD.MM.YYYY": "write DD.MM.YYYY;"} {
		o, err := date{}.Objects(nil, &schema.Column{Parse: parse})
		if err != nil {
			t.Fatal(err)
		}
		err = o.Encode(new(schema.Values), &schema.Cell{Values: []string{"31.02.2021"}})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("parse %q: %v; it should say %q", parse, err, says)
		}
	}
}

// TestLastDate: the last microseconds that can be written are shown as a time that can be written too, and what an offset puts beyond them is refused.
func TestLastDate(t *testing.T) {
	o, err := date{}.Objects(nil, &schema.Column{})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"9999-12-31T23:59:59.999999Z": `"9999-12-31T23:59:59.999968Z"`, "9999-12-31T23:59:59Z": `"9999-12-31T23:59:59Z"`, "9999-12-31": `"9999-12-31"`,
	} {
		var v schema.Values
		if err := o.Encode(&v, &schema.Cell{Values: []string{text}}); err != nil {
			t.Fatal(err)
		}
		if got := string(date{}.AppendJSON(nil, v.Numbers[0])); got != want {
			t.Errorf("%s is shown as %s, not as %s", text, got, want)
		}
	}
	err = o.Encode(new(schema.Values), &schema.Cell{Values: []string{"9999-12-31T23:59:59-01:00"}})
	if err == nil || !strings.Contains(err.Error(), "of the years 0 to 9999 in UTC") {
		t.Errorf("a time of the year 10000: %v", err)
	}
}
