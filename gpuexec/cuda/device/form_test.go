//go:build cuda

package device

import (
	"slices"
	"testing"

	"github.com/geniemq/geniemq/gpuexec/enginetest"
	"github.com/geniemq/geniemq/index"
)

// TestForm: what is said of an index is what lies on the device.
func TestForm(t *testing.T) {
	of := func(attributes int, layouts ...index.Layout) *enginetest.World {
		w := &enginetest.World{Objects: make([][][]uint32, 5000)}
		for id := range w.Objects {
			for a := range attributes {
				w.Objects[id] = append(w.Objects[id], []uint32{uint32(id+a) % 7})
			}
		}
		w.Vocabulary, w.Layouts = slices.Repeat([]uint32{7}, attributes), slices.Repeat(layouts, attributes/len(layouts))
		w.Build(t)
		return w
	}
	plain, sliced := of(2, index.LayoutPostings), of(40, index.LayoutSliced)
	mixed := of(3, index.LayoutSliced, index.LayoutRare, index.LayoutPostings)
	stays := residentLimits{memory: 1 << 40}
	planes, streamed := stays, stays
	planes.planesOnly, streamed.partBytes = true, 1<<30
	for _, c := range []struct {
		w      *enginetest.World
		limits residentLimits
		texts  bool
		want   string
	}{
		{plain, stays, false, "resident: postings"},
		{plain, stays, true, "resident: postings, texts"},
		{plain, streamed, false, "streamed: postings"},
		{sliced, stays, false, "resident: planes, decoded postings, byte codes"},
		{sliced, planes, false, "resident: planes, byte codes"},
		{sliced, streamed, false, "streamed: planes"},
		{mixed, stays, false, "resident: postings, rare lists, planes, decoded postings"},
	} {
		r := hostResident(t, c.w.Index, c.limits)
		if c.limits.partBytes > 0 {
			r.stream = &partStream{}
		}
		if c.texts {
			r.withTexts()
		}
		if got := r.description(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	r := hostResident(t, plain.Index, stays)
	r.parts = make([]part, 5)
	if n := r.partsOfBatch(); n != 1 {
		t.Errorf("an index that stays has %d parts", n)
	}
	r.stream = &partStream{}
	if n := r.partsOfBatch(); n != 5 {
		t.Errorf("an index in 5 parts has %d", n)
	}
	r.parts = nil
	if n := r.partsOfBatch(); n != 1 {
		t.Errorf("an index without objects has %d parts", n)
	}
}
