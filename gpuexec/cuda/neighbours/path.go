//go:build cuda

package neighbours

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	hosted "github.com/geniemq/geniemq/gpuexec/cpu/nearest"
	"github.com/geniemq/geniemq/gpuexec/cuda/device"
	"github.com/geniemq/geniemq/gpuexec/cuda/nearest"
	"github.com/geniemq/geniemq/gpuexec/cuda/room"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/distance"
)

// What all paths do alike: they look kernels up, say what lies there, ask what jobs ask, and go through them in pieces.

// lookup finds kernels and numbers of modules, and keeps what went wrong.
type lookup struct {
	engine *device.Engine
	errs   []error
}

func (l *lookup) number(module, name string) int {
	n, err := l.engine.Constant(module, name)
	l.errs = append(l.errs, err)
	return n
}

func (l *lookup) kernel(module, name string, threads, shared int) device.Function {
	f, err := l.engine.Kernel(module, name, threads, shared)
	l.errs = append(l.errs, err)
	return f
}

func (l *lookup) err() error { return errors.Join(l.errs...) }

// resident is how the structures of columns lie on the device.
func resident(forms []string, bytes int64) run.Residence {
	return run.Residence{Parts: 1, IndexBytes: bytes, DeviceBytes: bytes, Form: strings.Join(forms, ", ")}
}

// held is the memory that a path has of a device, and what it has taken of the room for it.
type held struct {
	memory  []*device.Memory
	release []func()
}

// take takes memory for a form of an index, and fills it; false: there is no room for so much.
func (h *held) take(e *device.Engine, r *room.Room, form string, bytes int64, fill func(m *device.Memory) error) (ok bool, err error) {
	release, err := r.Take(form, bytes)
	if err != nil || release == nil {
		return false, err
	}
	h.release = append(h.release, release)
	m, err := e.NewMemory(fill)
	if err != nil {
		return false, err
	}
	h.memory = append(h.memory, m)
	return true, nil
}

// free gives all back.
func (h *held) free() error {
	var errs []error
	for _, m := range h.memory {
		errs = append(errs, m.Free())
	}
	for _, release := range h.release {
		release()
	}
	h.memory, h.release = nil, nil
	return errors.Join(errs...)
}

// ofColumn is what a path has for the column of a query, of what it has by position; nil: nothing.
func ofColumn[T any](host *hosted.Matcher, all []*T, q *distance.Query) *T {
	if at := host.At(q.Column); at >= 0 {
		return all[at]
	}
	return nil
}

// asksOf are what those of the jobs ask whose queries are one's own.
func asksOf(b *hosted.Batch, jobs []int, own func(q *distance.Query) bool) []nearest.Ask {
	asks := make([]nearest.Ask, 0, len(jobs))
	for _, job := range jobs {
		if q := b.Job(job).Query.(*distance.Query); own(q) {
			a := nearest.Ask{Job: job, Query: q}
			a.Passes, a.Set = b.Passing(job)
			asks = append(asks, a)
		}
	}
	return asks
}

// cores call work on the cores that pay.
func cores(ctx context.Context, e *device.Engine) nearest.Each {
	return func(units, nanoseconds int, work func(int)) error {
		return e.Host.Crew.Each(ctx, units, nanoseconds, work)
	}
}

// inPieces executes asks of a batch, piece after piece: execute says how many it has executed, of the first, and which of these are to be asked anew. Those whose
// time is over are told.
func inPieces(ctx context.Context, b *hosted.Batch, asks []nearest.Ask, op string, execute func(context.Context, []nearest.Ask) (n int, again []nearest.Ask, err error)) error {
	for len(asks) > 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		now := time.Now()
		asks = slices.DeleteFunc(asks, func(a nearest.Ask) bool {
			job := b.Job(a.Job)
			late := !job.Deadline.IsZero() && !now.Before(job.Deadline)
			if late {
				job.Err = gpuexec.ErrDeadline
			}
			return late
		})
		if len(asks) == 0 {
			return nil
		}
		n, again, err := execute(ctx, asks)
		if err != nil {
			return err
		}
		if n == 0 { // Takes has seen to it that this cannot be
			b.Job(asks[0].Job).Err = &gpuexec.DeviceError{Op: op, OutOfMemory: true, Err: errors.New("it has no room alone")}
			n = 1
		}
		asks = append(asks[n:], again...)
	}
	return nil
}
