// Package structure is the types of columns of trees and graphs.
package structure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/graph"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/tree"
	"github.com/geniemq/geniemq/wire/value"
)

// Types returns tree and graph.
func Types() []column.Type {
	records := []schema.Kind{schema.Records, schema.Sets}
	return []column.Type{
		structure{
			column.Plain(schema.TreeColumn, records, schema.Text, "layout", "store"),
			schema.KeptTrees, func() shaped { return new(treeShape) }, tree.Name,
		},
		structure{
			column.Plain(schema.GraphColumn, records, schema.Text, "layout", "store"),
			schema.KeptGraphs, func() shaped { return new(graphShape) }, graph.Name,
		},
	}
}

// structure is the type of columns of trees, which are indexed by their binary branches, and of graphs, which are by their stars. Both are also kept
// as they are, to be compared.
type structure struct {
	column.Traits
	kept schema.KeptForm
	make func() shaped
	name func(keyword string) string
}

// shaped is memory for one tree or graph on its way from what was written to keywords.
type shaped interface {
	// read reads labels and what joins them, or a text in a notation of its own.
	read(text string) error
	build(l *lists) error
	// keywords calls a function with each, good until the next.
	keywords(add func(key []byte))
	// encode appends what is kept.
	encode(dst []byte) []byte
}

// lists are a tree or graph as JSON has it.
type lists struct {
	Labels  []string `json:"labels"`
	Parents []int    `json:"parents"`
	Edges   [][2]int `json:"edges"`
}

// treeShape is a shaped tree.
type treeShape struct {
	tree    tree.Tree
	scanner tree.Scanner
}

func (s *treeShape) read(text string) error { return s.tree.Parse(text, tree.Limits{}) }

func (s *treeShape) build(l *lists) error {
	if l.Edges != nil || l.Parents == nil {
		return errors.New(`a tree is {"labels":["a","b"],"parents":[-1,0]}, or in brackets: "{a{b}}"`)
	}
	return s.tree.Build(l.Labels, l.Parents, tree.Limits{})
}

func (s *treeShape) keywords(add func(key []byte)) {
	for s.scanner.Reset(&s.tree); s.scanner.Next(); {
		add(s.scanner.Key())
	}
}

func (s *treeShape) encode(dst []byte) []byte { return s.tree.Append(dst) }

// graphShape is a shaped graph.
type graphShape struct {
	graph   graph.Graph
	scanner graph.Scanner
}

func (s *graphShape) read(string) error {
	return errors.New(`a graph is {"labels":["a","b"],"edges":[[0,1]]}`)
}

func (s *graphShape) build(l *lists) error {
	if l.Parents != nil || l.Edges == nil {
		return s.read("")
	}
	return s.graph.Build(l.Labels, l.Edges, graph.Limits{})
}

func (s *graphShape) keywords(add func(key []byte)) {
	for s.scanner.Reset(&s.graph); s.scanner.Next(); {
		add(s.scanner.Key())
	}
}

func (s *graphShape) encode(dst []byte) []byte { return s.graph.Append(dst) }

// Keeps implements Keeper.
func (t structure) Keeps(_ *schema.Schema, c *schema.Column) schema.KeptSpec {
	return schema.KeptSpec{Form: t.kept, Returned: c.Store}
}

// KeywordName implements Namer.
func (t structure) KeywordName(_ *schema.Schema, _ *schema.Column, keyword string) string {
	return t.name(keyword)
}

// Objects implements Type.
func (t structure) Objects(_ *schema.Schema, c *schema.Column) (column.ObjectEncoder, error) {
	return &structureObjects{store: c.Store, pool: sync.Pool{New: func() any { return t.make() }}}, nil
}

type structureObjects struct {
	store bool
	pool  sync.Pool // of shaped
}

// Encode appends the keywords of a tree or graph, and keeps it.
func (e *structureObjects) Encode(dst *schema.Values, cell *schema.Cell) error {
	switch {
	case len(cell.Values) > 1:
		return errors.New("holds a list, but a tree or graph is one value")
	case len(cell.Values) == 0 && cell.JSON == nil:
		return nil
	}
	s := e.pool.Get().(shaped)
	defer e.pool.Put(s)
	text := string(cell.JSON)
	if len(cell.Values) == 1 {
		text = cell.Values[0]
	}
	if err := readShape(s, text); err != nil {
		return err
	}
	s.keywords(func(key []byte) { dst.Strings = append(dst.Strings, string(key)) })
	dst.Stored = s.encode(dst.Stored)
	if e.store {
		if cell.JSON == nil {
			dst.JSON, _ = jsontext.AppendQuote(dst.JSON, text) // which is UTF-8
		} else {
			dst.JSON = append(dst.JSON, cell.JSON...)
		}
	}
	return nil
}

// readShape reads what stands in a cell: JSON with labels, or else a notation of its own.
func readShape(s shaped, text string) error {
	if !utf8.ValidString(text) {
		return errors.New("it is not valid UTF-8")
	}
	if !strings.Contains(text, `"labels"`) || !json.Valid([]byte(text)) {
		return s.read(text)
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	var l lists
	if err := decoder.Decode(&l); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	return s.build(&l)
}

// Queries implements Type.
func (t structure) Queries(_ *schema.Schema, c *schema.Column, first int, v column.Vocabulary) (column.QueryEncoder, error) {
	return &structureQueries{name: c.Name, position: first, vocabulary: v, pool: sync.Pool{New: func() any { return t.make() }}}, nil
}

// structureQueries finds trees or graphs by their keywords.
type structureQueries struct {
	name       string
	position   int
	vocabulary column.Vocabulary
	pool       sync.Pool // of shaped
}

// Items adds the item of a tree or graph: its keywords.
func (e *structureQueries) Items(dst *column.Draft, c *column.Condition) error {
	s := e.pool.Get().(shaped)
	defer e.pool.Put(s)
	if err := e.read(s, c); err != nil {
		return column.Refuse("column %q: %v", e.name, err)
	}
	if dst.Asked != nil && dst.Asked.Column == e.name {
		dst.Asked.Stored = s.encode(nil)
	}
	var keywords []uint32
	s.keywords(func(key []byte) {
		if keyword, ok := e.vocabulary.Lookup(e.position, string(key)); ok {
			keywords = append(keywords, keyword)
		}
	})
	if dst.Asked != nil && dst.Asked.Column == e.name {
		dst.Asked.Stored = s.encode(nil)
	}
	if len(keywords) == 0 {
		dst.Warn(column.Unmeetable, "")
	}
	slices.Sort(keywords)
	return dst.Keywords(e.position, keywords)
}

// read reads what a condition asks for.
func (e *structureQueries) read(s shaped, c *column.Condition) error {
	switch {
	case c.Value != nil && c.Value.Kind == column.StringKind:
		return readShape(s, c.Value.String)
	case c.Other.Kind() != value.Map:
		return s.build(&lists{}) // which says what would be right
	}
	var l lists
	for name, v := range c.Other.Members() {
		var err error
		switch name {
		case "labels":
			l.Labels, err = elements(v, func(t value.Tree) (string, bool) { return t.Text(), t.Kind() == value.String })
		case "parents":
			l.Parents, err = elements(v, integer)
		case "edges":
			l.Edges, err = elements(v, func(t value.Tree) (edge [2]int, ok bool) {
				ends, err := elements(t, integer)
				if err != nil || len(ends) != 2 {
					return edge, false
				}
				return [2]int(ends), true
			})
		default:
			err = fmt.Errorf("unknown field %q: it has labels and parents, or labels and edges", name)
		}
		if err != nil {
			return err
		}
	}
	return s.build(&l)
}

// integer reads a number that is one.
func integer(t value.Tree) (int, bool) {
	v, ok := t.Int()
	return int(v), ok && int64(int32(v)) == v
}

// elements reads an array.
func elements[T any](t value.Tree, one func(t value.Tree) (T, bool)) ([]T, error) {
	if t.Kind() != value.Array {
		return nil, errors.New("labels, parents and edges are arrays")
	}
	all := make([]T, 0, t.Len())
	for element := range t.Elements() {
		v, ok := one(element)
		if !ok {
			return nil, errors.New("labels are strings, parents numbers of nodes, edges pairs of numbers of vertices, from 0")
		}
		all = append(all, v)
	}
	return all, nil
}
