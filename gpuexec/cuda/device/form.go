//go:build cuda

package device

import (
	"strings"

	"github.com/geniemq/geniemq/index"
)

// partsOfBatch is Capacity.Parts.
func (r *resident) partsOfBatch() int {
	if r.stream == nil {
		return 1 // one that stays has parts too where an offset in the table of sections ends
	}
	return max(1, len(r.parts))
}

// description is Capacity.Form: where the index lies, and in which forms.
func (r *resident) description() string {
	has := make(map[index.Layout]bool)
	for _, a := range r.index.Attributes() {
		has[a.Layout] = true
	}
	where := "resident"
	if r.stream != nil {
		where = "streamed"
	}
	var forms []string
	for _, form := range []struct {
		there bool
		name  string
	}{
		{has[index.LayoutPostings] || has[index.LayoutRare], "postings"},
		{has[index.LayoutRare], "rare lists"},
		{r.sliced != nil, "planes"},
		{r.sliced != nil && r.postings, "decoded postings"},
		{r.codes != nil, "byte codes"},
		{r.texts != nil, "texts"},
	} {
		if form.there {
			forms = append(forms, form.name)
		}
	}
	return where + ": " + strings.Join(forms, ", ")
}
