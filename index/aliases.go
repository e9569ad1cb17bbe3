package index

import (
	"github.com/geniemq/geniemq/index/ngram"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// The names by which users of this package know what has moved into packages of its own. They go as their users are switched over.
type (
	Schema        = schema.Schema
	Kind          = schema.Kind
	Column        = schema.Column
	ColumnType    = schema.ColumnType
	EdgeRule      = schema.EdgeRule
	StopWords     = schema.StopWords
	AttributeSpec = schema.AttributeSpec
	AttributeType = schema.AttributeType
	Layout        = schema.Layout
	Record        = schema.Record
	Cell          = schema.Cell

	Attribute      = postings.Attribute
	Postings       = postings.Postings
	Planes         = postings.Planes
	Codes          = postings.Codes
	Rare           = postings.Rare
	Decoder        = postings.Decoder
	Query          = postings.MatchQuery
	Item           = postings.Item
	Span           = postings.Span
	ListStatistics = postings.ListStatistics

	Section          = store.Section
	SectionKind      = store.SectionKind
	Epoch            = store.Epoch
	Patrol           = store.Patrol
	ChangedError     = store.ChangedError
	CorruptError     = store.CorruptError
	UnsupportedError = store.UnsupportedError

	GramScanner = ngram.Scanner
)

const (
	Rows, Documents, Sequences = schema.Rows, schema.Documents, schema.Sequences
	Vectors, Sets              = schema.Vectors, schema.Sets

	NumberColumn, CategoryColumn = schema.NumberColumn, schema.CategoryColumn
	TextColumn                   = schema.TextColumn
	PayloadColumn, SkipColumn    = schema.PayloadColumn, schema.SkipColumn

	EqualWidth, EquiDepth, Exact = schema.EqualWidth, schema.EquiDepth, schema.Exact
	Number, Text, Ordinal        = schema.Number, schema.Text, schema.Ordinal

	LayoutPostings, LayoutSliced, LayoutRare = schema.LayoutPostings, schema.LayoutSliced, schema.LayoutRare

	MaxWeight    = postings.MaxWeight
	GroupObjects = postings.GroupObjects
	TileObjects  = store.TileObjects
	MaxObjects   = store.MaxObjects

	SectionPostings = postings.SectionPostings
)

// ErrNotIndex is store.ErrNotIndex.
var ErrNotIndex = store.ErrNotIndex

// ParseSchema is Kinds.ParseSchema of the built-in kinds.
func ParseSchema(data []byte) (*Schema, error) { return Builtin().ParseSchema(data) }

// LoadSchema is Kinds.LoadSchema of the built-in kinds.
func LoadSchema(path string) (*Schema, error) { return Builtin().LoadSchema(path) }

// GramKey is ngram.AppendKey.
func GramKey(dst []byte, gram []rune, occurrence uint32) []byte {
	return ngram.AppendKey(dst, gram, occurrence)
}

// GramOverlap is ngram.Overlap.
func GramOverlap(a, b []rune, n int) int { return ngram.Overlap(a, b, n) }
