package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/geniemq/geniemq/cmd/geniemq/table"
	"github.com/geniemq/geniemq/service/admin"
	"github.com/geniemq/geniemq/service/live"
)

// Print writes what a worker is and does.
func Print(p *table.Page, addr string, e *admin.Event) {
	state := "ready"
	if !e.Ready {
		state = "NOT READY"
	}
	p.Say("%s  geniemq %s, %s, up %s\n", addr, e.Version, state, (time.Duration(e.Uptime) * time.Second).String())
	for _, why := range e.NotReady {
		p.Say("  %s\n", why)
	}
	p.Say("%s, busy %.0f %% of %.0f s\nNATS %s\n\n", e.Engine, 100*e.Figures.Busy, e.Figures.Seconds, e.NATS)

	rates := table.New(table.Text("index").Kept(), table.Number("queries/s").Kept(), table.Number("errors/s"), table.Number("p50"), table.Number("p99"),
		table.Number("waiting").Kept(), table.Number("batches/s"), table.Number("per batch"), table.Text("cut"), table.Text("version"))
	for _, x := range e.Indexes {
		f := figuresOf(e, x.Name)
		var p50, p99 any
		for _, s := range f.Stages {
			if s.Name == "total" {
				p50, p99 = seconds(s.P50), seconds(s.P99)
			}
		}
		version := x.Version
		if x.Retiring != "" {
			version += " after " + x.Retiring
		}
		rates.Row(x.Name, rate(f.Rate), rate(f.Errors), p50, p99, x.Waiting, rate(f.Batches), fmt.Sprintf("%.1f", f.PerBatch), list(f.Reasons), version)
	}
	rates.Print(p)

	stages := table.New(table.Text("index").Kept(), table.Text("stage").Kept(), table.Number("p50").Kept(), table.Number("p99").Kept())
	sizes := table.New(table.Text("index").Kept(), table.Number("batches of").Kept(), table.Number("number").Kept(), table.Text("").Kept())
	for _, f := range e.Figures.Indexes {
		for _, s := range f.Stages {
			stages.Row(f.Name, s.Name, seconds(s.P50), seconds(s.P99))
		}
		most := 0.0
		for _, s := range f.Sizes {
			most = max(most, s.Batches)
		}
		for _, s := range f.Sizes {
			sizes.Row(f.Name, span(s.UpTo), rate(s.Batches), strings.Repeat("#", int(20*s.Batches/most)))
		}
	}
	for _, t := range []*table.Table{stages, sizes} {
		if t.Len() > 0 {
			p.Say("\n")
			t.Print(p)
		}
	}
	if len(e.Figures.Dead) > 0 {
		p.Say("\ndead letters since the start: %s (geniemq dead list)\n", list(e.Figures.Dead))
	}
	if held := owners(e.Memory); held.Len() > 0 {
		p.Say("\n")
		held.Print(p)
	}
}

func figuresOf(e *admin.Event, index string) live.Index {
	for _, f := range e.Figures.Indexes {
		if f.Name == index {
			return f
		}
	}
	return live.Index{}
}
