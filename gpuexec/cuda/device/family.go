//go:build cuda

package device

import (
	"context"
	"errors"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
)

// What families execute on that are packages of their own.
type (
	Lane     = lane
	Steps    = steps
	Function = function
)

// Launch is launch.
func Launch[T any](s *Steps, f Function, x, y int, argument *T) { launch(s, f, x, y, argument) }

// Sharing is the kernel with so many bytes of dynamic shared memory, at most what it was found with.
func (f function) Sharing(bytes int) Function { f.shared = bytes; return f }

// Device is what planning knows of the device, Shared the shared memory that a block may have, Room the memory of a lane; Untried: what the profile leaves off is wanted too.
func (e *Engine) Device() *plan.Device { return &e.kernels.Device }
func (e *Engine) Shared() int          { return e.kernels.shared }
func (e *Engine) Room() plan.Room      { return e.all[0].room() }
func (e *Engine) Untried() bool        { return e.opts.Untried }

// Kernel finds a kernel of a module; Constant reads a number of one.
func (e *Engine) Kernel(module, name string, threads, shared int) (f Function, err error) {
	return f, e.do(func() error {
		f, err = e.kernels.modules.by[module].function(name, threads, shared)
		return deviceError("finding kernel "+name, err)
	})
}
func (e *Engine) Constant(module, name string) (n int, err error) {
	return n, e.do(func() error {
		value, err := e.kernels.modules.by[module].constant(name)
		n = int(value)
		return deviceError("reading "+name, err)
	})
}

// OnLane calls work with a lane, bound to its device, once one is free.
func (e *Engine) OnLane(ctx context.Context, work func(l *Lane) error) error {
	return e.lanes.With(ctx, false, func(l *lane) error { return l.device.do(func() error { return work(l) }) })
}

// Execute copies what encode fills to the beginning of the arena, executes what record records, and returns a part of the arena, which holds until the lane is used again.
func (l *lane) Execute(op string, t *gpuexec.Trace, in int64, encode func(in []byte), record func(s *Steps, arena abi.Pointer), from, out int64) ([]byte, error) {
	l.begin(t)
	encode(l.in[:in])
	l.mark(stageUpload)
	if in > 0 {
		l.steps.copyIn(l.arena, l.in[:in])
	}
	l.mark(stageMatch)
	record(&l.steps, l.arena)
	l.mark(stageDownload)
	l.steps.copyOut(l.out[:out], l.arena+abi.Pointer(from))
	l.mark(stageEnd)
	return l.out[:out], l.run(op, t)
}

// mark records that a stage begins.
func (l *lane) mark(s stage) { l.timing.mark(&l.steps, s) }

// Memory is what a family has on the device, made and freed in turn with what else the engine has.
type Memory struct {
	engine *Engine
	own    owned
}

// NewMemory calls fill with memory that is empty, bound to the device. After an error there is none.
func (e *Engine) NewMemory(fill func(m *Memory) error) (*Memory, error) {
	m := &Memory{engine: e}
	if err := e.do(func() error { return fill(m) }); err != nil {
		return nil, errors.Join(err, m.Free())
	}
	return m, nil
}

// Allocate returns so many bytes; 0 of none.
func (m *Memory) Allocate(op string, bytes int64) (abi.Pointer, error) {
	p := m.own.memory(bytes)
	return p, deviceError("allocating "+op, m.own.err)
}

// Upload copies what each gives to write, one array after the other.
func (m *Memory) Upload(to abi.Pointer, each func(write func(array []byte))) error {
	m.engine.uploader.begin(to)
	each(m.engine.uploader.append)
	return m.engine.uploader.flush()
}

// Run executes what record records.
func (m *Memory) Run(op string, record func(s *Steps)) error {
	var list steps
	record(&list)
	return deviceError(op, list.run(m.engine.uploader.stream, m.engine.uploader.copied[0]))
}

// Read returns some memory of the device, at most that of a buffer; it holds until something is uploaded.
func (m *Memory) Read(op string, from abi.Pointer, bytes int) ([]byte, error) {
	to := m.engine.uploader.buffers[0][:bytes]
	return to, m.Run(op, func(s *Steps) { s.copyOut(to, from) })
}

// Free gives all of it back.
func (m *Memory) Free() error {
	return m.engine.do(func() error { return deviceError("freeing the memory of a family", m.own.close()) })
}
