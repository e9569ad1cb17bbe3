//go:build cuda

package device

import (
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/index"
)

// residentForms say how each attribute lies on the device, where that is not for all of them as postings of all keywords. The
// (query, tile) kernel's spans are resolved by them first (kernels/resolve.cu).
type residentForms struct {
	memory abi.Pointer
	slots  int // of the resolved spans of a span
}

// loadForms loads the table of forms, once the tables that it points to are there.
func (r *resident) loadForms(u *uploader, layout *residentLayout) (err error) {
	forms := make([]abi.Form, layout.attributes)
	slots := 0
	for a := range forms {
		switch {
		case layout.rare[a] >= 0:
			at := layout.rareAt(r.index, a)
			forms[a] = abi.Form{
				Words: r.rare + abi.Pointer(at.words*abi.UnitBytes), Table: r.rare + abi.Pointer(at.starts*abi.UnitBytes),
				Kind: abi.FormRare, Place: uint32(at.ids) << 1,
			}
			slots = 2
		case layout.sliced.has(a) && !layout.postings:
			at := &layout.sliced.attributes[a]
			forms[a] = abi.Form{Table: at.CodeOf, Kind: abi.FormPlanes, Place: at.Plane<<8 | at.Planes}
			slots = max(slots, 1)
		}
	}
	if slots == 0 {
		return nil
	}
	f := &residentForms{slots: slots}
	r.forms = f // freed with the resident
	if f.memory, err = allocDevice(units(abi.FormBytes*len(forms)) * abi.UnitBytes); err != nil {
		return deviceError("allocating the table of forms", err)
	}
	return u.whole(f.memory, arrayBytes(forms))
}

func (f *residentForms) free() error {
	if f == nil || f.memory == 0 {
		return nil
	}
	p := f.memory
	f.memory = 0
	return deviceError("freeing the table of forms", freeDevice(p))
}

// spanRoom is how many spans have room on the device for so many of a query: they and what they become.
func (r *resident) spanRoom(spans int) int {
	if r.forms == nil {
		return spans
	}
	return spans * (1 + r.forms.slots)
}

// resolve records the resolution of the spans of the (query, tile) kernel.
func (l *lane) resolve(at *pieceLayout) {
	f := l.resident.forms
	if f == nil || l.tiled == 0 {
		return
	}
	l.mark(stagePlan)
	launch(&l.steps, l.resident.kernels.resolve, l.tiled, 1, &abi.Resolve{
		Queries: l.arena, Spans: l.arena + abi.Pointer(at.spans), Forms: f.memory,
		Resolved: uint32((at.resolved - at.spans) / abi.SpanBytes), Slots: uint32(f.slots),
	})
}

// rarePlaces are where the rare keywords of an attribute lie, in units of resident.rare.
type rarePlaces struct{ ids, words, starts, end int64 }

func (l *residentLayout) rareAt(x *index.Index, attribute int) rarePlaces {
	words, starts, ids := x.Rare(attribute).Arrays()
	at := rarePlaces{ids: l.rare[attribute]}
	at.words = at.ids + units(4*len(ids))
	at.starts = at.words + units(8*len(words))
	at.end = at.starts + units(4*len(starts))
	return at
}
