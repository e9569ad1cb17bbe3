package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
)

// # An index file that is changed in place
//
// Answers are made of the file's mapping, from the words of a query that are looked up to the payloads of its hits, so a
// file that changes under them makes them wrong, and one that is cut off makes reading fail (index.Index.Unchanged has the
// whole story). The rule of a pipeline is: an answer goes out only if the file is unchanged since its request began to be
// decoded. It is checked once for each message that goes out, when its body is complete (sound).
//
// An answer for which that is not so is dropped and its request abandoned: a stored message is given back, a direct one is told to
// try again. No failure is counted as a query's: executors, decoders and responders ask first whether the file was changed.
//
// While the file is in doubt nothing is run for its index and the worker is not ready. Stored messages are not pulled, and what still
// comes is given back with a delay that is longer than an open pull, so that each costs one delivery; workers with
// a sound file take them. A fileWatch reads the file, and lifts all that when its content is what was opened after all.

const (
	// fileInterval is how often a file is looked at if no answer has done it.
	fileInterval = 500 * time.Millisecond
	// patrolBytes is how much of a file is compared with its checksums at a time: 4 MiB a second, a gigabyte in four minutes.
	patrolBytes = 2 << 20
	// doubtDelay is after how long messages come again that were given back because of the file: later than a pull lasts.
	doubtDelay = 2 * time.Second
)

// Sound says that an answer, the body of which is complete, was made of what was opened. Else it must not go out, and the
// request is to be abandoned.
func (r *request) Sound() bool {
	p := r.pipeline
	if r.epoch == 0 || p.encoder.index.Unchanged(r.epoch) == nil {
		return true // with no epoch, nothing was read
	}
	r.epoch = 0 // what is told instead needs no file
	p.NoteDoubt()
	return false
}

// Reading calls work, which reads the index for the request, which the caller owns. When that fails because the file was changed, the request is
// abandoned.
func (r *request) Reading(work func()) {
	p := r.pipeline
	if err := p.read(r, work); err != nil {
		r.epoch = 0
		p.NoteDoubt()
		r.origin.abandon(r)
	}
}

func (p *pipeline) read(r *request, work func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer p.encoder.index.Recover(r.epoch, &err)
	work()
	return nil
}

// InDoubt says that nothing can be answered now.
func (p *pipeline) InDoubt() bool { return p.encoder.index.Epoch() == 0 }

// NoteDoubt makes the watch look now.
func (p *pipeline) NoteDoubt() {
	select {
	case p.doubts <- struct{}{}:
	default:
	}
}

// FileFault says why the file cannot be answered from, or nil.
func (p *pipeline) FileFault() error {
	x := p.encoder.index
	if err := x.Unchanged(x.Epoch()); err != nil {
		p.NoteDoubt()
		return fmt.Errorf("%w; nothing is answered from it until it is as it was, or the worker is started again; "+
			"a new index must be renamed over the old one, never copied into it", err)
	}
	return nil
}

// withoutStale abandons the tasks whose file was changed since their requests began, if err or their answers say that something
// failed, and returns the others.
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
		if x.encoder.index.Unchanged(t.request.epoch) == nil {
			left = append(left, t)
			continue
		}
		x.NoteDoubt()
		x.abandon([]*task{t})
	}
	return left
}

// noteFault tells the index of reads that failed: there are media that fail while a file looks as always.
func (x *executor) noteFault(err error) {
	var panicked *gpuexec.PanicError
	if errors.As(err, &panicked) {
		x.encoder.index.Faulted(panicked.Value)
	}
}

// fileWatch looks at an index's file, holds the index back while that is in doubt, and lets it go on.
type fileWatch struct {
	pipe *pipeline
	hold func(bool) // the stored messages
	log  *slog.Logger

	patrol *index.Patrol
	doubt  string // why the index is held back, ""
	name   string // what became of the file's name, ""
}

// run watches until ctx ends.
func (w *fileWatch) run(ctx context.Context) {
	w.patrol = w.pipe.encoder.index.NewPatrol()
	ticker := time.NewTicker(fileInterval)
	defer ticker.Stop()
	for {
		w.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-w.pipe.doubts:
		}
	}
}

func (w *fileWatch) look(ctx context.Context) {
	x := w.pipe.encoder.index
	err := x.Unchanged(x.Epoch())
	if err == nil {
		err = w.patrol.Step(patrolBytes)
	}
	if err == nil && x.Unverified() {
		err = x.Reread(ctx)
	}
	if err != nil && ctx.Err() == nil {
		w.suspend(err)
		err = x.Reread(ctx)
	}
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		w.suspend(err)
	case w.doubt != "":
		w.doubt = ""
		w.log.Info("the index's file is what was opened, answering from it again", "file", x.Path())
		w.hold(false)
	}
	w.lookAtName()
}

// suspend holds the index back.
func (w *fileWatch) suspend(err error) {
	reason := err.Error()
	switch w.doubt {
	case reason:
	case "":
		w.hold(true)
		w.log.Error("not answering from an index whose file was changed in place: put the old file back, or start the worker "+
			"again; a new index must be renamed over the old one, never copied into it", "error", err)
	default:
		w.log.Warn("an index's file is not what it was yet", "error", err)
	}
	w.doubt = reason
}

// lookAtName tells when the file is no longer what its name stands for, which is no fault.
func (w *fileWatch) lookAtName() {
	x := w.pipe.encoder.index
	same, err := x.Named()
	was := w.name
	switch w.name = ""; {
	case errors.Is(err, fs.ErrNotExist):
		w.name = "the index's file was removed or renamed: this worker goes on with it, another cannot start"
	case err == nil && !same:
		w.name = "another file has the name of the index's: this worker goes on with the one it opened, start it again to serve the new one"
	}
	if w.name != "" && w.name != was {
		w.log.Warn(w.name, "file", x.Path())
	}
}
