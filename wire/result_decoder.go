package wire

import (
	"math"

	"github.com/geniemq/geniemq/wire/fields"
)

type resultDecoder struct {
	r    reader
	hits int // of the last result: the next one likely has as many
}

// fields calls read for each member of the next value, which must be an object. read returns false for a member that
// it does not know and has not touched.
func (d *resultDecoder) fields(read func(name string) (bool, *Error)) *Error {
	if err := open(d.r, objectKind, "an object"); err != nil {
		return err
	}
	for d.r.more() {
		name, err := d.r.str()
		if err != nil {
			return err
		}
		known, err := read(name)
		if err != nil {
			return err.in("%s", clip(name))
		}
		if !known {
			skip(d.r)
		}
	}
	return closed(d.r)
}

// elements appends the elements of the next value, which must be an array, to a list that is not nil.
func elements[T any](d *resultDecoder, list []T, read func(*T) *Error) ([]T, *Error) {
	if err := open(d.r, arrayKind, "an array"); err != nil {
		return nil, err
	}
	for d.r.more() {
		var none T
		list = append(list, none)
		if err := read(&list[len(list)-1]); err != nil {
			return nil, err.in("[%d]", len(list)-1)
		}
	}
	return list, closed(d.r)
}

func (d *resultDecoder) strings() ([]string, *Error) {
	return elements(d, []string{}, func(text *string) (err *Error) {
		*text, err = d.r.str()
		return err
	})
}

func (d *resultDecoder) columns() ([]ColumnEstimate, *Error) {
	columns := []ColumnEstimate{}
	err := d.fields(func(column string) (bool, *Error) {
		c := ColumnEstimate{Column: column}
		err := d.fields(func(name string) (known bool, err *Error) {
			f := fields.Estimate.Find(name)
			switch name {
			case "similarity":
				c.Similarity, err = d.within(f)
			case "bound":
				c.Bound, err = d.within(f)
			default:
				return false, nil
			}
			return true, err
		})
		columns = append(columns, c)
		return true, err
	})
	return columns, err
}

// within reads a number of a size that can be kept, and written in JSON again. The largest float32 has shorter digits, which are a little more.
func (d *resultDecoder) within(f *fields.Field) (float64, *Error) {
	v, err := d.r.number()
	if err == nil && !(v >= f.Least && v <= f.Most) && !(f.Most == math.MaxFloat32 && math.Abs(v) < fields.BeyondFloat32) { // NaN too
		err = badRequest("%v is out of range", v)
	}
	return v, err
}

// detail makes the detail of a hit.
func (h *Hit) detail() *HitDetail {
	if h.Detail == nil {
		h.Detail = new(HitDetail)
	}
	return h.Detail
}
