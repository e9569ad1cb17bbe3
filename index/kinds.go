package index

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/column/minhash"
	"github.com/geniemq/geniemq/index/column/point"
	"github.com/geniemq/geniemq/index/column/structure"
	"github.com/geniemq/geniemq/index/column/vector"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/forward"
	"github.com/geniemq/geniemq/index/objects"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/index/verify"
)

// Kinds are what an index can be made of: types of columns, and families of structures by which objects are searched. It is a value that
// callers pass; a new kind is a type or a family that is appended to what Builtin returns:
//
//	kinds := index.Builtin()
//	kinds.Columns = append(kinds.Columns, shape.Column{})
//	kinds.Families = append(kinds.Families, shape.Family{})
type Kinds struct {
	Columns  []column.Type
	Families []store.Family
}

// Builtin returns the kinds that this package knows of itself. The value is the caller's.
func Builtin() Kinds {
	columns := column.Builtin()
	for i, t := range columns {
		if t.Name() == string(schema.SetColumn) {
			columns[i] = minhash.Sets{Exact: t}
		}
	}
	others := append(structure.Types(), vector.Column{}, point.Column{})
	columns = slices.Insert(columns, len(columns)-2, others...) // before payload and skip
	return Kinds{Columns: columns, Families: []store.Family{postings.Family{}, forward.Family{}, distance.Family{}}}
}

// Column returns the type of a column in an index of a kind, nil where it takes none of that name.
func (k Kinds) Column(kind schema.Kind, name schema.ColumnType) column.Type {
	for _, t := range k.Columns {
		if t.Name() == string(name) && t.In(kind) {
			return t
		}
	}
	return nil
}

// CheckColumn is a schema.ColumnCheck.
func (k Kinds) CheckColumn(s *schema.Schema, c *schema.Column) []error {
	if t := k.Column(s.Kind, c.Type); t != nil {
		faults := t.Check(s, c)
		if len(faults) == 0 {
			faults = rescoreFaults(s, c, t)
		}
		return faults
	}
	if c.Type == "" {
		return []error{fmt.Errorf("type is missing: %s", k.names())}
	}
	for _, t := range k.Columns {
		if t.Name() == string(c.Type) {
			var faults []error
			if s.Kind.Known() { // else that is the fault
				faults = append(faults, wrongKind(s.Kind, c.Type))
			}
			return append(faults, t.Check(s, c)...)
		}
	}
	return []error{fmt.Errorf("type %q is unknown: use %s", c.Type, k.names())}
}

// rescoreFaults says why hits cannot be in the order that a schema wants, where that is of a column.
func rescoreFaults(s *schema.Schema, c *schema.Column, t column.Type) []error {
	r := s.Rescore
	if r == nil || r.Column != c.Name || r.By == "" || s.Kind == schema.Sequences {
		return nil
	}
	m := verify.FindMeasure(r.By)
	if m == nil {
		return []error{fmt.Errorf("rescore: by %q is no measure: there are %s", r.By, measureNames())}
	}
	var kept schema.KeptSpec
	if keeper, ok := t.(column.Keeper); ok {
		kept = keeper.Keeps(s, c)
	}
	if kept.Form != m.Form {
		return []error{fmt.Errorf("rescore: %s compares %v, and of this column the index keeps %v", m.Name, m.Form, kept.Form)}
	}
	return nil
}

// wrongKind says why an index of a kind has no columns of a type.
func wrongKind(kind schema.Kind, t schema.ColumnType) error {
	switch kind {
	case schema.Sequences:
		return fmt.Errorf("type %s: sequences have one text column, other columns are payload or skip", t)
	case schema.Rows:
		return fmt.Errorf("type %s: rows have number, category, payload and skip columns (kind documents indexes words; without kind there are columns of any type)", t)
	}
	return fmt.Errorf("type %s: %s have no such columns (without kind there are columns of any type)", t, kind)
}

// names lists the types of columns.
func (k Kinds) names() string {
	var names []string
	seen := make(map[string]bool)
	for _, t := range k.Columns {
		if name := t.Name(); !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Attributes returns the attributes of a schema's columns, in the order of the columns.
func (k Kinds) Attributes(s *schema.Schema) []schema.AttributeSpec {
	var specs []schema.AttributeSpec
	for i := range s.Columns {
		c := &s.Columns[i]
		if t := k.Column(s.Kind, c.Type); t != nil {
			specs = append(specs, t.Attributes(c)...)
		}
	}
	return specs
}

// Kept returns what is kept of a schema's columns by object, by their positions.
func (k Kinds) Kept(s *schema.Schema) []schema.KeptSpec {
	specs := make([]schema.KeptSpec, len(s.Columns))
	for i := range s.Columns {
		c := &s.Columns[i]
		if keeper, ok := k.Column(s.Kind, c.Type).(column.Keeper); ok {
			specs[i] = keeper.Keeps(s, c)
		}
	}
	return specs
}

// ParseSchema reads a schema from YAML, fills in the defaults and checks it. It reports every fault at once.
func (k Kinds) ParseSchema(data []byte) (*schema.Schema, error) {
	return schema.Parse(data, k.CheckColumn)
}

// LoadSchema reads and checks a schema file.
func (k Kinds) LoadSchema(path string) (*schema.Schema, error) {
	return schema.Load(path, k.CheckColumn)
}

// forms are the kinds of sections that can be read.
func (k Kinds) forms() ([]store.SectionForm, error) {
	if err := k.check(); err != nil {
		return nil, err
	}
	all := append([]store.SectionForm{{Kind: store.SectionSchema, Name: "schema"}}, objects.Sections()...)
	for _, family := range k.Families {
		all = append(all, family.Sections()...)
	}
	return all, nil
}

// check reports kinds that cannot be told apart.
func (k Kinds) check() error {
	var faults []error
	families, sections := make(map[string]bool), map[store.SectionKind]string{store.SectionSchema: "the schema"}
	for _, form := range objects.Sections() {
		sections[form.Kind] = "objects"
	}
	for _, family := range k.Families {
		if families[family.Name()] {
			faults = append(faults, fmt.Errorf("two families are named %s", family.Name()))
		}
		families[family.Name()] = true
		for _, form := range family.Sections() {
			if other, taken := sections[form.Kind]; taken {
				faults = append(faults, fmt.Errorf("sections of kind %d are of %s and of %s", form.Kind, other, family.Name()))
			}
			sections[form.Kind] = family.Name()
		}
	}
	for _, kind := range schema.Kinds() {
		names := make(map[string]bool)
		for _, t := range k.Columns {
			if t.In(kind) && names[t.Name()] {
				faults = append(faults, fmt.Errorf("two types of columns of %s are named %s", kind, t.Name()))
			}
			names[t.Name()] = names[t.Name()] || t.In(kind)
		}
	}
	return errors.Join(faults...)
}
