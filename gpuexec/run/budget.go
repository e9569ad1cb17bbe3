package run

import (
	"fmt"
	"slices"
	"sync"

	"github.com/geniemq/geniemq/gpuexec"
)

// Budget is the memory of a device that an engine may use. Whoever allocates there reserves first, so that every byte has an
// owner and a form, and what does not fit is refused before anything is allocated. It is safe for concurrent use.
type Budget struct {
	device int

	mu       sync.Mutex
	free     int64
	holdings []*gpuexec.Holding // in the order of their reservations
}

// NewBudget makes a budget of so many bytes of a device.
func NewBudget(device int, bytes int64) *Budget { return &Budget{device: device, free: bytes} }

// Reserve takes the memory of a holding, whose device is the budget's; release gives it back, once. Without room it fails with a
// *gpuexec.DeviceError.
func (b *Budget) Reserve(h gpuexec.Holding) (release func(), err error) {
	return b.Place(func(int64) ([]gpuexec.Holding, error) { return []gpuexec.Holding{h}, nil })
}

// Place takes the memory of holdings that choose chooses of what is free. Choices are made one after the other, each with what
// those before it have left. It is all or nothing. A holding of no bytes is none.
func (b *Budget) Place(choose func(free int64) ([]gpuexec.Holding, error)) (release func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	chosen, err := choose(b.free)
	if err != nil {
		return nil, err
	}
	var own []*gpuexec.Holding
	left := b.free
	for _, h := range chosen {
		if h.Device = b.device; h.Bytes > left {
			return nil, &gpuexec.DeviceError{Op: fmt.Sprintf("making room for %s of %s", h.Form, h.Owner), OutOfMemory: true,
				Err: fmt.Errorf("it needs %d MiB of device memory, %d MiB are free", h.Bytes>>20, left>>20)}
		}
		if left -= h.Bytes; h.Bytes > 0 {
			own = append(own, &h)
		}
	}
	b.free = left
	b.holdings = append(b.holdings, own...)
	return sync.OnceFunc(func() { b.release(own) }), nil
}

func (b *Budget) release(own []*gpuexec.Holding) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holdings = slices.DeleteFunc(b.holdings, func(h *gpuexec.Holding) bool { return slices.Contains(own, h) })
	for _, h := range own {
		b.free += h.Bytes
	}
}

// Holdings are those of now.
func (b *Budget) Holdings() []gpuexec.Holding {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]gpuexec.Holding, len(b.holdings))
	for i, h := range b.holdings {
		all[i] = *h
	}
	return all
}

// OwnerOf is the Owner of what is held for a source.
func OwnerOf(x gpuexec.Source) string { return x.Name() + " " + x.Version() }
