//go:build cuda

package gpuexec

import (
	"errors"
	"time"

	"gorgonia.org/cu"
)

// The stages of a batch on the device.
type stage int

const (
	stageUpload stage = iota
	stageMatch
	stageSelect
	stageDownload
	stageEnd
	stages
)

// laneProfile measures the stages of each batch of a lane by events between them. A nil profile measures nothing.
type laneProfile struct {
	events []cu.Event
	marks  []stage // the stage that begins at the event
	times  [stages]time.Duration
	err    error

	hosts [hostStages]time.Duration
	last  time.Time
}

// The stages of a batch on its thread of the host.
type hostStage int

const (
	hostEncode hostStage = iota
	hostRun
	hostDecode
	hostStages
)

// host records that a stage of the host has ended.
func (p *laneProfile) host(s hostStage) {
	if p != nil {
		now := time.Now()
		p.hosts[s], p.last = now.Sub(p.last), now
	}
}

func (p *laneProfile) begin() {
	if p != nil {
		p.marks = p.marks[:0]
		p.last = time.Now()
		p.times = [stages]time.Duration{}
	}
}

// mark records that a stage begins.
func (l *lane) mark(s stage) {
	p := l.profile
	if p == nil || p.err != nil {
		return
	}
	if len(p.marks) == len(p.events) {
		e, err := cu.MakeEvent(cu.DefaultEvent)
		if err != nil {
			p.err = deviceError("making an event", err)
			return
		}
		p.events = append(p.events, e)
	}
	l.steps.record(p.events[len(p.marks)])
	p.marks = append(p.marks, s)
}

// end sums the times of the stages, once the batch has run.
func (p *laneProfile) end() error {
	if p == nil || p.err != nil {
		return nil
	}
	for i := range len(p.marks) - 1 {
		ms, err := p.events[i].Elapsed(p.events[i+1])
		if err != nil {
			return deviceError("timing a batch", err)
		}
		p.times[p.marks[i]] += time.Duration(ms * float64(time.Millisecond))
	}
	return nil
}

func (p *laneProfile) close() error {
	if p == nil {
		return nil
	}
	errs := []error{p.err}
	for i := range p.events {
		errs = append(errs, cu.DestroyEvent(&p.events[i]))
	}
	return errors.Join(errs...)
}
