// Package toy is a kind of data from elsewhere: colours, a type of column and a family of structures that no other package
// has heard of. It shows what a new kind takes, and that none of geniemq's own files has to be edited for it: colours are built from a file,
// served behind a queue, and asked for in JSON and MessagePack.
package toy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/open"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/gpuexec/topk"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/index/verify"
	"github.com/geniemq/geniemq/wire/value"
)

// color is red, green and blue.
type color [3]uint8

// apart is the square of the distance of two colours.
func (c color) apart(d color) (sum uint32) {
	for i := range c {
		n := int(c[i]) - int(d[i])
		sum += uint32(n * n)
	}
	return sum
}

const farthest = 3 * 255 * 255

func parse(text string) (c color, err error) {
	hex, found := strings.CutPrefix(text, "#")
	n, err := strconv.ParseUint(hex, 16, 24)
	if !found || len(hex) != 6 || err != nil {
		return c, fmt.Errorf("%q is no colour: write #rrggbb", text)
	}
	return color{uint8(n >> 16), uint8(n >> 8), uint8(n)}, nil
}

// columnType is the type of columns of colours.
type columnType struct{}

func (columnType) Name() string                                     { return "color" }
func (columnType) In(kind schema.Kind) bool                         { return kind == schema.Rows }
func (columnType) Check(*schema.Schema, *schema.Column) []error     { return nil }
func (columnType) Attributes(*schema.Column) []schema.AttributeSpec { return nil }

func (columnType) Objects(*schema.Schema, *schema.Column) (column.ObjectEncoder, error) {
	return objects{}, nil
}

func (columnType) Queries(*schema.Schema, *schema.Column, int, column.Vocabulary) (column.QueryEncoder, error) {
	return queries{}, nil
}

type objects struct{}

func (objects) Encode(dst *schema.Values, cell *schema.Cell) error {
	if len(cell.Values) != 1 {
		return errors.New("an object has one colour")
	}
	c, err := parse(cell.Values[0])
	dst.Stored = append(dst.Stored, c[:]...)
	return err
}

// queries makes queries of conditions: {"near":[255,0,0]}.
type queries struct{}

func (queries) Items(*column.Draft, *column.Condition) error {
	panic("a Planner is not asked for items")
}

func (queries) Query(c *column.Condition) (string, any, error) {
	tree, ok := c.Other.Member("near"), !c.Other.IsZero()
	var near color
	n := 0
	if ok && tree.Kind() == value.Array && tree.Len() == len(near) {
		for part := range tree.Elements() {
			if v, exact := part.Int(); exact && v >= 0 && v <= 255 {
				near[n] = uint8(v)
				n++
			}
		}
	}
	if n != len(near) {
		return "", nil, column.Refuse(`column %q: write {"near":[red, green, blue]}, each 0 to 255`, c.Attr)
	}
	return familyName, &query{near: near}, nil
}

const familyName = "colors"

// query asks for the colours near to one.
type query struct{ near color }

// family searches colours by looking at all.
type family struct{}

const section store.SectionKind = 50_000

func (family) Name() string { return familyName }
func (family) Sections() []store.SectionForm {
	return []store.SectionForm{{Kind: section, Name: familyName, PerTile: true}}
}

func (family) Build(s *schema.Schema, _ int) (store.Builder, error) {
	if at := slices.IndexFunc(s.Columns, func(c schema.Column) bool { return c.Type == "color" }); at >= 0 {
		return &builder{column: at}, nil
	}
	return nil, nil
}

type builder struct {
	column int
	colors []byte
}

func (b *builder) Add(values []schema.Values) error {
	b.colors = append(b.colors, values[b.column].Stored...)
	return nil
}

func (b *builder) Finish(context.Context) (store.Draft, error) {
	d := store.Draft{Sections: store.TilesOf(uint32(len(b.colors) / 3)), Work: int64(len(b.colors))}
	d.Write = func(_ context.Context, w *store.Writer, _ func(int64)) error {
		tile := 0
		for part := range slices.Chunk(b.colors, 3*store.TileObjects) {
			w.Add(section, -1, tile, part)
			tile++
		}
		return w.Err()
	}
	return d, nil
}

func (family) Open(f *store.File, _ *schema.Schema) (store.Structure, error) {
	c := &colors{make([][]byte, f.Tiles())}
	for tile := range c.tiles {
		if err := f.Need(section, -1, tile); err != nil {
			return nil, err
		}
	}
	err := f.Each(func(s *store.Section) bool { return s.Kind == section }, func(s *store.Section, data []byte) error {
		if len(data) != 3*f.TileLen(s.Tile) {
			return store.Corrupt("%d bytes of %d colours", len(data), f.TileLen(s.Tile))
		}
		c.tiles[s.Tile] = data
		return nil
	})
	return c, err
}

// colors are those of an index, by tile.
type colors struct{ tiles [][]byte }

func (c *colors) Verify(context.Context) error { return nil } // all bytes are colours

func (c *colors) at(id uint32) color {
	at := id % store.TileObjects * 3
	return color(c.tiles[id/store.TileObjects][at : at+3])
}

// matcher counts how near colours are: the count of an object is greater by one than what it lacks of the greatest distance, squared.
type matcher struct {
	*colors
	lo, hi  uint32
	release func()
}

func loadColors(_ context.Context, h *run.Host, own run.Extent, _ []run.Extent) (run.Matcher, error) {
	c := own.Source.Structure(familyName).(*colors)
	lo, n := own.Tiles.Base(), own.Tiles.Objects(own.Source.Objects())
	release, err := h.Budget.Reserve(gpuexec.Holding{Owner: run.OwnerOf(own.Source), Form: familyName, Bytes: 3 * int64(n), Needed: true})
	if err != nil {
		return nil, err
	}
	return &matcher{c, lo, lo + n, release}, nil
}

func (m *matcher) Check(p *gpuexec.Plan) (uint32, error) {
	if _, ok := p.Query.(*query); !ok {
		return 0, errors.New("colours are asked for by a colour")
	}
	return farthest + 1, nil
}

func (m *matcher) Match(_ context.Context, jobs []*run.Job, _ *gpuexec.Trace) error {
	for _, job := range jobs {
		near := job.Query.(*query).near
		var g topk.Gate
		g.Reset(job.K, job.MinCount)
		for id := m.lo; id < m.hi; id++ {
			g.Offer(topk.NewEntry(1+farthest-near.apart(m.at(id)), id))
		}
		job.Entries = g.Finish(job.Entries[:0])
		job.Units += uint64(m.hi - m.lo)
	}
	return nil
}

func (m *matcher) Scan(context.Context, []*run.ScanJob, *gpuexec.Trace) error { return nil }
func (m *matcher) Cost(*gpuexec.Plan) int64                                   { return 1 << 10 }
func (m *matcher) Residence() run.Residence {
	return run.Residence{IndexBytes: 3 * int64(m.hi-m.lo), Parts: 1, Form: familyName}
}

func (m *matcher) Close() error {
	m.release()
	return nil
}

// Rescore implements translate.Rescored: hits show the distance and not its square.
func (q *query) Rescore(k int) verify.Rescore { return &byDistance{k} }

type byDistance struct{ k int }

func (r *byDistance) Wanted() int                         { return r.k }
func (r *byDistance) Bytes() int64                        { return 0 }
func (r *byDistance) Work(int) time.Duration              { return time.Microsecond }
func (r *byDistance) New(verify.Rescorer) verify.Rescorer { return &distances{byDistance: r} }

// distances have the order of the counts, so candidates are hits, and certain ones.
type distances struct {
	*byDistance
	hits []verify.Scored
}

func (d *distances) Offer(c []verify.Candidate, _ []verify.Known, _ verify.Pace, _ int) error {
	for _, c := range c[len(d.hits):] {
		d.hits = append(d.hits, verify.Scored{ID: c.ID, Count: c.Count, Score: math.Sqrt(float64(1 + farthest - c.Count))})
	}
	return nil
}

func (d *distances) Offered() int          { return len(d.hits) }
func (d *distances) Certified(uint32) bool { return true }
func (d *distances) Certifiable() bool     { return false }
func (d *distances) Part(verify.Rescorer) verify.Rescorer {
	return &distances{byDistance: d.byDistance}
}
func (d *distances) Join(verify.Rescorer) {}
func (d *distances) Add([]verify.Scored)  {}
func (d *distances) ScanWork() int64      { return 0 }
func (d *distances) Scan(_, hi, _ uint32, _ filter.Set, _ verify.Pace, _ int) (uint32, error) {
	return hi, nil
}

func (d *distances) Hits(dst []verify.Scored) []verify.Scored {
	return append(dst, d.hits[:min(d.k, len(d.hits))]...)
}

// nearest is the answer by definition: positions and distances.
func nearest(all []color, to color, k int) (hits []verify.Scored) {
	for i, c := range all {
		hits = append(hits, verify.Scored{ID: uint32(i), Score: math.Sqrt(float64(c.apart(to)))})
	}
	slices.SortStableFunc(hits, func(a, b verify.Scored) int { return cmp.Compare(a.Score, b.Score) })
	return hits[:min(k, len(hits))]
}

// kinds are those of geniemq, and colours.
func kinds() index.Kinds {
	k := index.Builtin()
	k.Columns = append(k.Columns, columnType{})
	k.Families = append(k.Families, family{})
	return k
}

// openEngine opens an engine, of which the CPU engine searches colours too.
func openEngine(kind string, opts gpuexec.Options) (gpuexec.Engine, error) {
	return open.Families{CPU: run.Loaders{familyName: {Load: loadColors}}}.Engine(kind, opts)
}
