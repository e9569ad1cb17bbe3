// Package onebyone builds indexes one object at a time, as tests like to and nobody else does: each object is a batch of its own.
package onebyone

import (
	"context"
	"io"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
)

// Builder is an index.Builder whose objects get their values one after the other.
type Builder struct {
	*index.Builder
	*postings.Batch
}

// NewBuilder begins an index of the built-in kinds; see index.Kinds.NewBuilder.
func NewBuilder(s *schema.Schema, attrs []schema.AttributeSpec, options index.BuilderOptions) (*Builder, error) {
	b, err := index.Builtin().NewBuilder(s, attrs, options)
	if err != nil {
		return nil, err
	}
	return &Builder{b, b.NewBatch()}, nil
}

// Objects returns the number of objects of the index.
func (b *Builder) Objects() int { return b.Builder.Objects() }

// EndObject closes the object: it gets the next id, and the values added since the last call. With an error it is dropped.
func (b *Builder) EndObject(key string, payload []byte, text string) error {
	err := b.Batch.EndObject()
	if err == nil {
		err = b.AddBatch(b.Batch, func(int) (string, []byte, string) { return key, payload, text })
	}
	b.Reset()
	return err
}

// Objects is an index.Objects that gets its records one after the other.
type Objects struct{ *objects }

type objects = index.Objects // whose method Objects a field of that name would hide

// NewObjects begins an index of records of the built-in kinds; see index.Kinds.NewObjects.
func NewObjects(s *schema.Schema, options index.BuilderOptions) (Objects, error) {
	o, err := index.NewObjects(s, options)
	return Of(o), err
}

// Of is an index that is being built, for records one after the other.
func Of(o *index.Objects) Objects { return Objects{o} }

// Add adds a record, which it leaves as it is. With an error there is one object less.
func (o Objects) Add(rec *schema.Record) error {
	read := false
	return o.AddAll(context.Background(), index.Source{Next: func(r *schema.Record) error {
		if read {
			return io.EOF
		}
		read = true
		*r = *rec
		return nil
	}})
}
