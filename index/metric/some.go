package metric

import (
	"slices"

	"github.com/geniemq/geniemq/index/metric/sums"
)

// ValuesOf writes the values of some objects, by their numbers, in any order, in the memory of an asker of the space, which may be another one. One that is above most may be given as
// math.Inf(1). Objects that lie apart are read before they are compared, so that memory is waited for once for several of them.
func ValuesOf(own, a Asker, objects []uint32, most float64, dst []float64) {
	dst = dst[:len(objects)]
	if p, ok := own.(picker); ok && p.valuesOf(a, objects, most, dst) {
		return
	}
	for i, o := range objects {
		ValuesTo(a, o, o+1, most, dst[i:])
	}
}

// picker is an Asker that compares objects that lie apart with another one of its space.
type picker interface {
	valuesOf(a Asker, objects []uint32, most float64, dst []float64) bool
}

// narrow is how many elements a row has at most that is read before it is compared. A longer one takes longer to copy than to wait for.
const narrow = 64

// valuesOf implements picker.
func (a *vectorAsker[E]) valuesOf(other Asker, objects []uint32, _ float64, dst []float64) bool {
	o, ok := other.(*vectorAsker[E])
	if !ok || o.space != a.space {
		return false
	}
	a.ready()
	a.group.reset()
	a.join(o)
	for s, bytes := a.space, o.bytes != nil; len(objects) > 0; {
		rows, n := []E(nil), 1
		if s.dims > narrow {
			rows, _ = a.stretch(objects[0], objects[0]+1, s.dims)
			a.prepare(rows, objects[0], 1, bytes)
		} else {
			n = min(len(objects), stretch/narrow)
			rows = a.pick(objects[:n], bytes)
		}
		a.measure(n)
		a.compare(rows, n, dst, 0)
		objects, dst = objects[n:], dst[n:]
	}
	a.release()
	return true
}

// pick prepares the rows of some objects, one after the other.
func (a *vectorAsker[E]) pick(objects []uint32, bytes bool) []E {
	s := a.space
	a.picked = a.picked[:0]
	for _, o := range objects {
		a.picked = append(a.picked, s.row(o))
	}
	a.gather(a.picked)
	a.gathered = slices.Grow(a.gathered, sums.BytesBeyond(s.dims))
	if a.widen(a.gathered, bytes); !a.measured && s.norms != nil {
		a.known(a.picked)
	}
	return a.gathered
}

// touched is how many texts are looked at before they are compared.
const touched = 16

// valuesOf implements picker.
func (a *textAsker) valuesOf(other Asker, objects []uint32, most float64, dst []float64) bool {
	o, ok := other.(*textAsker)
	if !ok {
		return false
	}
	bound := edits(most)
	var texts [touched]string
	for len(objects) > 0 {
		n := min(touched, len(objects))
		for i, object := range objects[:n] {
			if texts[i] = o.space.Text(object); len(texts[i]) > 0 {
				a.seen += texts[i][0]
			}
		}
		for i, text := range texts[:n] {
			dst[i] = o.valueTo(text, bound)
		}
		objects, dst = objects[n:], dst[n:]
	}
	return true
}
