package load

import (
	"fmt"

	"github.com/parquet-go/parquet-go"

	"github.com/geniemq/geniemq/index/load/source"
)

// ParquetColumns returns the names of the outermost fields of a Parquet file, in their order.
func ParquetColumns(path string) (names []string, err error) {
	file, info, err := source.File(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	defer damaged(path, &err)
	opened, err := parquet.OpenFile(file, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: is not a Parquet file or damaged: %w", path, err)
	}
	for _, field := range opened.Schema().Fields() {
		names = append(names, field.Name())
	}
	return names, nil
}
