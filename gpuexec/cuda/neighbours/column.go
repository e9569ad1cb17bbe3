//go:build cuda

package neighbours

import (
	"errors"
	"math"
	"slices"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/device"
	"github.com/geniemq/geniemq/gpuexec/cuda/nearest"
	"github.com/geniemq/geniemq/gpuexec/cuda/room"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/metric"
)

// formRows is the form of rows on a device, as it is said to people.
const formRows = "rows"

// column is a column on the device: its rows, and where a sieve is wanted and has room, their few bits. It owns its memory, and what it holds of the budget.
type column struct {
	*nearest.Column
	memory, sieved                      *device.Memory
	release                             []func()
	rows, norms, present                abi.Pointer
	mean, largest, few, begins, reaches abi.Pointer
	levels                              abi.Pointer // of bytes; 0: there are none
	levelled                            int         // objects that have been seen for each hit before it goes by levels; 0: it has none
	scan                                *scanKernel // nil: that of its terms
}

// A scanKernel compares so many objects with so many queries per block.
type scanKernel struct {
	device.Function
	objects, queries int
	blocks           int           // of a multiprocessor, of rank vectors
	ranks            *guessKernels // it is one of rank vectors; nil: it is not
}

// guessKernels guess limits of rank vectors, and see to it that they were right.
type guessKernels struct {
	guess, guessed device.Function
}

// A columnLoader loads a column. It runs on the engine's thread where it says so.
type columnLoader struct {
	*column
	engine  *device.Engine
	kernels *launches
	space   metric.Space
	each    func(write func([]byte)) // gives the rows as they are stored, one after the other; nil: those of the index
	has     filter.Set               // of the tiles' objects those that have a value; nil: all
	room    *room.Room
}

// load brings a column onto the device; nil without an error: it has no room, or nothing to be compared.
func load(e *device.Engine, k *launches, r *room.Room, c *nearest.Column, space metric.Space, each func(write func([]byte)), present filter.Set, sieve bool) (*column, error) {
	if c == nil {
		return nil, nil
	}
	l := &columnLoader{column: &column{Column: c}, engine: e, kernels: k, space: space, each: each, room: r}
	if each == nil {
		l.each = l.eachRows
	}
	if present != nil {
		l.has = present[c.Tiles.Base()/64 : min(len(present), int(c.Tiles.Base())/64+c.SetWords()/2)]
	}
	held := c.RowsBytes() + c.NormsBytes() + l.presentBytes() + 8
	if err := l.reserve(formRows, held); err != nil {
		return nil, err
	} else if len(l.release) == 0 {
		return nil, nil
	}
	var err error
	if l.memory, err = e.NewMemory(l.fill); err != nil {
		return nil, errors.Join(err, l.close())
	}
	if sieve {
		err = l.loadSieve()
	}
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l.column, nil
}

// reserve takes memory of the budget, if there is room.
func (l *columnLoader) reserve(form string, bytes int64) error {
	release, err := l.room.Take(form+" of "+l.Of.Name, bytes)
	if release != nil {
		l.release = append(l.release, release)
	}
	return err
}

func (l *columnLoader) presentBytes() int64 {
	if l.has == nil {
		return 0
	}
	return int64(l.SetWords()) * abi.WordBytes
}

// fill copies rows, and derives norms.
func (l *columnLoader) fill(m *device.Memory) (err error) {
	allocate := func(to *abi.Pointer, bytes int64) {
		if err == nil {
			*to, err = m.Allocate("the rows of a column", bytes)
		}
	}
	allocate(&l.rows, l.RowsBytes())
	allocate(&l.norms, l.NormsBytes())
	allocate(&l.present, l.presentBytes())
	if err != nil {
		return err
	}
	if err := m.Upload(l.rows, l.each); err != nil {
		return err
	}
	if l.has != nil {
		err := m.Upload(l.present, func(write func([]byte)) {
			write(abi.Bytes(l.has))
			write(make([]byte, l.presentBytes()-8*int64(len(l.has))))
		})
		if err != nil {
			return err
		}
	}
	if !l.Angles() {
		return nil
	}
	return m.Run("computing norms", func(s *device.Steps) { l.launch(s, l.kernels.norms, l.Objects) })
}

// eachRows gives the rows, tile after tile.
func (l *columnLoader) eachRows(write func([]byte)) {
	for tile := l.Tiles.First; tile < l.Tiles.End; tile++ {
		if l.Of.Of == distance.Points {
			first := uint32(tile) * run.TileObjects
			n := min(run.TileObjects, l.Of.Objects-first)
			units := make([]float64, 3*n)
			for i := range n {
				l.space.(*metric.Points).Coordinates(first+i, units[3*i:])
			}
			write(abi.Bytes(units))
			continue
		}
		rows := l.Of.Rows(tile)
		write(abi.Bytes(rows.Floats))
		write(abi.Bytes(rows.Halves))
		write(abi.Bytes(rows.Bytes))
	}
}

// launch records a kernel of near_load.cu, a thread for each of so many objects.
func (l *columnLoader) launch(s *device.Steps, f device.Function, objects uint32) {
	argument := abi.NearLoad{
		Rows: l.rows, Present: l.present, Mean: l.mean, Norms: l.norms, Few: l.few, Begins: l.begins, Reaches: l.reaches, Largest: l.largest,
		Dims: uint32(l.Dims), Storage: l.Storage, Objects: l.Objects,
	}
	if l.Sieve != nil {
		argument.Scale, argument.Wrong, argument.Gamma, argument.Steps = l.Sieve.Scale(), l.Sieve.Wrong(), l.Sieve.Gamma, uint32(l.Sieve.Steps)
	}
	device.Launch(s, f, int((objects+uint32(l.kernels.loadThreads)-1)/uint32(l.kernels.loadThreads)), 1, &argument)
}

// loadSieve derives the few bits of objects, if the column can have them and there is room.
func (l *columnLoader) loadSieve() error {
	s := l.Sievable(l.engine.Shared()-l.kernels.sieveStatic, l.kernels.sieveStep)
	if s == nil {
		return nil
	}
	held, reserved := s.FewBytes(l.Objects)+s.BeginsBytes(l.Objects)+s.ReachesBytes(l.Tiles.Len())+8*int64(l.Dims)+8, len(l.release)
	if l.levelled = l.levelsFrom(s); l.levelled > 0 {
		held += s.BeginsBytes(l.Objects)
	}
	if err := l.reserve(s.Product.Said(), held); err != nil || len(l.release) == reserved {
		return err
	}
	l.Sieve = s
	scaled := false
	var err error
	l.sieved, err = l.engine.NewMemory(func(m *device.Memory) (err error) {
		scaled, err = l.fillSieve(m)
		return err
	})
	if err == nil && !scaled { // vectors that are all alike, or of no size that few bits have
		l.Sieve = nil
		err = l.sieved.Free()
		l.sieved = nil
		l.release[reserved]()
		l.release = l.release[:reserved]
	}
	return err
}

func (l *columnLoader) fillSieve(m *device.Memory) (scaled bool, err error) {
	s := l.Sieve
	allocate := func(to *abi.Pointer, bytes int64) {
		if err == nil {
			*to, err = m.Allocate("the "+s.Product.Said()+" of a column", bytes)
		}
	}
	allocate(&l.mean, 8*int64(l.Dims))
	allocate(&l.largest, 8)
	allocate(&l.few, s.FewBytes(l.Objects))
	allocate(&l.begins, s.BeginsBytes(l.Objects))
	allocate(&l.reaches, s.ReachesBytes(l.Tiles.Len()))
	if err != nil {
		return false, err
	}
	if scaled, err = l.scale(m); err != nil || !scaled {
		return false, err
	}
	err = m.Run("making "+s.Product.Said(), func(list *device.Steps) {
		list.Fill(l.few, s.FewBytes(l.Objects))
		list.Fill(l.largest, 8)
		if bytes := s.ReachesBytes(l.Tiles.Len()); bytes > 0 {
			list.Fill(l.reaches, bytes)
		}
		l.launch(list, l.kernels.forms[s.Product.Form()], uint32((int64(l.Objects)+abi.SieveObjects-1)/abi.SieveObjects*abi.SieveObjects))
	})
	if err == nil && s.Product == nearest.Boxes {
		s.Lost, err = l.measured(m)
	}
	if err == nil && l.levelled > 0 {
		err = l.loadLevels(m)
	}
	return err == nil, err
}

// measured reads what kernels found to be the largest of something.
func (l *columnLoader) measured(m *device.Memory) (float64, error) {
	bytes, err := m.Read("measuring vectors", l.largest, 8)
	if err != nil {
		return 0, err
	}
	return abi.Array[float64](bytes, 0, 1)[0], nil
}

// scale chooses the mean and the scale of a sieve, and uploads the mean; false: there is no scale.
func (l *columnLoader) scale(m *device.Memory) (ok bool, err error) {
	s := l.Sieve
	switch {
	case s.Product.Levelled():
		if !s.SetLevels(l.sample()) {
			return false, nil
		}
	case s.Product == nearest.Halves:
		l.average(s.Mean)
	}
	if err := m.Upload(l.mean, func(write func([]byte)) { write(abi.Bytes(s.Mean)) }); err != nil {
		return false, err
	}
	if !s.Product.Scaled() {
		return true, nil
	}
	err = m.Run("measuring vectors", func(list *device.Steps) {
		list.Fill(l.largest, 8)
		l.launch(list, l.kernels.size, l.Objects)
	})
	if err != nil {
		return false, err
	}
	largest, err := l.measured(m)
	return err == nil && s.SetScale(largest), err
}

// sampled gives about so many vectors, from all over the column; what is damaged is left out.
func (l *columnLoader) sampled(about uint32, each func(v []float64)) {
	v := make([]float64, l.Dims)
	first := l.Tiles.Base()
	for i := uint32(0); i < l.Objects; i += max(1, l.Objects/about) {
		if !l.has.Has(i) {
			continue
		}
		l.space.(*metric.Vectors).Coordinates(first+i, v)
		if !slices.ContainsFunc(v, func(e float64) bool { return e-e != 0 }) {
			each(v)
		}
	}
}

// sample is a few hundred vectors, one after the other.
func (l *columnLoader) sample() (all []float64) {
	l.sampled(512, func(v []float64) { all = append(all, v...) })
	return all
}

// average finds about the mean of the vectors, of angles divided by their norms: any will do, and the nearer it is the less float16s lack.
func (l *columnLoader) average(mean []float64) {
	n := 0.0
	l.sampled(4096, func(v []float64) {
		size := 0.0
		for _, e := range v {
			size += e * e
		}
		if l.Angles() {
			for j := range v {
				v[j] /= math.Sqrt(size)
			}
		}
		if !(size > 0) || math.IsInf(size, 1) {
			return
		}
		n++
		for j, e := range v {
			mean[j] += (e - mean[j]) / n
		}
	})
}

// bytes is the memory of what is searched: rows, norms, and what the sieve compares.
func (c *column) bytes() int64 {
	n := c.RowsBytes() + c.NormsBytes()
	if c.Sieve == nil {
		return n
	}
	n += c.Sieve.FewBytes(c.Objects) + c.Sieve.BeginsBytes(c.Objects)
	if c.levels != 0 {
		n += c.Sieve.BeginsBytes(c.Objects)
	}
	return n
}

// close gives back what there is.
func (c *column) close() error {
	var errs []error
	for _, m := range []*device.Memory{c.memory, c.sieved} {
		if m != nil {
			errs = append(errs, m.Free())
		}
	}
	for _, release := range c.release {
		release()
	}
	return errors.Join(errs...)
}
