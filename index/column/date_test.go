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
