// Package sets has the data on which searches by distance are measured: real ones, and made ones where nobody gives the real ones away.
package sets

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/nearest"
	"github.com/geniemq/geniemq/index/schema"
)

// Set is a data set under one metric: objects in random order, and others of the same data that are asked for and are no objects.
type Set struct {
	Name    string
	Column  string // of the schema, but for its access paths
	Metric  string
	NGram   int // of texts: the length of the n-grams that they can be indexed by; 0: the default
	Dims    int // of vectors
	Objects []schema.Cell
	Asked   []index.Request
	Radii   []float64 // that are asked, the first of them few objects
	Paths   string    // access paths that pay, or that are measured to tell whether they do

	request func(c *schema.Cell) index.Request
}

// Texts says that the objects are texts.
func (s *Set) Texts() bool { return s.Metric == "edit" }

// Options are what of a data set is wanted. The zero value is all of it, and 256 that are asked for.
type Options struct {
	Folder   string  // of the real data
	Objects  int     // at most; 0: the set's own number
	Share    float64 // of the objects that are there otherwise; 0: all
	Distinct float64 // the share of the objects that are different ones, of which the others are copies; 0: as they are
	Asked    int     // that are asked for, one object in 32 at most; 0: 256
	Seed     uint64
}

// kind is how a data set comes about.
type kind struct {
	name, column, metric string
	ngram, dims          int
	objects              int // at most, but for Options.Objects
	radii                []float64
	paths                string
	read                 func(o *Options, n int) ([]schema.Cell, error) // n: made ones are so many
}

// kinds are all data sets. Made ones follow what the papers say of theirs.
func kinds() []kind {
	const text, vector = "type: string", "type: vector"
	return []kind{
		{name: "cities", column: "type: point", metric: "geo", radii: []float64{10_000, 100_000}, paths: "tree", read: cities},
		{name: "atmosphere", column: vector, metric: "l1", dims: 7, radii: []float64{0.5, 2}, paths: "tree", read: atmosphere},
		{name: "digits", column: vector, metric: "l1", dims: 64, radii: []float64{60}, paths: "tree", read: digits},
		{name: "digits-cosine", column: vector, metric: "cosine", dims: 64, paths: "tree", read: digits},
		{name: "sift", column: vector, metric: "l2", dims: 128, radii: []float64{220}, paths: "tree, cells", read: sift},
		{name: "words", column: text, metric: "edit", objects: 100_000, radii: []float64{1, 2}, paths: "tree, ngram", read: words},
		{name: "letters", column: text, metric: "edit", objects: 86_016, radii: []float64{3}, paths: "tree, permutation", read: letters},
		{name: "dna", column: text, metric: "edit", ngram: 8, radii: []float64{2, 8}, paths: "tree, ngram", read: reads(72)},
		{name: "dna64", column: text, metric: "edit", ngram: 8, radii: []float64{8}, paths: "tree, ngram", read: reads(64)},
		{name: "tloc", column: vector, metric: "l2", dims: 2, objects: 1_000_000, radii: []float64{0.01}, paths: "tree", read: tloc},
		{name: "vector", column: vector, metric: "cosine", dims: 300, objects: 200_000, paths: "cells", read: embeddings},
		{name: "products", column: vector, metric: "ip", dims: 300, objects: 200_000, paths: "scan", read: embeddings},
		{name: "strands", column: text, metric: "edit", ngram: 8, objects: 1_000_000, radii: []float64{8}, paths: "ngram", read: strands},
		{name: "clusters", column: vector, metric: "l2", dims: 32, objects: 4_500_000, paths: "cells", read: around(20_000, 32, 0.1)},
		{name: "overlapping", column: vector, metric: "l2", dims: 32, objects: 4_500_000, paths: "cells", read: around(2000, 32, 0.75)},
		{name: "gaussian", column: vector, metric: "l2", dims: 32, objects: 4_500_000, paths: "cells", read: around(1, 32, 1)},
		{name: "gaussian128", column: vector, metric: "l2", dims: 128, objects: 4_500_000, paths: "scan", read: around(1, 128, 1)},
		{name: "color", column: vector + ", storage: u8", metric: "l1", dims: colorDims, objects: 50_000, radii: []float64{1500}, paths: "cells", read: colors},
	}
}

// Names are those of all data sets.
func Names() (names []string) {
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	return names
}

// Open reads or makes a data set.
func Open(name string, o Options) (*Set, error) {
	all := kinds()
	at := slices.IndexFunc(all, func(k kind) bool { return k.name == name })
	if at < 0 {
		return nil, fmt.Errorf("data set %q is unknown: there are %s", name, strings.Join(Names(), ", "))
	}
	k := &all[at]
	o.Asked = cmp.Or(o.Asked, 256)
	o.Objects = cmp.Or(o.Objects, k.objects)
	cells, err := k.read(&o, o.Objects+o.Asked)
	if err != nil {
		return nil, fmt.Errorf("data set %s: %w", name, err)
	}
	s := &Set{Name: name, Column: k.column, Metric: k.metric, NGram: k.ngram, Dims: k.dims, Radii: k.radii, Paths: k.paths, request: byVector}
	switch {
	case s.Texts():
		s.request = byText
	case k.dims == 0:
		s.request = byPoint
	}
	s.deal(cells, &o)
	return s, nil
}

// deal shuffles objects and holds some out.
func (s *Set) deal(all []schema.Cell, o *Options) {
	rng := rand.New(rand.NewPCG(1, o.Seed+1))
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	asked := min(len(all)/32, o.Asked)
	for i := range all[:asked] {
		s.Asked = append(s.Asked, s.request(&all[i]))
	}
	s.Objects = all[asked:]
	if o.Objects > 0 {
		s.Objects = s.Objects[:min(len(s.Objects), o.Objects)]
	}
	if o.Share > 0 {
		s.Objects = s.Objects[:max(1, int(o.Share*float64(len(s.Objects))))]
	}
	if o.Distinct > 0 {
		distinct := max(1, int(o.Distinct*float64(len(s.Objects))))
		for i := distinct; i < len(s.Objects); i++ {
			s.Objects[i] = s.Objects[rng.IntN(distinct)]
		}
		rng.Shuffle(len(s.Objects), func(i, j int) { s.Objects[i], s.Objects[j] = s.Objects[j], s.Objects[i] })
	}
}

// Members ask for n of the objects themselves.
func (s *Set) Members(n int) (all []index.Request) {
	for i := range s.Objects[:min(n, len(s.Objects))] {
		all = append(all, s.request(&s.Objects[i]))
	}
	return all
}

// Build builds the index of the set, in memory, with access paths as a schema names them. The only column is c. An engine, if there is one, finds nearest vectors.
func (s *Set) Build(ctx context.Context, workers int, paths string, engine metric.Engine) (*index.Index, error) {
	more := ""
	if s.NGram > 0 && strings.Contains(paths, "ngram") {
		more = fmt.Sprintf(", ngram: %d", s.NGram)
	}
	if s.Dims > 0 {
		more = fmt.Sprintf(", dims: %d", s.Dims)
	}
	spec, err := index.Builtin().ParseSchema(fmt.Appendf(nil, "{name: measured, columns: [{name: c, %s, metric: %s%s, %s}]}", s.Column, s.Metric, more, paths))
	if err != nil {
		return nil, err
	}
	objects, err := index.NewObjects(spec, index.BuilderOptions{Workers: workers})
	if err != nil {
		return nil, err
	}
	var failed error
	if engine != nil {
		objects.FindBy(engine, func(note string) { failed = errors.New(note) })
	}
	next := 0
	if err := objects.AddAll(ctx, index.Source{Next: func(rec *schema.Record) error {
		if next == len(s.Objects) {
			return io.EOF
		}
		rec.Cells = append(rec.Cells[:0], s.Objects[next])
		next++
		return nil
	}}); err != nil {
		return nil, err
	}
	file, err := objects.Bytes(ctx)
	if err := cmp.Or(err, failed); err != nil {
		return nil, err
	}
	return index.OpenBytes(file)
}

func byVector(c *schema.Cell) index.Request { return index.Request{Vector: c.Vector} }

func byText(c *schema.Cell) index.Request { return index.Request{Text: &c.Values[0]} }

func byPoint(c *schema.Cell) index.Request {
	lat, _ := strconv.ParseFloat(c.Values[0], 64) // as they were written
	lon, _ := strconv.ParseFloat(c.Values[1], 64)
	return index.Request{Point: &nearest.Point{Lat: lat, Lon: lon}}
}
