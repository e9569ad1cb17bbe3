//go:build cuda

package device

import (
	"time"

	"gorgonia.org/cu"

	"github.com/geniemq/geniemq/gpuexec"
)

// The stages of a batch on the device.
type stage int

const (
	stageUpload stage = iota
	stagePlan
	stageMatch
	stageSelect
	stageVerify
	stageDownload
	stageEnd
	stages
)

// timing measures the stages of a batch by events between them. A nil one measures nothing.
type timing struct {
	own    owned
	on     bool
	events []cu.Event
	marks  []stage // the stage that begins at the event
	err    error   // of the piece at hand

	begun  time.Time
	encode time.Duration // of the host
}

// encoded records that the host has encoded the piece.
func (p *timing) encoded() {
	if p != nil && p.on {
		p.encode = time.Since(p.begun)
	}
}

func (p *timing) begin(on bool) {
	if p != nil {
		p.on = on
		p.marks = p.marks[:0]
		p.begun = time.Now()
		p.err, p.own.err = nil, nil
	}
}

// mark records that a stage begins.
func (p *timing) mark(list *steps, s stage) {
	if p == nil || !p.on || p.err != nil {
		return
	}
	if len(p.marks) == len(p.events) {
		e := p.own.event(cu.DefaultEvent)
		if p.err = deviceError("making an event", p.own.err); p.err != nil {
			return
		}
		p.events = append(p.events, e)
	}
	list.record(p.events[len(p.marks)])
	p.marks = append(p.marks, s)
}

// end adds the times of the stages to a batch's, once a piece of it has run.
func (p *timing) end(to *gpuexec.Trace) error {
	if p == nil || !p.on {
		return nil
	}
	if p.err != nil {
		return p.err
	}
	var times [stages]time.Duration
	for i := range len(p.marks) - 1 {
		ms, err := p.events[i].Elapsed(p.events[i+1])
		if err != nil {
			return deviceError("timing a batch", err)
		}
		times[p.marks[i]] += time.Duration(ms * float64(time.Millisecond))
	}
	to.Plan += p.encode + times[stagePlan]
	to.Host.Encode += p.encode
	to.Upload += times[stageUpload]
	to.Match += times[stageMatch]
	to.Select += times[stageSelect]
	to.Verify += times[stageVerify]
	to.Download += times[stageDownload]
	return nil
}

func (p *timing) close() error {
	if p == nil {
		return nil
	}
	return p.own.close()
}
