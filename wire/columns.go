package wire

// HitsForm is how the hits of an answer are written. The values are the same in every form, but for keys, which columns have only if they
// are asked for. docs/protocol.md has the arrays and their elements.
type HitsForm uint8

const (
	HitsList         HitsForm = iota // a list of objects, one per hit: what nobody has to ask for
	HitsColumns                      // an object of arrays, one per thing that hits have
	HitsKeyedColumns                 // the same, with keys
)

// columnsForm is the only form that has a name.
const columnsForm = "columns"

// hitsForm decodes "form".
func (d *queryDecoder) hitsForm() (HitsForm, *Error) {
	name, err := d.str()
	if err == nil && name != columnsForm {
		err = badRequest("%q is no form of hits: %q is, and without form they are a list of objects", clip(name), columnsForm)
	}
	return HitsColumns, err
}

// withKeys adds to the form of a query what it says of keys.
func (q *Query) withKeys(keys Choice) *Error {
	switch {
	case keys == Unsaid:
	case q.HitsForm == HitsList:
		return badRequest("keys goes with form: hits that are a list of objects have their keys")
	case keys == Yes:
		q.HitsForm = HitsKeyedColumns
	}
	return nil
}

// hitsForm writes what a query says of the form.
func (e *encoder) hitsForm(at int, f HitsForm) {
	if f != HitsList {
		e.text(at, "form", columnsForm)
		e.flag(at, "keys", f == HitsKeyedColumns)
	}
}
