package index

import (
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// TestTooManyObjects sets the count by hand: nobody adds 4 billion objects in a test.
func TestTooManyObjects(t *testing.T) {
	b, err := Builtin().NewBuilder(&schema.Schema{Name: "t", Kind: schema.Rows, Columns: []schema.Column{{Name: "n", Type: schema.NumberColumn}}}, nil, BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b.objects = store.MaxObjects
	if err := b.AddObjects(t.Context(), 1, func(*postings.Batch, int) error { return nil }); err == nil || !strings.Contains(err.Error(), "at most 4294967295 objects") {
		t.Errorf("2^32 objects: %v", err)
	}
}
