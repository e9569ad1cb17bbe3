package load

import (
	"fmt"

	"github.com/geniemq/geniemq/index/load/columnar"
	"github.com/geniemq/geniemq/index/load/source"
)

// ParquetColumns returns the names of the outermost fields of a Parquet file, in their order.
func ParquetColumns(path string) (names []string, err error) {
	file, info, err := source.File(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	opened, err := columnar.Open(file, info.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, field := range opened.Schema().Fields() {
		names = append(names, field.Name())
	}
	return names, nil
}
