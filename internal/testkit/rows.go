package testkit

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/testkit/onebyone"
)

// RowsFile builds an index of n objects, object i with the number i and the category i mod 10.
func RowsFile(t testing.TB, name string, n int) string {
	t.Helper()
	text := "name: " + name + "\nkind: rows\ncolumns: [{name: n, type: number, edges: exact}, {name: c, type: category}]\n"
	spec, err := index.Builtin().ParseSchema([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := onebyone.NewObjects(spec, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		cells := []schema.Cell{{Values: []string{fmt.Sprint(i)}}, {Values: []string{fmt.Sprint(i % 10)}}}
		if err := objects.Add(&schema.Record{Cells: cells}); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), name+".gmq")
	if err := objects.WriteFile(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	return path
}
