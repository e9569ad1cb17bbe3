package index

import (
	"strings"
	"testing"
)

// TestTooManyObjects sets the count by hand: nobody adds 4 billion objects in a test.
func TestTooManyObjects(t *testing.T) {
	b, err := NewBuilder(&Schema{Name: "t", Kind: Rows, Columns: []Column{{Name: "n", Type: NumberColumn}}}, nil, BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b.objects = MaxObjects
	if err := b.EndObject("", nil, ""); err == nil || !strings.Contains(err.Error(), "at most 4294967295 objects") {
		t.Errorf("2^32 objects: %v", err)
	}
}
