package load

import (
	"fmt"
	"os"

	"github.com/parquet-go/parquet-go"
)

// ParquetColumns returns the names of the outermost fields of a Parquet file, in their order.
func ParquetColumns(path string) (names []string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open input: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("open input: %w", err)
	}
	defer damaged(path, &err)
	opened, err := parquet.OpenFile(file, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: read Parquet: %w", path, err)
	}
	for _, field := range opened.Schema().Fields() {
		names = append(names, field.Name())
	}
	return names, nil
}
