package service

import (
	"fmt"
	"time"

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
	st.Memory = holdings(s.engine)
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
	totals, facts := x.metrics.Totals(), x.index.Facts()
	st := admin.IndexStatus{
		Name: x.name, Kind: facts.Kind, Version: facts.Version,
		Objects: facts.Objects, Size: human.Bytes(facts.Bytes),
		Pending: x.stored.pending(), Queries: totals.OK, Errors: totals.Errors, Batches: totals.Batches,
		Example:      facts.Example,
		QuerySubject: s.subjects.Query(x.name), SearchSubject: s.subjects.Search(x.name),
	}
	if loaded := x.index.Loaded(); len(loaded) > 1 {
		st.Retiring = loaded[1].Version
	}
	if st.Batches > 0 {
		st.PerBatch = float64(totals.Batched) / float64(st.Batches)
	}
	return st
}
