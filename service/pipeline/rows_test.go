package pipeline

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/schema"
)

// patience bounds what should not take long.
const patience = 30 * time.Second

// rowsFile builds an index of n objects, object i with the number i and the category i mod 10.
func rowsFile(t testing.TB, name string, n int) string {
	t.Helper()
	spec, err := index.Builtin().ParseSchema([]byte("name: " + name + "\nkind: rows\ncolumns: [{name: n, type: number, edges: exact}, {name: c, type: category}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := index.NewBuilder(spec, []schema.AttributeSpec{
		{Name: "n", Type: schema.Number, Edges: schema.Exact}, {Name: "c", Type: schema.Text},
	}, index.BuilderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := b.AddNumber(0, float64(i)); err != nil {
			t.Fatal(err)
		}
		b.AddString(1, fmt.Sprint(i%10))
		if err := b.EndObject("", nil, ""); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), name+".gmq")
	if err := b.WriteFile(t.Context(), path, nil); err != nil {
		t.Fatal(err)
	}
	return path
}
