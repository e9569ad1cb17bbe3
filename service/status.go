package service

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/internal/human"
	"github.com/geniemq/geniemq/service/admin"
	"github.com/geniemq/geniemq/service/config"
)

// Status reports the present state.
func (s *Service) Status() admin.Status {
	now := time.Now()
	s.mu.Lock()
	running, stopping, fault := s.running, s.stopping, s.err
	s.mu.Unlock()
	st := admin.Status{Version: Version(), Uptime: now.Sub(s.started).Round(time.Second)}
	notReady := func(format string, args ...any) {
		st.NotReady = append(st.NotReady, config.Redact(fmt.Sprintf(format, args...)))
	}
	if fault != nil {
		st.Fault = config.Redact(fault.Error())
		notReady("the service cannot go on: %v", fault)
	}
	switch {
	case stopping:
		notReady("shutting down")
		return st
	case !running:
		notReady("starting")
		return st
	}
	st.NATS, st.Embedded = s.NATSURL(), s.broker != nil
	info := s.engine.Info()
	st.Engine, st.EngineNote = info.Kind+" on "+info.Device, info.Note
	st.EngineBusy = s.metrics.Busy()
	st.BusyPercent = 100 * st.EngineBusy.Seconds() / max(now.Sub(s.started).Seconds(), 1e-9)
	st.Memory = s.holdings()
	for _, check := range s.conditions {
		if err := check(now); err != nil {
			notReady("%v", err)
		}
	}
	for _, x := range s.indexes {
		st.Indexes = append(st.Indexes, x.status(s))
	}
	st.Ready = len(st.NotReady) == 0
	return st
}

func (x *served) status(s *Service) admin.IndexStatus {
	totals := x.metrics.Totals()
	st := admin.IndexStatus{
		Name: x.name, Kind: string(x.index.Schema().Kind), Version: x.index.Version(),
		Objects: x.index.Objects(), Size: human.Bytes(x.index.Size()),
		Pending: x.stored.pending(), Queries: totals.OK, Errors: totals.Errors, Batches: totals.Batches,
		Example:      x.example,
		QuerySubject: s.subjects.Query(x.name), SearchSubject: s.subjects.Search(x.name),
	}
	if st.Batches > 0 {
		st.PerBatch = float64(totals.Batched) / float64(st.Batches)
	}
	return st
}

// exampleQuery is a query that finds something in an index: its first object, where that has what it takes. It holds no
// apostrophe.
func exampleQuery(x *index.Index) string {
	query := map[string]any{"k": 3}
	if x.Schema().Kind == index.Sequences && x.Objects() > 0 {
		query["text"] = x.Text(x.Objects() / 2)
	} else {
		row := make(map[string]any)
		for i, a := range x.Attributes() {
			switch {
			case len(row) == 3 || a.Keywords == 0:
			case a.Type == index.Number:
				row[a.Name] = map[string]float64{"min": a.Min, "max": (a.Min + a.Max) / 2}
			default:
				row[a.Name] = x.KeywordName(i, a.Keywords/2)
			}
		}
		query["row"] = row
	}
	text, err := json.Marshal(query)
	if err != nil {
		return "{}"
	}
	return strings.ReplaceAll(string(text), "'", `\u0027`) // it is shown between quotes, for a shell
}
