// Package nearest plans searches by distance on a device: which queries a device answers, how they are cut into pieces, and where everything of theirs
// lies. It needs no device; who has one gives it paths.
package nearest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cpu/nearest"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/distance"
)

// A Matcher answers searches by distance on an engine with a device.
//
// # Who answers
//
// The host's matcher can answer every query, and is there whatever the device has room for. Beside it there are paths: ways to answer some of the
// queries on the device. Each query of a batch goes to the first path that takes it, and what none takes stays with the host. The paths run one after the
// other, the host's cores at the same time; what a path finds that it cannot answer the host does last. All find the same hits with the same values to the bit, so that who answers is a matter of speed alone.
//
// # What is shared
//
// What passes filters, and by which method a query is to be answered, is found once for the batch (nearest.Batch), on the host. Validation, costs on
// the host, and joining the answers of several devices are the host matcher's too.
//
// # Ownership
//
// The matcher owns the host's matcher and the paths, and closes them. A path owns what it has on the device.
type Matcher struct {
	*nearest.Matcher // of the host: Check, Join, Scan
	paths            []Path
}

// Path answers some searches by distance on a device.
type Path interface {
	// Takes says whether the path answers a job of a batch, by looking at it alone.
	Takes(b *nearest.Batch, job int) bool
	// Match answers jobs that it takes, at least one: each has an error or was given to Batch.Answer then, or is left to the host. An error means that all jobs are
	// void. t may be nil.
	Match(ctx context.Context, b *nearest.Batch, jobs []int, t *gpuexec.Trace) (left []int, err error)
	// Price is what a query takes by a method together with so many; 0: the path does not take it.
	Price(q *distance.Query, method string, queries int) time.Duration
	// Cost is the memory of the device that a plan takes at least while it runs; 0 of plans that the path does not take.
	Cost(p *gpuexec.Plan) int64
	// Residence says how its objects lie on the device.
	Residence() run.Residence
	// Close gives the memory back.
	Close() error
}

// New makes a matcher of the host's and of paths, which it owns from now on. Paths are asked in their order.
func New(host *nearest.Matcher, paths ...Path) *Matcher { return &Matcher{host, paths} }

// price is what a query takes on the device by a method.
func (m *Matcher) price(q *distance.Query, method string, queries int) time.Duration {
	for _, p := range m.paths {
		if price := p.Price(q, method, queries); price > 0 {
			return price
		}
	}
	return 0
}

// Match implements run.Matcher.
func (m *Matcher) Match(ctx context.Context, jobs []*run.Job, t *gpuexec.Trace) error {
	b, err := m.Begin(ctx, jobs, m.price)
	if err != nil {
		return err
	}
	if err := m.match(ctx, b, t); err != nil {
		return err // of a batch that failed, or panicked, somebody may still hold something: the next one gets other memory
	}
	b.End()
	return nil
}

// match answers the jobs of a batch.
func (m *Matcher) match(ctx context.Context, b *nearest.Batch, t *gpuexec.Trace) (err error) {
	taken := make([][]int, len(m.paths))
	var rest []int
	for i := range b.Len() {
		if at := slices.IndexFunc(m.paths, func(p Path) bool { return p.Takes(b, i) }); at >= 0 {
			taken[at] = append(taken[at], i)
		} else {
			rest = append(rest, i)
		}
	}
	if len(rest) == b.Len() {
		return b.Run(ctx, rest)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var onHost error
	var host sync.WaitGroup
	if len(rest) > 0 {
		host.Go(func() {
			err := run.Protect(func() { onHost = b.Run(ctx, rest) })
			if onHost = errors.Join(err, onHost); onHost != nil {
				cancel(onHost)
			}
		})
	}
	var left []int
	for at, p := range m.paths {
		if len(taken[at]) == 0 {
			continue
		}
		more, fault := p.Match(ctx, b, taken[at], t)
		if err = fault; err != nil {
			cancel(err)
			break
		}
		left = append(left, more...)
	}
	host.Wait()
	if onHost != nil && (err == nil || errors.Is(err, onHost)) {
		return onHost
	}
	if err != nil || len(left) == 0 {
		return err
	}
	return b.Run(ctx, left)
}

// Cost implements run.Matcher: a query is answered on one side.
func (m *Matcher) Cost(p *gpuexec.Plan) int64 {
	cost := m.Matcher.Cost(p)
	for _, path := range m.paths {
		cost = max(cost, path.Cost(p))
	}
	return cost
}

// Residence implements run.Matcher.
func (m *Matcher) Residence() run.Residence {
	all := m.Matcher.Residence()
	forms := []string{all.Form}
	for _, p := range m.paths {
		r := p.Residence()
		all.IndexBytes, all.DeviceBytes, all.Parts = all.IndexBytes+r.IndexBytes, all.DeviceBytes+r.DeviceBytes, max(all.Parts, r.Parts)
		forms = append(forms, r.Form)
	}
	all.Form = strings.Join(forms, ", ")
	return all
}

// Close implements run.Matcher.
func (m *Matcher) Close() error {
	var errs []error
	for _, p := range m.paths {
		errs = append(errs, p.Close())
	}
	return errors.Join(append(errs, m.Matcher.Close())...)
}
