// Package distance is the family of searches by distance: the objects nearest to a vector, a text or a point, and those within a radius.
package distance

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/forward"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/cost"
	"github.com/geniemq/geniemq/index/metric/tree"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// FamilyName is the name of the family.
const FamilyName = "distance"

// Columns are the columns of an index that can be searched by distance.
//
// # One answer, several ways
//
// The distance is the contract, the way to it is not. A column's metric gives every object a value (package metric), and the answer is the
// first objects in the order of (value, id) that pass a filter and lie within a radius. Access paths find the same: a scan compares with every object
// and is always there; others (Path) are built where the schema names them and look at fewer.
//
// # What is stored
//
// Originals are stored once, by package forward: vectors as rows of floats, 16-bit floats or bytes, points as two numbers, strings as they are; the texts
// of sequences are those of the index. So what belongs to the family alone is the sections of access paths, and an index without any has
// none, whoever wrote it.
//
// # Guarantees
//
//   - Immutable and safe for any number of goroutines. Memory is the map's, and dies with it.
//   - Nothing that a file says leads out of memory: forward has checked the originals, and each path checks its section when it is opened.
//   - An object without a value in a column is never a hit of it. Of sequences every object has a text, be it empty.
type Columns struct {
	all    []Column
	byName map[string]int
}

// Strings are the texts of all objects.
type Strings interface {
	Text(id uint32) string
	TextBytes() int64
}

// Column is a column that can be searched by distance.
type Column struct {
	Name    string
	Of      Values
	Metric  metric.Metric
	Dims    int    // of vectors
	Storage string // of vectors
	Objects uint32 // of the index, with a value or without
	ForGPU  bool   // what may miss hits is chosen by the times of a GPU (schema.Column.AutoFor)
	Grams   int    // the length of the n-grams that texts are indexed by, in the attribute of the column's name; 0: they are not

	kept  *forward.Column // where the originals are; nil of sequences
	texts Strings
	paths []opened

	reference *Planner
}

// opened is an access path of a column.
type opened struct {
	name string
	path Opened
}

// New finds the columns of an index: what its schema says of distances, and where the originals are. kept is nil where nothing is
// kept by column, and sequences are the texts of sequences. Sections are those of access paths, nil where there are none.
func New(s *schema.Schema, objects uint32, kept *forward.Forward, sequences Strings, sections *Sections) (*Columns, error) {
	x := &Columns{byName: make(map[string]int)}
	for i := range s.Columns {
		c := &s.Columns[i]
		of, ok := sort(s, c)
		if !ok {
			continue
		}
		column := Column{Name: c.Name, Of: of, Objects: objects, Dims: c.Dims, Storage: c.Storage, ForGPU: c.AutoFor == schema.ForGPU}
		name := c.Metric
		name = cmp.Or(name, metricsOf(of)[0])
		var err error
		if column.Metric, err = ParseMetric(name); err != nil {
			return nil, store.Unsupported("column %q: %v", c.Name, err)
		}
		if s.Kind == schema.Sequences {
			column.texts = sequences
		} else if err := column.find(kept); err != nil {
			if of == Texts && !Nearest(c) {
				continue // nobody asked for it
			}
			return nil, err
		}
		if err := column.open(c, sections.of(len(x.all))); err != nil {
			return nil, err
		}
		if of == Texts {
			if column.Grams = c.NGram; s.Kind == schema.Sequences {
				column.Grams = s.NGram
			}
		}
		x.byName[c.Name] = len(x.all)
		x.all = append(x.all, column)
	}
	for i := range x.all {
		c := &x.all[i]
		c.reference = c.Planner(cost.Reference(), c.Objects, nil)
	}
	return x, nil
}

// sort is what a column's values are, if it can be searched by distance.
func sort(s *schema.Schema, c *schema.Column) (Values, bool) {
	switch mixed := s.Kind.Mixed(); {
	case mixed && c.Type == schema.VectorColumn && Nearest(c):
		return Vectors, true
	case mixed && c.Type == schema.PointColumn:
		return Points, true
	case mixed && c.Type == schema.StringColumn, c.Type == schema.TextColumn && s.Kind == schema.Sequences:
		return Texts, true
	}
	return 0, false
}

// find finds the originals of a column.
func (c *Column) find(kept *forward.Forward) error {
	if kept != nil {
		c.kept = kept.Column(c.Name)
	}
	form := map[Values]schema.KeptForm{Vectors: schema.KeptVectors, Points: schema.KeptNumbers, Texts: schema.KeptTexts}[c.Of]
	switch k := c.kept; {
	case k == nil || k.Form != form:
		return store.Corrupt("the schema has %v of column %q, and the index keeps none", c.Of, c.Name)
	case c.Of == Vectors && (k.Dimensions != c.Dims || k.Bytes != (c.Storage == StorageU8) || k.Halves != (c.Storage == StorageF16)):
		return store.Corrupt("the vectors of column %q are not stored as the schema says", c.Name)
	}
	c.texts = c.kept
	return nil
}

// open opens the access paths of a column.
func (c *Column) open(of *schema.Column, sections map[store.SectionKind][]byte) error {
	paths := Paths()
	objects := c.Objects
	for i := range paths {
		p := &paths[i]
		if !slices.Contains(of.Index, p.Name) {
			continue
		}
		data, ok := sections[p.Section]
		if !ok {
			return store.Corrupt("the %s of column %q is missing", p.Name, c.Name)
		}
		if c.paths == nil {
			if present := c.Present(); present != nil {
				objects = uint32(present.Len())
			}
		}
		parts, err := store.Unframe(data)
		if err != nil {
			return err
		}
		rows, err := c.rows(p, sections, objects)
		if err != nil {
			return err
		}
		path, err := p.Open(of, c.Metric, Kept{parts, rows}, objects)
		if err != nil {
			return fmt.Errorf("%s of column %q: %w", p.Name, c.Name, err)
		}
		c.paths = append(c.paths, opened{p.Name, path})
	}
	return nil
}

// rows are the vectors that a path has in its own order, of so many objects with a value; nil where the file has none.
func (c *Column) rows(p *Path, sections map[store.SectionKind][]byte, objects uint32) ([]byte, error) {
	data, ok := sections[p.Rows]
	if p.Rows == 0 || !ok || c.Of != Vectors {
		return nil, nil
	}
	if want := uint64(objects) * uint64(c.Dims) * uint64(elementBytes(c.Storage)); uint64(len(data)) != want {
		return nil, store.Corrupt("the %s of column %q has rows of %d bytes, where its objects have %d", p.Name, c.Name, len(data), want)
	}
	return data, nil
}

// Len is the number of columns; of nil 0.
func (x *Columns) Len() int {
	if x == nil {
		return 0
	}
	return len(x.all)
}

// At is a column by its position.
func (x *Columns) At(i int) *Column { return &x.all[i] }

// Column is a column by its name, nil where there is none.
func (x *Columns) Column(name string) *Column {
	if x == nil {
		return nil
	}
	if i, ok := x.byName[name]; ok {
		return &x.all[i]
	}
	return nil
}

// Verify implements store.Structure: access paths hold against the originals, which are forward's to verify.
func (x *Columns) Verify(ctx context.Context) error {
	var faults store.Faults
	for i := range x.all {
		if c := &x.all[i]; len(c.paths) > 0 {
			faults.Add(c.verify(ctx))
		}
	}
	return faults.Err()
}

func (c *Column) verify(ctx context.Context) error {
	all, err := c.Space()
	if err != nil {
		return err
	}
	space, _, err := c.Dense(all)
	if err != nil {
		return err
	}
	for _, p := range c.paths {
		if err := p.path.Verify(ctx, space); err != nil && ctx.Err() == nil {
			return store.Corrupt("%s of column %q: %v", p.name, c.Name, err)
		} else if err != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// Methods are the names of the column's ways to search. The first is the scan.
func (c *Column) Methods() []string {
	names := append([]string{Scan}, c.Built()...)
	if c.Grams > 0 {
		names = append(names, Ngram)
	}
	return names
}

// Built are the names of the column's access paths.
func (c *Column) Built() (names []string) {
	for i := range c.paths {
		names = append(names, c.paths[i].name)
	}
	return names
}

// Path is an access path; nil where the column has none of the name.
func (c *Column) Path(name string) Opened {
	if i := slices.IndexFunc(c.paths, func(o opened) bool { return o.name == name }); i >= 0 {
		return c.paths[i].path
	}
	return nil
}

// Tree is the column's tree over its objects with a value; nil where it has none.
func (c *Column) Tree() *tree.Tree {
	if t, ok := c.Path("tree").(openedTree); ok {
		return t.Tree
	}
	return nil
}

// ExpectedHits is how many objects are expected to be within the radius of a query, as was sampled when the column's tree was built; 0: nothing is known, or it has no radius.
func (c *Column) ExpectedHits(q *Query) float64 {
	t := c.Tree()
	if t == nil || math.IsInf(q.Most, 1) {
		return 0
	}
	return t.Expect(metric.Want{Most: q.Most}).Work.Hits
}

// Has says whether an object has a value.
func (c *Column) Has(id uint32) bool {
	switch {
	case id >= c.Objects:
		return false
	case c.kept == nil:
		return true
	case c.Of == Vectors:
		return c.kept.VectorsTile(int(id / store.TileObjects)).Has(id % store.TileObjects)
	case c.Of == Points:
		return len(c.kept.Numbers(id)) == 2
	}
	return c.kept.Text(id) != ""
}

// Present are the objects that have a value, nil where all have one. It looks at every object.
func (c *Column) Present() filter.Set {
	set := make(filter.Set, filter.Words(int(c.Objects)))
	n := uint32(0)
	for id := range c.Objects {
		if c.Has(id) {
			set[id/64] |= 1 << (id % 64)
			n++
		}
	}
	if n == c.Objects {
		return nil
	}
	return set
}

// Dense is the objects of the column that have a value, under its metric: object i of the space is object ids[i] of the index, or where ids is nil, object i. all is the column's Space.
func (c *Column) Dense(all metric.Space) (space metric.Space, ids []uint32, err error) {
	present := c.Present()
	if present == nil {
		return all, nil, nil
	}
	ids = make([]uint32, 0, present.Len())
	for id := range c.Objects {
		if present.Has(id) {
			ids = append(ids, id)
		}
	}
	space, err = permuted(all, ids)
	return space, ids, err
}

// Bytes is about how much memory a scan of the column reads.
func (c *Column) Bytes() int64 {
	switch c.Of {
	case Vectors:
		return int64(c.Objects) * int64(c.Dims) * elementBytes(c.Storage)
	case Points:
		return int64(c.Objects) * unitBytes
	}
	return c.texts.TextBytes()
}

// textBytes is the size of a text in the mean: at most a MiB, whatever a file claims.
func (c *Column) textBytes() float64 {
	return min(1<<20, float64(c.texts.TextBytes())/float64(max(1, c.Objects)))
}

// of are the sections of a column.
func (s *Sections) of(column int) map[store.SectionKind][]byte {
	if s == nil || column >= len(s.byColumn) {
		return nil
	}
	return s.byColumn[column]
}
