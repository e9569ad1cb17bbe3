package index_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/refusal"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/wire/value"
)

// What follows is a kind as one from elsewhere would be: points of a plane, which a family of its own searches, and which are also found by the
// quadrant that they lie in, in the lists.

const (
	sectionPoints   store.SectionKind = 40_000 // two float64 of each object in a tile
	sectionMidpoint store.SectionKind = 40_001 // optional: nothing needs it
)

// pointColumn is the type of columns of points, written x:y.
type pointColumn struct{}

func (pointColumn) Name() string             { return "point" }
func (pointColumn) In(kind schema.Kind) bool { return kind == schema.Rows }

func (pointColumn) Check(_ *schema.Schema, c *schema.Column) []error {
	if c.Split != "" {
		return []error{errors.New("split: an object is at one point")}
	}
	return nil
}

func (pointColumn) Attributes(c *schema.Column) []schema.AttributeSpec {
	return []schema.AttributeSpec{
		{Name: c.Name + " right", Type: schema.Ordinal, Keywords: 2}, {Name: c.Name + " above", Type: schema.Ordinal, Keywords: 2},
	}
}

func (pointColumn) Objects(*schema.Schema, *schema.Column) (column.ObjectEncoder, error) {
	return pointObjects{}, nil
}

type pointObjects struct{}

func (pointObjects) Encode(dst *schema.Values, cell *schema.Cell) error {
	for _, text := range cell.Values {
		x, y, ok := point(text)
		if !ok {
			return fmt.Errorf("%q is no point: write x:y", text)
		}
		dst.Ordinals = append(dst.Ordinals, positive(x), positive(y))
		dst.Stored = binary.LittleEndian.AppendUint64(dst.Stored, math.Float64bits(x))
		dst.Stored = binary.LittleEndian.AppendUint64(dst.Stored, math.Float64bits(y))
	}
	return nil
}

func point(text string) (x, y float64, ok bool) {
	left, right, _ := strings.Cut(text, ":")
	x, errX := strconv.ParseFloat(left, 64)
	y, errY := strconv.ParseFloat(right, 64)
	return x, y, errX == nil && errY == nil
}

func positive(v float64) uint32 {
	if v > 0 {
		return 1
	}
	return 0
}

func (pointColumn) Queries(_ *schema.Schema, c *schema.Column, first int, v column.Vocabulary) (column.QueryEncoder, error) {
	if v.Attribute(first).Name != c.Name+" right" {
		return nil, errors.New("these are other attributes")
	}
	return pointQueries{first}, nil
}

// pointQueries makes a query of the family of a point, and items of the lists of nothing.
type pointQueries struct{ first int }

func (pointQueries) Items(*column.Draft, *column.Condition) error { panic("it is a Planner") }

func (pointQueries) Query(c *column.Condition) (string, any, error) {
	var near []float64
	for part := range c.Other.Elements() {
		if v, ok := part.Float(); ok {
			near = append(near, v)
		}
	}
	if len(near) != 2 {
		return "", nil, column.Refuse("attribute %q: write a point, [x, y]", c.Attr)
	}
	return "points", [2]float64(near), nil
}

// pointFamily searches points by looking at all.
type pointFamily struct{}

func (pointFamily) Name() string { return "points" }

func (pointFamily) Sections() []store.SectionForm {
	return []store.SectionForm{{Kind: sectionPoints, Name: "points", PerTile: true}, {Kind: sectionMidpoint, Name: "midpoint"}}
}

func (pointFamily) Build(s *schema.Schema, workers int) (store.Builder, error) {
	if workers < 1 {
		return nil, fmt.Errorf("told to build with %d goroutines", workers)
	}
	at := slices.IndexFunc(s.Columns, func(c schema.Column) bool { return c.Type == "point" })
	if at < 0 {
		return nil, nil
	}
	return &pointBuilder{column: at}, nil
}

type pointBuilder struct {
	column int
	points []byte
}

func (b *pointBuilder) Add(values []schema.Values) error {
	if len(values[b.column].Stored) != 16 {
		return errors.New("an object without a point")
	}
	b.points = append(b.points, values[b.column].Stored...)
	return nil
}

func (b *pointBuilder) Finish(context.Context) (store.Draft, error) {
	d := store.Draft{Sections: store.TilesOf(uint32(len(b.points)/16)) + 1, Work: int64(len(b.points))}
	d.Write = func(_ context.Context, w *store.Writer, progress func(int64)) error {
		tile := 0
		for part := range slices.Chunk(b.points, 16*store.TileObjects) {
			w.Add(sectionPoints, -1, tile, part)
			tile++
			progress(int64(tile))
		}
		w.BeginOptional(sectionMidpoint, -1, -1)
		w.Append([]byte("somewhere"))
		w.End()
		return w.Err()
	}
	return d, nil
}

func (pointFamily) Open(f *store.File, _ *schema.Schema) (store.Structure, error) {
	p := &points{make([][]float64, f.Tiles())}
	for tile := range p.tiles {
		if err := f.Need(sectionPoints, -1, tile); err != nil {
			return nil, err
		}
	}
	if f.Has(sectionMidpoint, -1, -1) {
		if _, err := f.Read(sectionMidpoint); err != nil {
			return nil, err
		}
	}
	err := f.Each(func(s *store.Section) bool { return s.Kind == sectionPoints }, func(s *store.Section, data []byte) error {
		if len(data) != 16*f.TileLen(s.Tile) {
			return store.Corrupt("%d bytes of %d points", len(data), f.TileLen(s.Tile))
		}
		p.tiles[s.Tile] = store.View[float64](data)
		return nil
	})
	return p, err
}

type points struct{ tiles [][]float64 }

func (p *points) Verify(context.Context) error {
	for _, tile := range p.tiles {
		for _, v := range tile {
			if math.IsNaN(v) {
				return store.Corrupt("a point is nowhere")
			}
		}
	}
	return nil
}

// nearest returns the object nearest to a point, the first of several.
func (p *points) nearest(to [2]float64) (id uint32) {
	best, n := math.Inf(1), uint32(0)
	for _, tile := range p.tiles {
		for ; len(tile) > 0; tile = tile[2:] {
			if d := math.Hypot(tile[0]-to[0], tile[1]-to[1]); d < best {
				best, id = d, n
			}
			n++
		}
	}
	return id
}

func withPoints() index.Kinds {
	kinds := index.Builtin()
	kinds.Columns = append(kinds.Columns, pointColumn{})
	kinds.Families = append(kinds.Families, pointFamily{})
	return kinds
}

const pointSchema = "name: places\nkind: rows\ncolumns: [{name: at, type: point}, {name: sort, type: category}]\n"

// pointIndex builds an index of points, in two tiles.
func pointIndex(t *testing.T, kinds index.Kinds) []byte {
	t.Helper()
	s, err := kinds.ParseSchema([]byte(pointSchema))
	must(t, err)
	s.Columns[0].Invalid = schema.InvalidError
	objects, err := kinds.NewObjects(s, index.BuilderOptions{})
	must(t, err)
	add := func(at, sort string) error {
		return onebyone.Of(objects).Add(&schema.Record{Line: 7, Cells: []schema.Cell{{Values: []string{at}}, {Values: []string{sort}}}})
	}
	for i := range store.TileObjects + 100 {
		if refused := (*index.RecordError)(nil); i == 50 && (!errors.As(add("here", "inn"), &refused) || refused.Column != "at" || refused.Line != 7) {
			t.Fatalf("a point that is none: %v", refused)
		}
		must(t, add(fmt.Sprintf("%d:%d", i%311-155, i/311-100), []string{"inn", "shop"}[i%2]))
	}
	data, err := objects.Bytes(t.Context())
	must(t, err)
	return data
}

// TestKindFromElsewhere: a type of column and a family of structures that this package has never heard of are built, opened, asked and verified
// beside its own.
func TestKindFromElsewhere(t *testing.T) {
	raced.Skip(t, raced.Same)
	kinds := withPoints()
	x, err := kinds.OpenBytes(pointIndex(t, kinds))
	must(t, err)
	must(t, x.Validate())
	queries, err := index.NewQueries(x)
	must(t, err)

	var b value.Builder
	place, err := b.Array().Float(-55.2).Float(-99.9).End().Tree()
	must(t, err)
	match := new(postings.MatchQuery)
	plan := func(conditions ...column.Condition) (index.Plan, error) {
		return queries.Plan(match, &index.Request{Conditions: conditions})
	}
	p, err := plan(column.Condition{Attr: "at", Other: place})
	if err != nil || p.Family != "points" {
		t.Fatalf("family %q, %v", p.Family, err)
	}
	if id := x.Structure(p.Family).(*points).nearest(p.Query.([2]float64)); id != 100 {
		t.Errorf("object %d is nearest, want 100", id)
	}
	if x.Structure(postings.FamilyName) != x.Lists || x.Structure("trees") != nil {
		t.Error("Structure returns another structure")
	}
	two := []column.Condition{{Attr: "at", Other: place}, {Attr: "sort", Value: &column.Value{Kind: column.StringKind, String: "inn"}}}
	if _, err := plan(two...); err == nil || !strings.Contains(err.Error(), "only one") {
		t.Errorf("a point among other conditions: %v", err)
	}
	var refused *refusal.Error
	if _, err := plan(column.Condition{Attr: "at"}); !errors.As(err, &refused) {
		t.Errorf("no point: %v", err)
	}
	unfit := errors.New("this is why")
	if err := queries.Conditions(match, []column.Condition{{Attr: "sort", Other: place, Refusal: unfit}}); err != unfit {
		t.Errorf("a point in a column of categories: %v", err)
	}
	p, err = plan(two[1:]...)
	if err != nil || p.Family != postings.FamilyName || p.Query != match || len(match.Items) != 1 || match.Items[0].Attr != 2 { // after the two of the point
		t.Errorf("family %s, items %+v, %v", p.Family, match.Items, err)
	}
	// The quadrants are in the lists: 155 of 311 points are right of 0, all objects have one value in each attribute.
	right := x.Attributes()[0]
	if right.Postings != uint64(x.Objects()) || right.MaxPerObject != 1 || right.Keywords != 2 {
		t.Errorf("attribute %+v", right)
	}
}

// TestUnknownFamily: who does not know a family refuses its files by the flags of their sections, and says so.
func TestUnknownFamily(t *testing.T) {
	raced.Skip(t, raced.Same)
	kinds := withPoints()
	data := pointIndex(t, kinds)
	var unsupported *store.UnsupportedError
	if _, err := index.OpenBytes(data); !errors.As(err, &unsupported) || !strings.Contains(err.Error(), "sections of kind 40000") {
		t.Errorf("a file of a family that is not there: %v", err)
	}
	columns := index.Builtin()
	columns.Columns = append(columns.Columns, pointColumn{})
	entries := func(change func(kind store.SectionKind, entry []byte)) []byte {
		changed := slices.Clone(data)
		for e := changed[headBytes:]; binary.LittleEndian.Uint64(e[16:]) != 0; e = e[tableEntry:] {
			change(store.SectionKind(binary.LittleEndian.Uint16(e)), e)
		}
		reseal(changed)
		return changed
	}
	optional := entries(func(kind store.SectionKind, e []byte) {
		if kind == sectionPoints {
			binary.LittleEndian.PutUint16(e[2:], 0)
		}
	})
	x, err := columns.OpenBytes(optional)
	must(t, err)
	if x.Structure("points") != nil {
		t.Error("there is a structure of an unknown family")
	}
	if _, err := index.OpenBytes(optional); !errors.As(err, &unsupported) || !strings.Contains(err.Error(), `type point: rows have`) {
		t.Errorf("a type of column that is not there: %v", err)
	}
	// Of a family that is there every section is checked: one is lost here, and one of the optional ones damaged.
	lost := entries(func(kind store.SectionKind, e []byte) {
		if kind == sectionPoints && binary.LittleEndian.Uint32(e[8:]) == 1 {
			binary.LittleEndian.PutUint16(e, 50_000)
			binary.LittleEndian.PutUint16(e[2:], 0)
		}
	})
	var damaged *store.CorruptError
	if _, err := kinds.OpenBytes(lost); !errors.As(err, &damaged) || !strings.Contains(err.Error(), "the points section of attribute -1, tile 1 is missing") {
		t.Errorf("a section that is lost: %v", err)
	}
	for _, k := range []index.Kinds{kinds, columns} {
		broken := slices.Clone(optional)
		for _, s := range x.Sections() {
			if s.Kind == sectionMidpoint {
				broken[s.Offset] ^= 1
			}
		}
		if _, err := k.OpenBytes(broken); !errors.As(err, &damaged) || !strings.Contains(err.Error(), "checksum") {
			t.Errorf("a damaged section that nobody needs: %v", err)
		}
	}
}

// TestKindsThatCollide: kinds that cannot be told apart are refused before a file is.
func TestKindsThatCollide(t *testing.T) {
	for want, extend := range map[string]func(*index.Kinds){
		"two families are named points": func(k *index.Kinds) { k.Families = append(k.Families, pointFamily{}) },
		"sections of kind 40000 are of points and of others": func(k *index.Kinds) {
			k.Families = append(k.Families, renamed{pointFamily{}})
		},
		"two types of columns of rows are named point": func(k *index.Kinds) { k.Columns = append(k.Columns, pointColumn{}) },
	} {
		kinds := withPoints()
		extend(&kinds)
		if _, err := kinds.OpenBytes(nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := withPoints().ParseSchema([]byte(pointSchema + "  \nkey: k\n")); err != nil {
		t.Error(err)
	}
	_, err := withPoints().ParseSchema([]byte(strings.Replace(pointSchema, "type: point", "type: point, split: ' '", 1)))
	if err == nil || !strings.Contains(err.Error(), `column "at": split: an object is at one point`) {
		t.Errorf("a fault that the type tells: %v", err)
	}
	_, err = withPoints().ParseSchema([]byte(strings.Replace(pointSchema, "point", "line", 1)))
	if err == nil || !strings.Contains(err.Error(), `type "line" is unknown: use number, category, text, string, set, bool, date, tree, graph, vector, point, payload or skip`) {
		t.Errorf("a type that is not there: %v", err)
	}
}

// renamed is a family under another name.
type renamed struct{ store.Family }

func (renamed) Name() string { return "others" }
