package top

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/geniemq/geniemq/cmd/geniemq/table"
	"github.com/geniemq/geniemq/service/admin"
	"github.com/geniemq/geniemq/service/live"
)

// Print writes what a worker is and does.
func Print(p *table.Page, addr string, e *admin.Event) {
	head(p, addr, e)
	rates(p, e)
	details(p, e)
	if dead := slices.DeleteFunc(slices.Clone(e.Figures.Dead), func(c live.Count) bool { return c.Count == 0 }); len(dead) > 0 {
		p.Say("\ndead letters since the start: %s (geniemq dead list)\n", list(dead))
	}
	if held := owners(e.Memory); held.Len() > 0 {
		p.Say("\n")
		held.Print(p)
	}
}

// head writes what a worker is.
func head(p *table.Page, addr string, e *admin.Event) {
	state := "ready"
	if !e.Ready {
		state = "NOT READY"
	}
	p.Say("%s  geniemq %s, %s, up %s\n", addr, e.Version, state, (time.Duration(e.Uptime) * time.Second).String())
	for _, why := range e.NotReady {
		p.Say("  %s\n", why)
	}
	if e.Engine != "" { // as a worker that shuts down has none
		p.Say("%s, busy %.0f %% of %.0f s\n", e.Engine, 100*e.Figures.Busy, e.Figures.Seconds)
	}
	if e.NATS != "" {
		p.Say("NATS %s\n", e.NATS)
	}
	p.Say("\n")
}

// rates writes what indexes do.
func rates(p *table.Page, e *admin.Event) {
	if len(e.Indexes) == 0 && e.Ready {
		p.Say("no index is served: geniemq add NAME=FILE has it serve one\n")
	}
	t := table.New(table.Text("index").Kept(), table.Number("queries/s").Kept(), table.Number("errors/s"), table.Number("p50"), table.Number("p99"),
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
		t.Row(x.Name, rate(f.Rate), rate(f.Errors), p50, p99, x.Waiting, rate(f.Batches), fmt.Sprintf("%.1f", f.PerBatch), list(f.Reasons), version)
	}
	t.Print(p)
}

// details writes where the time of indexes goes, and how large their batches are: of those that have done something.
func details(p *table.Page, e *admin.Event) {
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
}

func figuresOf(e *admin.Event, index string) live.Index {
	for _, f := range e.Figures.Indexes {
		if f.Name == index {
			return f
		}
	}
	return live.Index{}
}
