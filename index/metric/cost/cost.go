// Package cost says what distances, and the steps of searches, take on a device.
package cost

import (
	"math"
	"sync"
	"time"

	"github.com/geniemq/geniemq/internal/processor"
)

// Constant is what a piece of work takes.
type Constant struct {
	Name string
	// Reference is what a unit takes on the reference device, in nanoseconds.
	Reference float64
	// Probe does some units, some 50 us of them, and says how many. Each call does the same. nil: the unit is plain code, of which one piece tells the speed.
	Probe func() (units int)
}

// Device says what constants are there: of the reference device what is written down, of this host what was measured when somebody first asked.
//
// # Who asks which
//
// Builders ask the reference, so that they build the same bytes everywhere. So does whatever decides between answers that may differ: a query with a recall
// is answered alike wherever it is. Who chooses among ways to the same answer asks the host.
//
// # What measuring takes
//
// Constants take about a millisecond of a processor each. What a load measures, of them and of how searches go (Ratios), takes 50 at most: beyond, a constant is the reference's, times how this
// host's plain code is to the reference's. Of several runs the least counts, since a core that is taken away makes none faster. Nothing is kept beyond the process: to read it back would have to be
// checked against the processor, its clock and its neighbours, and measuring is as fast. Whoever opens an engine has a device of its own.
type Device struct {
	measured bool

	mu    sync.Mutex
	left  time.Duration // of the last load's budget
	known map[string]float64
	speed float64 // of plain code: what it takes, over what the reference takes; 0: not measured yet
}

// Reference is the device by which builders choose: one core of an x86-64 server.
func Reference() *Device { return &Device{} }

// budget is what measuring takes at most, for a load.
const budget = 50 * time.Millisecond

// Host is one core of this machine.
func Host() *Device { return &Device{measured: true, left: budget, known: make(map[string]float64)} }

// Measured says that constants are measured.
func (d *Device) Measured() bool { return d.measured }

// Load says that an index is loaded, for which may be measured.
func (d *Device) Load() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.measured {
		d.left = budget
	}
}

// Of is what a unit takes, in nanoseconds. It is above 0.
func (d *Device) Of(c Constant) float64 {
	if !d.measured {
		return c.Reference
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.speed == 0 {
		d.measurePlain()
	}
	if c.Probe == nil {
		return c.Reference * d.speed
	}
	ns, ok := d.known[c.Name]
	if !ok {
		ns = d.measure(c)
		d.known[c.Name] = ns
		d.measurePlain()
	}
	return ns
}

// measurePlain finds the speed of plain code: again with each constant, since a neighbour of the core that slows it down for some milliseconds slows all runs of one measuring down.
func (d *Device) measurePlain() {
	plain := plainCode()
	if speed := d.measure(plain) / plain.Reference; d.speed == 0 || speed < d.speed {
		d.speed = speed
	}
}

const (
	// runs are timed each, long enough for the clock and short enough to end before another process has the core.
	runs    = 12
	runTime = 30 * time.Microsecond
	// far is by which factor a device may differ from the reference: beyond, measuring has failed.
	far = 64
)

// measure takes the least of some runs.
func (d *Device) measure(c Constant) float64 {
	if d.left <= 0 {
		return c.Reference * max(d.speed, 1.0/far)
	}
	best, times := math.Inf(1), 1
	d.spend(func() { c.Probe() }) // the first one finds nothing in caches
	for done := 0; done < runs && (done == 0 || d.left > 0); {
		units := 0
		took := d.spend(func() {
			for range times {
				units += c.Probe()
			}
		})
		if took < runTime && times < 1<<16 {
			times *= 2 // too short to be timed
			continue
		}
		best = min(best, float64(took)/float64(max(1, units)))
		done++
	}
	return min(max(best, c.Reference/far), c.Reference*far)
}

const (
	// A round of searches takes about roundTime. A kind of searches has some, and takes kindTime about.
	roundTime, kindTime = time.Millisecond, 6 * time.Millisecond
	// MostTried is how many searches a round has at most.
	MostTried = 64
)

// Ratios is what searches by a path take over what they are expected to for what they did, by kind of search: 1 where it is not known, as on the reference device.
// search makes the first n searches of a kind, and says what they are expected to take together.
//
// Constants are measured one by one, on what fits near caches and is done again and again, so that all that can be foreseen is. How far a search of real objects is from that differs by processor and by
// tree, up to three times; so it is not written down but measured, by searches of the very objects. Different ones take turns, since one that is repeated is foreseen too; and so do kinds, so
// that what slows a core down for some milliseconds slows no kind alone.
func (d *Device) Ratios(kinds int, search func(kind, n int) (expected float64)) []float64 {
	ratios, n := make([]float64, kinds), make([]int, kinds)
	for kind := range ratios {
		ratios[kind], n[kind] = math.Inf(1), 1
	}
	if d.measured {
		d.mu.Lock()
		defer d.mu.Unlock()
		for until := d.left - time.Duration(kinds)*kindTime; d.left > max(0, until); {
			for kind := range ratios {
				if d.left > 0 {
					ratios[kind] = min(ratios[kind], d.round(&n[kind], func(n int) float64 { return search(kind, n) }))
				}
			}
		}
	}
	for kind, ratio := range ratios {
		if !(ratio >= 1.0/far && ratio <= far) {
			ratios[kind] = 1
		}
	}
	return ratios
}

// round is the ratio of n searches, or of more if so few are too short to be timed.
func (d *Device) round(n *int, search func(n int) (expected float64)) float64 {
	for {
		expected := 0.0
		took := d.spend(func() { expected = search(*n) })
		if took >= roundTime || *n >= MostTried {
			return float64(took) / expected
		}
		*n *= 2
	}
}

// spend does a part of measuring and takes it off what is left: what the processor worked for it, so that what else the machine does neither counts nor ends measuring early.
func (d *Device) spend(work func()) time.Duration {
	began := time.Now()
	took := processor.Time(work)
	if took <= 0 { // the system does not tell
		took = time.Since(began)
	}
	d.left -= took
	return took
}
