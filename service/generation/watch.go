package generation

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"time"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/store"
)

const (
	// fileInterval is how often a file is looked at if no answer has done it.
	fileInterval = 500 * time.Millisecond
	// patrolBytes is how much of a file is compared with its checksums at a time: 4 MiB per second, a gigabyte in four minutes.
	patrolBytes = 2 << 20
)

// fileWatch looks at an index's file, holds the index back while that is in doubt, and lets it go on.
type fileWatch struct {
	index  *index.Index
	doubts <-chan struct{} // have it look now
	hold   func(bool)      // the stored messages
	log    *slog.Logger

	patrol *store.Patrol
	doubt  string // why the index is held back, ""
	name   string // what became of the file's name, ""
}

// run watches until ctx ends.
func (w *fileWatch) run(ctx context.Context) {
	w.patrol = w.index.NewPatrol()
	ticker := time.NewTicker(fileInterval)
	defer ticker.Stop()
	for {
		w.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-w.doubts:
		}
	}
}

// release lets the index go on whose file was in doubt: another answers in its place. The watch has ended.
func (w *fileWatch) release() {
	if w.doubt != "" {
		w.doubt = ""
		w.hold(false)
	}
}

func (w *fileWatch) look(ctx context.Context) {
	x := w.index
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
		w.log.Error("not answering from an index whose file was changed in place: put the old file back, or swap the index for another "+
			"file; a new index must be renamed over the old one, never copied into it", "error", err)
	default:
		w.log.Warn("an index's file is not what it was yet", "error", err)
	}
	w.doubt = reason
}

// lookAtName tells when the file is no longer what its name stands for, which is no fault.
func (w *fileWatch) lookAtName() {
	x := w.index
	same, err := x.Named()
	was := w.name
	switch w.name = ""; {
	case errors.Is(err, fs.ErrNotExist):
		w.name = "the index's file was removed or renamed: this worker goes on with it, another cannot start"
	case err == nil && !same:
		w.name = "another file has the name of the index's: this worker goes on with the one it opened until SIGHUP or geniemq swap has it take the new one"
	}
	if w.name != "" && w.name != was {
		w.log.Warn(w.name, "file", x.Path())
	}
}
