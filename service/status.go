package service

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/consumer/letters"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/internal/human"
	"github.com/geniemq/geniemq/service/admin"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/service/served"
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
	for _, x := range s.set.Serving() {
		st.Indexes = append(st.Indexes, s.statusOf(x))
	}
	st.Ready = len(st.NotReady) == 0
	return st
}

func (s *Service) statusOf(x *served.Entry) admin.IndexStatus {
	totals, facts := x.Metrics.Totals(), x.Index.Facts()
	st := admin.IndexStatus{
		Name: x.Name, Kind: facts.Kind, Version: facts.Version,
		Objects: facts.Objects, Size: human.Bytes(facts.Bytes),
		Pending: x.Pending(), Queries: totals.OK, Errors: totals.Errors, Batches: totals.Batches,
		Example:      facts.Example,
		QuerySubject: s.subjects.Query(x.Name), SearchSubject: s.subjects.Search(x.Name),
	}
	if loaded := x.Index.Loaded(); len(loaded) > 1 {
		st.Retiring = loaded[1].Version
	}
	if st.Batches > 0 {
		st.PerBatch = float64(totals.Batched) / float64(st.Batches)
	}
	return st
}

// ask answers a query of the admin page.
func (s *Service) ask(ctx context.Context, name string, body []byte) ([]byte, error) {
	if err := s.swappable(); err != nil { // what keeps a swap from being begun keeps a question, too
		return nil, err
	}
	if x := s.set.Find(name); x != nil {
		return x.Direct.Try(ctx, body)
	}
	return nil, fmt.Errorf("%w: this worker does not serve %q", admin.ErrNoSuchIndex, name)
}

// letters are the dead letters, nil before there is a connection.
func (s *Service) letters() *letters.Box {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running {
		return nil
	}
	return letters.Of(s.js, s.subjects)
}

// readyWhile adds a condition of readiness: the service is ready while check returns nil, and else /readyz says what it
// returns. Parts add theirs when they are started, in the order in which reasons are to be read. A check is called for
// every request to the admin server, from any goroutine, so it looks at what is known and asks nobody.
func (s *Service) readyWhile(check func(now time.Time) error) {
	s.conditions = append(s.conditions, check)
}

// openReadiness adds the conditions of parts that are there as long as the service is.
func (s *Service) openReadiness() {
	if s.broker != nil {
		s.readyWhile(func(time.Time) error { return s.broker.Fault() })
	}
	s.readyWhile(func(time.Time) error {
		for _, nc := range s.conns {
			if state := nc.Status(); state != nats.CONNECTED {
				return fmt.Errorf("the connection to NATS is %s", state)
			}
		}
		return nil
	})
	s.readyWhile(func(time.Time) error { return s.watch.Fault() })
	s.readyWhile(func(now time.Time) error { return s.denials.Latest(now, s.needs) })
	s.readyWhile(func(time.Time) error { return s.carriers.Fault() })
	s.readyWhile(func(now time.Time) error {
		all := s.set.Serving()
		if len(all) == 0 {
			return errors.New("no index is served: add one")
		}
		var faults []error
		for _, x := range all {
			faults = append(faults, x.Fault(now))
		}
		return errors.Join(faults...)
	})
}

// holdings say who has an engine's memory. They may be asked for at any time, also after the engine was closed.
func holdings(engine gpuexec.Engine) []admin.Holding {
	var held []admin.Holding
	for _, h := range engine.Memory() {
		if engine.Info().Kind == gpuexec.CPU {
			h.Device = admin.Host
		}
		index, _, ok := strings.Cut(h.Owner, " ") // before the version
		if !ok {
			index = ""
		}
		held = append(held, admin.Holding{Device: h.Device, Owner: h.Owner, Index: index, Form: h.Form, Bytes: h.Bytes, Needed: h.Needed})
	}
	return held
}

// unreleased is the version of a program that was built without one, such as by go test or go run.
const unreleased = "0.0.0-devel"

// semantic is what a version looks like for NATS: https://semver.org, without the v.
var semantic = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

// Version is the version of this program, as the NATS micro service, the admin page and geniemq --version give it. The go command
// writes it into what it builds: the tag of the commit, or one that is made of the commit's time and hash.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unreleased
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) string {
	version := strings.TrimPrefix(info.Main.Version, "v")
	if !semantic.MatchString(version) { // "" or (devel)
		return unreleased
	}
	return version
}
