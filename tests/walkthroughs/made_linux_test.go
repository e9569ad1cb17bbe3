package walkthroughs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"
)

// makeFiles makes the files that no printf can.
func makeFiles(t *testing.T, dir string) {
	t.Helper()
	type order struct {
		Order    int64   `parquet:"order"`
		Customer string  `parquet:"customer"`
		Item     string  `parquet:"item"`
		Price    float64 `parquet:"price"`
		Paid     bool    `parquet:"paid"`
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	err := parquet.WriteFile(filepath.Join(dir, "orders.parquet"), []order{
		{5001, "Ana Souza", "green tea, loose leaf", 12.5, true},
		{5002, "Björn Ek", "black tea in bags", 4.9, true},
		{5003, "Chidi Obi", "tea pot, cast iron", 49, false},
		{5004, "Ana Souza", "coffee beans, dark roast", 15.25, true},
		{5005, "Dana Fox", "green coffee beans", 11, false},
		{5006, "Eva Lang", "cup and saucer", 8, true},
	})
	if err != nil {
		t.Fatal(err)
	}
}
