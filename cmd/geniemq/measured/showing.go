package measured

import (
	"io"

	"github.com/geniemq/geniemq/cmd/geniemq/table"
)

// Showing is how measurements are written: as tables on a terminal, as lines of JSON otherwise; what is being done goes to the terminal meanwhile.
type Showing struct {
	*Progress
	JSON bool // lines of it
	page *table.Page
}

// NewShowing shows results on one writer and what is being done on another. Whether JSON was asked for goes before what the first one is, if it was said.
func NewShowing(results, doing io.Writer, asked, said bool) *Showing {
	page := table.On(results)
	return &Showing{NewProgress(doing), asked || !said && !page.Terminal(), page}
}

// Show writes a measurement.
func (s *Showing) Show(measurement any) error {
	s.End()
	if s.JSON {
		return s.page.JSON(measurement, "")
	}
	return Print(s.page, measurement)
}
