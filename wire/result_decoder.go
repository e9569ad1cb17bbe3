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
			to := &c.Similarity
			switch name {
			case "similarity":
			case "bound":
				to = &c.Bound
			default:
				return false, nil
			}
			return true, d.value(fields.Estimate.Find(name), to, nil)
		})
		columns = append(columns, c)
		return true, err
	})
	return columns, err
}

// value reads a field of a simple type to its place, and says that it is there.
func (d *resultDecoder) value(f *fields.Field, to any, has *bool) (err *Error) {
	switch to := to.(type) {
	case *string:
		*to, err = d.r.str()
	case *bool:
		*to, err = d.r.boolean()
	case *int:
		*to, err = integer[int](d.r, f)
	case *uint32:
		*to, err = integer[uint32](d.r, f)
	case *uint64:
		*to, err = integer[uint64](d.r, f)
	case *float64:
		*to, err = d.within(f)
	case *float32:
		var v float64
		v, err = d.within(f)
		*to = float32(v)
	case *[]string:
		*to, err = d.strings()
	}
	if has != nil {
		*has = true
	}
	return err
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
