package index

import (
	"context"
	"fmt"

	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
)

// measured is the measurement of a column, which sees all objects as a structure that is built does. What it finds goes into the schema.
type measured struct {
	schema      *schema.Schema
	column      int
	measurement column.Measurement
}

// measurements begins those of a schema's columns.
func (k Kinds) measurements(s *schema.Schema, workers int) ([]store.Builder, error) {
	var all []store.Builder
	for i := range s.Columns {
		c := &s.Columns[i]
		measurer, ok := k.Column(s.Kind, c.Type).(column.Measurer)
		if !ok || k.learner(s, i) != nil {
			continue
		}
		m, err := measurer.Measure(c, workers)
		if err != nil {
			return nil, fmt.Errorf("column %q: %w", c.Name, err)
		}
		if m != nil {
			all = append(all, &measured{s, i, m})
		}
	}
	return all, nil
}

// Add implements store.Builder.
func (m *measured) Add(values []schema.Values) error {
	m.measurement.Add(&values[m.column])
	return nil
}

// Finish implements store.Builder: there is nothing to write but the schema.
func (m *measured) Finish(context.Context) (store.Draft, error) {
	if err := m.measurement.Finish(&m.schema.Columns[m.column]); err != nil {
		return store.Draft{}, fmt.Errorf("column %q: %w", m.schema.Columns[m.column].Name, err)
	}
	return store.Draft{Write: func(context.Context, *store.Writer, func(int64)) error { return nil }}, nil
}
