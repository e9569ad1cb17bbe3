package open

import (
	"slices"
	"testing"

	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/verify"
)

// TestForms: without a device it is known which forms an index has on one, and what is needed of them.
func TestForms(t *testing.T) {
	w := &enginetest.World{Objects: make([][][]uint32, 3000)}
	const attributes = 64
	for id := range w.Objects {
		for a := range attributes {
			w.Objects[id] = append(w.Objects[id], []uint32{uint32(id+a) % 7})
		}
	}
	w.Vocabulary, w.Layouts = slices.Repeat([]uint32{7}, attributes), slices.Repeat([]schema.Layout{schema.LayoutSliced}, attributes)
	w.Build(t)
	for _, texts := range []verify.Texts{nil, words{}} {
		forms, err := Forms(t.Context(), w.Index, texts)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{plan.FormTables, plan.FormPlanes, plan.FormDecoded, plan.FormTexts, plan.FormCodes}
		if texts == nil {
			want = slices.DeleteFunc(want, func(form string) bool { return form == plan.FormTexts })
		}
		var got []string
		for _, h := range forms {
			if got = append(got, h.Form); h.Bytes <= 0 || h.Needed != (h.Form == plan.FormTables || h.Form == plan.FormPlanes) {
				t.Errorf("%+v", h)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("the forms are %q, want %q", got, want)
		}
	}
}

// words are texts of 3,000 objects.
type words struct{}

func (words) Objects() uint32    { return 3000 }
func (words) Text(uint32) string { return "word" }
func (words) TextBytes() int64   { return 12_000 }
