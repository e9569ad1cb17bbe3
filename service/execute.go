package service

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/wire"
)

// executor runs one batch at a time. Its slices are its own and used again for each.
type executor struct {
	*pipeline
	plans   []gpuexec.Plan
	answers []gpuexec.Answer
}

// execute runs batches until there are no more.
func (p *pipeline) execute() {
	x := &executor{pipeline: p}
	for {
		p.idle <- struct{}{} // has room for every executor
		batch, ok := <-p.batches
		if !ok {
			return
		}
		if _, probe := batch.Items[0].request.origin.(*prober); !probe || len(batch.Items) > 1 {
			p.metrics.addBatch(len(batch.Items), batch.Reason.String())
		}
		now := time.Now()
		live := batch.Items[:0]
		for _, t := range batch.Items {
			t.started = now
			t.request.origin.leave(1)
			if t.request.epoch != x.encoder.index.Epoch() { // its answer could not go out
				x.abandon([]*task{t})
				continue
			}
			if !t.expires.IsZero() && !now.Before(t.expires) {
				t.refusal = wire.Errorf(wire.DeadlineExceeded, "timeout_ms ran out before the query could be run")
				x.complete(t)
				continue
			}
			live = append(live, t)
		}
		x.run(live)
	}
}

// run runs tasks as one batch, and in parts when that fails as a whole.
func (x *executor) run(tasks []*task) {
	if len(tasks) == 0 {
		return
	}
	start := time.Now()
	err := x.search(tasks)
	took := time.Since(start)
	var device *gpuexec.DeviceError
	errors.As(err, &device)
	if device == nil || !device.Sticky {
		if left := x.withoutStale(tasks, err); len(left) < len(tasks) {
			x.run(left)
			return
		}
	}
	switch {
	case err == nil:
		x.lastAnswer.Store(time.Now().UnixNano())
		x.metrics.addWork(x.answers[:len(tasks)])
		failures := 0
		for i, t := range tasks {
			t.engine = took
			x.take(t, &x.answers[i])
			if t.failure != nil {
				failures++
			}
		}
		excused := failures == len(tasks) && !x.engineWorks()
		for _, t := range tasks {
			t.excused = excused
			x.complete(t)
		}
	case x.aborted.Err() != nil:
		x.abandon(tasks)
	case device != nil && device.Sticky:
		x.options.fatal(fmt.Errorf("index %s: %w", x.name, err))
		x.abandon(tasks)
	case device != nil && device.OutOfMemory && len(tasks) > 1:
		x.log.Warn("the batch does not fit the device, halving it", "queries", len(tasks), "error", err)
		half := len(tasks) / 2
		x.run(tasks[:half])
		x.run(tasks[half:])
	case len(tasks) == 1:
		t := tasks[0]
		if device != nil && device.OutOfMemory {
			t.refusal = doesNotFit(err)
		} else {
			t.failure, t.excused = err, !x.engineWorks()
		}
		x.complete(t)
	default:
		x.log.Error("the batch failed, running its parts", "queries", len(tasks), "error", err)
		for _, part := range parts(tasks) {
			x.run(part)
		}
	}
}

// engineWorks says whether the engine answers another query, after it has failed on one.
func (x *executor) engineWorks() bool {
	probe := &task{plan: x.probe}
	err := x.search([]*task{probe})
	return err == nil && x.answers[0].Err == nil
}

// search runs the engine. A panic is an error like any other.
func (x *executor) search(tasks []*task) (err error) {
	if err := x.aborted.Err(); err != nil {
		return err
	}
	for len(x.answers) < len(tasks) {
		x.answers = append(x.answers, gpuexec.Answer{})
	}
	x.memory.answers.give(x.answers[:len(tasks)])
	cost := int64(0)
	if x.costOnHost {
		for _, t := range tasks {
			cost += t.cost
		}
	}
	cost = x.batchMemory.most(cost)
	if err := x.batchMemory.wait(x.aborted, cost); err != nil {
		return err
	}
	defer x.batchMemory.give(cost)
	x.plans = x.plans[:0]
	for _, t := range tasks {
		x.plans = append(x.plans, t.plan)
	}
	x.metrics.busy.Start()
	defer func() {
		x.metrics.busy.Stop()
		clear(x.plans)
		if value := recover(); value != nil {
			err = &gpuexec.PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	return x.searcher.Search(x.aborted, x.plans, x.answers[:len(tasks)])
}

// take gives a task its answer, with the memory of its hits.
func (x *executor) take(t *task, answer *gpuexec.Answer) {
	var mistake *gpuexec.PlanError
	var device *gpuexec.DeviceError
	switch err := answer.Err; {
	case err == nil:
		t.answer = *answer
	case errors.As(err, &mistake):
		t.refusal = wire.Errorf(wire.BadRequest, "%s", mistake.Reason)
	case errors.As(err, &device) && device.OutOfMemory:
		t.refusal = doesNotFit(err)
	default:
		t.failure = err
	}
	*answer = gpuexec.Answer{}
}

func doesNotFit(err error) *wire.Error {
	return wire.Errorf(wire.TooLarge, "the query needs more memory than the engine has: lower k or candidates (%v)", err)
}

// complete counts a task off and hands its request on when it was the last.
func (x *executor) complete(t *task) {
	t.plan = gpuexec.Plan{} // its memory is not needed any longer
	if r := t.request; r.open.Add(-1) == 0 {
		r.lane.finished <- r
	}
}

// abandon gives tasks up, and with them their requests.
func (x *executor) abandon(tasks []*task) {
	for _, t := range tasks {
		t.request.abandoned.Store(true)
		x.complete(t)
	}
}

// parts divides a batch that failed: by message, or into single queries when it is of one message.
func parts(tasks []*task) [][]*task {
	var parts [][]*task
	for first := 0; first < len(tasks); {
		end := first + 1
		for end < len(tasks) && tasks[end].request == tasks[first].request {
			end++
		}
		parts = append(parts, tasks[first:end])
		first = end
	}
	if len(parts) > 1 {
		return parts
	}
	parts = parts[:0]
	for i := range tasks {
		parts = append(parts, tasks[i:i+1])
	}
	return parts
}
