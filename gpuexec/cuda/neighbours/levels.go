//go:build cuda

package neighbours

import (
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/device"
	"github.com/geniemq/geniemq/gpuexec/cuda/nearest"
)

// levelsLaunches are the kernels that sieve bytes by their levels first (kernels/near_levels.cu).
type levelsLaunches struct {
	match, of device.Function
	threads   int // of a block of near_levels_of
	product   int // shared memory of a block for each product
	products  int // which are made so many at a time
	most      int // shared memory that a block may have
}

// find finds the kernels; without them there is no room for any column.
func (k *levelsLaunches) find(shared int, number func(module, name string) int, kernel func(module, name string, threads, shared int) device.Function) {
	threads := number("near_levels", "near_levels_threads")
	if threads == 0 {
		return
	}
	k.product, k.products = number("near_levels", "near_levels_product_bytes"), number("near_levels", "near_levels_products")
	k.most = shared - number("near_levels", "near_levels_static")
	k.threads = number("near_levels", "near_levels_of_threads")
	k.match, k.of = kernel("near_levels", "near_levels", threads, k.most), kernel("near_levels", "near_levels_of", k.threads, 0)
}

// bytes is the shared memory for vectors of so many steps: two for a product.
func (k *levelsLaunches) bytes(steps int) int {
	return (steps + 2*k.products - 1) / (2 * k.products) * k.products * k.product
}

// takes says whether a sieve can have levels.
func (k *levelsLaunches) takes(s *nearest.Sieve) bool {
	return s.Product == nearest.Bytes && k.product > 0 && k.bytes(s.Steps) <= k.most
}

// levelsFrom is how many objects have been seen for each hit when a column goes by levels; 0: it has none, because it cannot, or because a sample does not show that they pay.
func (l *columnLoader) levelsFrom(s *nearest.Sieve) int {
	waves := &l.engine.Device().Profile.Near
	if own := *s; l.kernels.levels.takes(s) && s.Steps >= waves.LevelSteps && own.SetLevels(l.sample()) {
		sample := own.LevelsSample()
		l.sampled(own.LevelsSize(waves), sample.Add)
		return sample.From(l.engine.Host.Crew, waves)
	}
	return 0
}

// loadLevels derives what is known of objects.
func (l *columnLoader) loadLevels(m *device.Memory) error {
	k := &l.kernels.levels
	at, err := m.Allocate("the levels of a column", l.Sieve.BeginsBytes(l.Objects))
	if err != nil {
		return err
	}
	objects := int(l.Sieve.BeginsBytes(l.Objects) / abi.WordBytes)
	argument := abi.NearLevels{Sieve: abi.NearSieve{Near: abi.Near{End: uint32(objects)}, Few: l.few, Begins: l.begins, Steps: uint32(l.Sieve.Steps)}, Least: at}
	l.levels = at
	return m.Run("making levels", func(list *device.Steps) { device.Launch(list, k.of, (objects+k.threads-1)/k.threads, 1, &argument) })
}
