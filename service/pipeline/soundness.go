package pipeline

import (
	"fmt"
	"runtime/debug"
	"time"
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

// doubtDelay is after how long messages come again that were given back because of the file: later than a pull lasts.
const doubtDelay = 2 * time.Second

// Sound says that an answer, the body of which is complete, was made of what was opened. Else it must not go out, and the
// request is to be abandoned.
func (r *Request) Sound() bool {
	p := r.pipeline
	if r.epoch == 0 || p.index.Unchanged(r.epoch) == nil {
		return true // with no epoch, nothing was read
	}
	r.epoch = 0 // what is told instead needs no file
	p.NoteDoubt()
	return false
}

// Reading calls work, which reads the index for the request, which the caller owns. When that fails because the file was changed, the request is
// abandoned.
func (r *Request) Reading(work func()) {
	p := r.pipeline
	if err := p.read(r, work); err != nil {
		r.epoch = 0
		p.NoteDoubt()
		r.origin.Abandon(r)
	}
}

func (p *Pipeline) read(r *Request, work func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer p.index.Recover(r.epoch, &err)
	work()
	return nil
}

// InDoubt says that nothing can be answered now.
func (p *Pipeline) InDoubt() bool { return p.index.Epoch() == 0 }

// NoteDoubt makes the watch look now.
func (p *Pipeline) NoteDoubt() { p.doubts.Ring() }

// FileFault says why the file cannot be answered from, or nil.
func (p *Pipeline) FileFault() error {
	x := p.index
	if err := x.Unchanged(x.Epoch()); err != nil {
		p.NoteDoubt()
		return fmt.Errorf("%w; nothing is answered from it until it is as it was, or another file takes its place; "+
			"a new index must be renamed over the old one, never copied into it", err)
	}
	return nil
}
