package pipeline

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/geniemq/geniemq/batcher"
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/service/translate"
	"github.com/geniemq/geniemq/wire"
)

// executor runs one batch at a time. Its slices are its own and used again for each.
type executor struct {
	*Pipeline
	alone   bool // it executes a lone run
	lost    bool // the device, by what it executed
	plans   []gpuexec.Plan
	answers []gpuexec.Answer
	batch   batcher.Batch[*task]
	pace    gpuexec.Pace // of the batch
	turns   []*turn      // whose it is; nil in ordinary batches
	later   func(*task)  // takes what the allowance does not suffice for
}

// execute runs its batch.
func (x *executor) execute() {
	batch := x.batch
	x.batch.Items = nil
	debug.SetPanicOnFault(true) // of reading an index whose file was cut off; see fileWatch
	if len(batch.Items) > 1 || !batch.Items[0].request.probe {
		x.metrics.Batch(len(batch.Items), batch.Reason.String())
	}
	bulk, queries, start := batch.Items[0].request.lane == &x.bulk, len(batch.Items), time.Now() // then all are
	live := x.live(batch.Items)
	x.pace = x.ordinaryPace(live)
	x.run(live)
	if bulk {
		x.slices.End(queries, time.Since(start))
	}
	x.idle <- x
}

// ordinaryPace is that of a batch of ordinary messages. A probe alone is in the background, and not a sign that anybody waits.
func (x *executor) ordinaryPace(tasks []*task) gpuexec.Pace {
	cores := time.Duration(x.background.cores)
	call := min(batchSlice*cores+2*x.estimates.of(tasks), 2*wholeWork*cores)
	return gpuexec.Pace{Plan: planSlice, Call: call, Background: len(tasks) == 1 && tasks[0].request.probe}
}

// live begins with the tasks of a batch and returns, in their memory, those that are still to be run.
func (x *executor) live(tasks []*task) []*task {
	now := time.Now()
	live := tasks[:0]
	for _, t := range tasks {
		t.begin(now)
		if t.request.epoch != x.index.Epoch() { // its answer could not go out
			x.abandon([]*task{t})
			continue
		}
		if !t.expires.IsZero() && !now.Before(t.expires) {
			t.Err = expired()
			x.complete(t)
			continue
		}
		live = append(live, t)
	}
	return live
}

// run runs tasks as one batch, and in parts when that fails as a whole.
func (x *executor) run(tasks []*task) {
	if len(tasks) == 0 {
		return
	}
	start := time.Now()
	err := x.search(tasks)
	took := time.Since(start)
	device, _ := errors.AsType[*gpuexec.DeviceError](err)
	if device == nil || !device.Sticky {
		if left := x.withoutStale(tasks, err); len(left) < len(tasks) {
			x.run(left)
			return
		}
	}
	switch {
	case err == nil:
		x.lastAnswer.Store(new(time.Now()))
		tasks = x.unfinished(tasks, took)
		var postings, candidates uint64
		failures := 0
		for i, t := range tasks {
			if found, ok := x.answers[i].Value.(*distance.Answer); ok {
				x.metrics.Measured(found.Method, found.Distances, found.Blocks, x.answers[i].Rescoring, found.Predicted)
			} else {
				postings += x.answers[i].Units
			}
			candidates += x.answers[i].Candidates
			t.Engine += took
			x.take(t, &x.answers[i])
			if t.failure != nil {
				failures++
			}
		}
		x.metrics.Worked(postings, candidates)
		excused := failures > 0 && failures == len(tasks) && !x.engineWorks()
		for _, t := range tasks {
			t.excused = excused
			x.complete(t)
		}
	case x.aborted.Err() != nil:
		x.abandon(tasks)
	case device != nil && device.Sticky:
		x.lost = true
		x.options.Fatal(fmt.Errorf("index %s: %w", x.translator.Name, err))
		x.abandon(tasks)
	case device != nil && device.OutOfMemory && len(tasks) > 1:
		x.log.Warn("the batch does not fit the device, halving it", "queries", len(tasks), "error", err)
		half := len(tasks) / 2
		x.run(tasks[:half])
		x.run(tasks[half:])
	case len(tasks) == 1:
		t := tasks[0]
		if device != nil && device.OutOfMemory {
			t.Err = doesNotFit(err)
		} else {
			t.fail(err)
			t.excused = !x.engineWorks()
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
	probe := &task{Query: translate.Query{Plan: x.probe}}
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
	if !x.alone { // before the memory, which those have that share already
		x.options.Exclusion.Share()
		defer x.options.Exclusion.Done()
	}
	x.translator.Room(x.answers[:len(tasks)])
	cost := int64(0)
	if x.costOnHost {
		for _, t := range tasks {
			cost += t.cost
		}
	}
	cost = x.batchMemory.Most(cost)
	if err := x.batchMemory.Wait(x.aborted, cost); err != nil {
		return err
	}
	defer x.batchMemory.Give(cost)
	x.plans = x.plans[:0]
	for _, t := range tasks {
		t.Plan.Deadline, t.Plan.Work = t.expires, x.options.EngineTimeout
		x.plans = append(x.plans, t.Plan)
		t.Plan.Unfinished = nil // it is spoiled if this fails
	}
	x.metrics.Begun()
	defer func() {
		x.metrics.Ended()
		clear(x.plans)
		if value := recover(); value != nil {
			err = &gpuexec.PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	return x.searcher.Search(gpuexec.WithPace(x.aborted, x.pace), x.plans, x.answers[:len(tasks)], nil)
}

// unfinished hands tasks for which the allowance of the batch did not suffice over to turns, and returns the others, whose answers are the first ones then. It
// takes notice of what all of them took.
func (x *executor) unfinished(tasks []*task, took time.Duration) []*task {
	var s seen
	done := tasks[:0]
	for i, t := range tasks {
		a := &x.answers[i]
		if t.formula > 0 {
			x.spend(t, a.Rescoring-t.spent)
			t.spent = a.Rescoring
		}
		if a.Unfinished == nil {
			s.add(t)
			x.answers[len(done)], x.answers[i] = x.answers[i], x.answers[len(done)]
			done = append(done, t)
			continue
		}
		if t.spent > 0 && t.spent > x.estimates.of(tasks[i:i+1]) {
			s.add(t)
		}
		t.Engine += took
		t.Plan.Unfinished, a.Unfinished = a.Unfinished, nil
		x.later(t)
	}
	x.estimates.learn(&s)
	return done
}

// take gives a task its answer, with the memory of its hits.
func (x *executor) take(t *task, answer *gpuexec.Answer) {
	switch err := answer.Err; {
	case err == nil:
		t.Answer = *answer
	case errors.Is(err, gpuexec.ErrDeadline):
		t.Err = expired()
	case errors.Is(err, gpuexec.ErrWork):
		t.Err = wire.Errorf(wire.DeadlineExceeded, "comparing texts took the engine longer than it may (engine-timeout, %v): ask without "+
			"certify, for fewer candidates or with a shorter text", x.options.EngineTimeout)
	case outOfMemory(err):
		t.Err = doesNotFit(err)
	default:
		if t.Err = translate.OwnFault(err); t.Err == nil {
			t.fail(err)
		}
	}
	*answer = gpuexec.Answer{}
}

func outOfMemory(err error) bool {
	device, ok := errors.AsType[*gpuexec.DeviceError](err)
	return ok && device.OutOfMemory
}

func doesNotFit(err error) *wire.Error {
	return wire.Errorf(wire.TooLarge, "the query needs more memory than the engine has: lower k or candidates (%v)", err)
}

// withoutStale abandons the tasks whose file was changed since their requests began, if err or their answers say that something failed, and returns the others.
func (x *executor) withoutStale(tasks []*task, err error) []*task {
	failed := err != nil
	x.noteFault(err)
	if !failed { // then there are answers
		for i := range tasks {
			if fault := x.answers[i].Err; fault != nil {
				failed = true
				x.noteFault(fault)
			}
		}
	}
	if !failed {
		return tasks
	}
	var left []*task
	for _, t := range tasks {
		if x.index.Unchanged(t.request.epoch) == nil {
			left = append(left, t)
			continue
		}
		x.NoteDoubt()
		x.abandon([]*task{t})
	}
	return left
}

// noteFault logs where the engine panicked, and tells the index of reads that failed: there are media that fail while a file looks as
// always.
func (x *executor) noteFault(err error) {
	if panicked, ok := errors.AsType[*gpuexec.PanicError](err); ok {
		x.log.Error("the engine panicked", "error", err, "stack", string(panicked.Stack))
		x.index.Faulted(panicked.Value)
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
	return slices.Collect(slices.Chunk(tasks, 1))
}
