//go:build cuda

package device

import (
	"context"
	"errors"
	"time"

	"gorgonia.org/cu"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/run"
)

// A lane executes one batch at a time. It is a stream and an arena, the memory of a batch, made once when the engine
// is opened: while a batch runs nothing is allocated on the device. It knows nothing of the batch that runs on it beyond the
// steps that are recorded for it; what these are, plan.Piece and the launcher say.
//
// Whoever has it from the turns.Pool has it alone, and does everything bound to its device.
type lane struct {
	own    owned
	device binding
	stream cu.Stream
	done   cu.Event

	arena   abi.Pointer
	bytes   int64  // of the arena
	in, out pinned // what is copied to the arena and back

	policy plan.Policy
	steps  steps
	timing *timing // made when stages are first timed
}

// Sizes of the pinned buffers. A query that needs more than inBytes fails; outBytes hold the answers of some queries of MaxK.
const (
	inBytes  = 32 << 20
	outBytes = 32 << 20
)

func newLane(e *Engine) (*lane, error) {
	l := &lane{device: binding(e.context), bytes: e.opts.BatchMemory, policy: plan.Policy{Profile: e.kernels.Profile}}
	err := l.device.do(func() error {
		l.stream, l.done = l.own.stream(urgent), l.own.event(cu.BlockingSyncEvent|cu.DisableTiming)
		l.arena, l.in, l.out = l.own.memory(l.bytes), l.own.pinned(inBytes), l.own.pinned(outBytes)
		return l.own.err
	})
	if err != nil {
		return nil, errors.Join(deviceError("allocating the memory of a batch", err), l.close())
	}
	return l, nil
}

func (l *lane) close() error {
	return l.device.do(func() error {
		return deviceError("freeing the memory of a batch", l.own.close(), l.timing.close())
	})
}

// room is the memory that a batch has here.
func (l *lane) room() plan.Room { return plan.Room{Arena: l.bytes, In: inBytes, Out: outBytes} }

// match executes a batch on an index, piece after piece.
func (l *lane) match(ctx context.Context, r *resident, b *plan.Batch, timed *gpuexec.Trace) error {
	b.Executes(l.policy, l.room(), timed.Counted())
	return l.device.do(func() error {
		for {
			l.begin(timed)
			p := b.Next()
			if p == nil {
				return nil
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err := b.Encode(l.in); err != nil {
				return err
			}
			pieceLauncher{launcher{l, r}, p}.record()
			if err := l.run("executing a batch", timed); err != nil {
				return err
			}
			if err := l.decode(ctx, b, timed); err != nil {
				return err
			}
		}
	})
}

// decode hands the answers of a piece to its jobs.
func (l *lane) decode(ctx context.Context, b *plan.Batch, timed *gpuexec.Trace) error {
	start := time.Now()
	err := b.Decode(ctx, l.out)
	if timed != nil {
		timed.Host.Decode += time.Since(start)
	}
	return err
}

// scan executes jobs, which are ordered by classes, in pieces that fit. One that does not fit alone is left to the host.
func (l *lane) scan(ctx context.Context, r *resident, jobs []*run.ScanJob, timed *gpuexec.Trace) error {
	return l.device.do(func() error {
		for len(jobs) > 0 {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			l.begin(timed)
			p := r.PlanScan(jobs, l.room())
			jobs = jobs[max(1, len(p.Jobs)):]
			if len(p.Jobs) == 0 {
				continue
			}
			p.Encode(l.in)
			if timed != nil {
				p.Used(&timed.Work)
			}
			scanLauncher{launcher{l, r}, &p}.record()
			if err := l.run("executing a scan", timed); err != nil {
				return err
			}
			p.Decode(l.out)
		}
		return nil
	})
}

// begin begins a piece.
func (l *lane) begin(timed *gpuexec.Trace) {
	if timed != nil && l.timing == nil {
		l.timing = &timing{}
	}
	l.timing.begin(timed != nil)
	l.steps = l.steps[:0]
}

// run executes what is recorded, and waits for it.
func (l *lane) run(op string, timed *gpuexec.Trace) error {
	l.timing.encoded()
	if err := l.steps.run(l.stream, l.done); err != nil {
		return deviceError(op, err)
	}
	return l.timing.end(timed)
}
