//go:build cuda

package cuda

import (
	"unsafe"

	"github.com/geniemq/geniemq/index"
)

// residentForms say how each attribute lies on the device, where that is not for all of them as postings of all keywords. The
// (query, tile) kernel's spans are resolved by them first (kernels/resolve.cu).
type residentForms struct {
	memory devicePointer
	slots  int // of the resolved spans of a span
}

// Mirrors of the structs of kernels/resolve.cu.

type deviceForm struct {
	words, table devicePointer
	kind, place  uint32
}

type deviceResolve struct {
	queries, spans, forms devicePointer
	resolved, slots       uint32
}

const (
	deviceFormPostings uint32 = iota
	deviceFormPlanes
	deviceFormRare
)

const formBytes = 24

var (
	_ = [1]struct{}{}[unsafe.Sizeof(deviceForm{})-formBytes]
	_ = [1]struct{}{}[unsafe.Sizeof(deviceResolve{})-32]
)

// loadForms loads the table of forms, once the tables that it points to are there.
func (r *resident) loadForms(u *uploader, layout *residentLayout) (err error) {
	forms := make([]deviceForm, layout.attributes)
	slots := 0
	for a := range forms {
		switch {
		case layout.rare[a] >= 0:
			at := layout.rareAt(r.index, a)
			forms[a] = deviceForm{r.rare + devicePointer(at.words*unitBytes), r.rare + devicePointer(at.starts*unitBytes), deviceFormRare, uint32(at.ids) << 1}
			slots = 2
		case layout.sliced.has(a) && !layout.postings:
			at := &layout.sliced.attributes[a]
			forms[a] = deviceForm{table: at.codeOf, kind: deviceFormPlanes, place: at.plane<<8 | at.planes}
			slots = max(slots, 1)
		}
	}
	if slots == 0 {
		return nil
	}
	f := &residentForms{slots: slots}
	r.forms = f // freed with the resident
	if f.memory, err = allocDevice(units(formBytes*len(forms)) * unitBytes); err != nil {
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
	launch(&l.steps, l.resident.kernels.resolve, l.tiled, 1, &deviceResolve{
		queries: l.arena, spans: l.arena + devicePointer(at.spans), forms: f.memory,
		resolved: uint32((at.resolved - at.spans) / spanBytes), slots: uint32(f.slots),
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
