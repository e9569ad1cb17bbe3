// Package encode has the names by which users of package index know what has moved into package column and into index itself. It goes as its
// users are switched over.
package encode

import (
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/schema"
)

type (
	Objects     = index.Objects
	Queries     = index.Queries
	RecordError = index.RecordError
	QueryError  = column.QueryError
	Condition   = column.Condition
	Value       = column.Value
	ValueKind   = column.ValueKind
)

const (
	Null   = column.Null
	Number = column.NumberKind
	String = column.StringKind
	Bool   = column.BoolKind
)

// NumberValue is column.NumberValue.
func NumberValue(v float64) Value { return column.NumberValue(v) }

// StringValue is column.StringValue.
func StringValue(s string) Value { return column.StringValue(s) }

// BoolValue is column.BoolValue.
func BoolValue(b bool) Value { return column.BoolValue(b) }

// Attributes is index.Kinds.Attributes of the built-in kinds.
func Attributes(s *schema.Schema) []schema.AttributeSpec { return index.Builtin().Attributes(s) }

// NewQueries is index.NewQueries.
func NewQueries(x *index.Index) (*Queries, error) { return index.NewQueries(x) }

// NewObjects makes Objects of a builder for schemas that have been checked: then it does not fail.
func NewObjects(_ *schema.Schema, b *index.Builder) *Objects {
	o, err := index.ObjectsOf(b)
	if err != nil {
		panic(err)
	}
	return o
}
