package main

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/geniemq/geniemq/cmd/geniemq/measured"
	"github.com/geniemq/geniemq/cmd/geniemq/table"
)

// showing is how measurements are written: as tables on a terminal, as lines of JSON otherwise; what is being done goes to the terminal meanwhile.
type showing struct {
	*measured.Progress
	page *table.Page
	json bool
}

func (c *cli) showing(cmd *cobra.Command) *showing {
	s := &showing{measured.NewProgress(c.err), table.On(c.out), false}
	flag := cmd.Flags().Lookup("json")
	s.json = flag.Value.String() == "true" || !flag.Changed && !s.page.Terminal()
	return s
}

// show writes a measurement.
func (s *showing) show(measurement any) error {
	s.End()
	if s.json {
		return json.NewEncoder(s.page).Encode(measurement)
	}
	return measured.Print(s.page, measurement)
}
