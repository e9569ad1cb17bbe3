// Package jsonlines builds indexes of records that a test writes as lines of JSON, the way that files are built.
package jsonlines

import (
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/load"
	"github.com/geniemq/geniemq/index/schema"
)

// Build is the file of an index of the built-in kinds, by the text of a schema and lines of JSON.
func Build(t testing.TB, schemaText, lines string) []byte {
	t.Helper()
	s, err := index.Builtin().ParseSchema([]byte(schemaText))
	if err != nil {
		t.Fatalf("%s: %v", schemaText, err)
	}
	r, err := load.NewReader(strings.NewReader(lines), "lines.jsonl", s, load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	next, err := index.Builtin().Learn(s, func(rec *schema.Record) error { return r.Next(rec) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	o, err := index.NewObjects(s, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.AddAll(t.Context(), index.Source{Next: next}); err != nil {
		t.Fatal(err)
	}
	file, err := o.Bytes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return file
}
