package store

import (
	"context"

	"github.com/geniemq/geniemq/index/schema"
)

// Family is a sort of structures by which the objects of an index are searched: inverted lists are one. It says which kinds of sections
// hold its structures, and opens them. An index has a structure of each family that it has sections of.
type Family interface {
	Name() string
	// Sections are the kinds of sections that are the family's own. Numbers from 32,768 on are for families that are not of this program.
	Sections() []SectionForm
	// Open opens the structure of a file. It says by File.Need which sections it has, and checks what using it relies on, whoever wrote the file.
	Open(f *File, s *schema.Schema) (Structure, error)
}

// Structure is what is searched, of one family in one file. Engines know it by its Go type.
type Structure interface {
	// Verify checks what opening leaves, and returns all faults, up to ten, each a *CorruptError.
	Verify(ctx context.Context) error
}

// Buildable is a Family whose structures are built of the values of columns, object by object.
type Buildable interface {
	// Build begins a structure of an index that is to be built, nil where none of its columns is the family's. Workers is the number of
	// goroutines to use, one at least.
	Build(s *schema.Schema, workers int) (Builder, error)
}

// Builder collects what the objects of an index have for one structure. It is not safe for concurrent use.
type Builder interface {
	// Add adds the next object, by the values of the schema's columns, which are the caller's again when it returns. An error is the whole
	// index's.
	Add(values []schema.Values) error
	// Finish returns what is to be written of the objects so far, good until the next.
	Finish(ctx context.Context) (Draft, error)
}
