package distance

import (
	"context"
	"slices"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// Family is the family of searches by distance. What it opens is Sections, of which New makes Columns once everything else of the index is open.
type Family struct{}

// Name implements store.Family.
func (Family) Name() string { return FamilyName }

// Sections implements store.Family: one per access path and column that has it. Columns are numbered in the order of the schema, those alone that
// can be searched by distance.
func (Family) Sections() []store.SectionForm {
	var forms []store.SectionForm
	for _, p := range Paths() {
		forms = append(forms, store.SectionForm{Kind: p.Section, Name: p.Name, PerColumn: true})
		if p.Rows != 0 {
			forms = append(forms, store.SectionForm{Kind: p.Rows, Name: p.Name + " rows", PerColumn: true})
		}
	}
	return forms
}

// What sections hold, of this family, each of one column.
const (
	SectionTree        store.SectionKind = 22
	SectionCells       store.SectionKind = 23
	SectionPermutation store.SectionKind = 24
	SectionCellRows    store.SectionKind = 25
	SectionTreeRows    store.SectionKind = 26
)

// Sections are the bytes of access paths.
type Sections struct {
	byColumn []map[store.SectionKind][]byte
}

// Verify implements store.Structure.
func (*Sections) Verify(context.Context) error { return nil }

// Open implements store.Family.
func (Family) Open(f *store.File, s *schema.Schema) (store.Structure, error) {
	x := new(Sections)
	for i := range s.Columns {
		c := &s.Columns[i]
		if _, ok := sort(s, c); !ok {
			continue
		}
		at := len(x.byColumn)
		x.byColumn = append(x.byColumn, make(map[store.SectionKind][]byte))
		for _, p := range Paths() {
			if !slices.Contains(c.Index, p.Name) {
				continue
			}
			if err := f.Need(p.Section, at, -1); err != nil {
				return nil, err
			}
			x.byColumn[at][p.Section] = nil
			if p.Rows == 0 || !f.Has(p.Rows, at, -1) {
				continue // files of before have none
			}
			if err := f.Need(p.Rows, at, -1); err != nil {
				return nil, err
			}
			x.byColumn[at][p.Rows] = nil
		}
	}
	for _, section := range f.Sections() {
		if section.Attribute < 0 || section.Attribute >= len(x.byColumn) {
			continue // of another family
		}
		own := x.byColumn[section.Attribute]
		if _, ok := own[section.Kind]; ok {
			own[section.Kind] = f.Bytes(&section)
		}
	}
	return x, nil
}
