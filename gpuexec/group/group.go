// Package group makes one engine of several: the devices of one host.
package group

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/lsh"
	"github.com/geniemq/geniemq/index/metric"
)

// Group is an engine made of several, the devices of one host, all of one kind. It adds no stage: above match all
// is package run, and a group is only another way to match and scan (spread) or to choose who does (replicas).
//
//   - With DeviceCapacity, an index is cut into ranges of tiles, one per member, and a batch goes to all members at the same
//     time (spreadMatcher). Each returns its best k of every query, and the best k of these are the answer: the order of
//     entries is total, and a tile belongs to one member. Members may compare the texts that they hold; what that decides is
//     decided once, above.
//   - With DeviceReplica, every member loads the whole index, and a batch goes to the member that has the least to do
//     (replicaSearcher).
//
// So a group answers as one device does, to the byte, in both modes. The cores of the host are one crew for all.
//
// Errors of a member are those of the group: a device that is lost (DeviceError.Sticky) fails the process, since the
// supervisor that restarts it brings back all devices, and a query that kills devices should not go on to the next.
type Group struct {
	members []*run.Engine
	mode    gpuexec.DeviceMode
	crew    *run.Crew
	info    gpuexec.Info
}

// New makes an engine of its members, which it owns from now on.
func New(members []*run.Engine, mode gpuexec.DeviceMode, crew *run.Crew) *Group {
	g := &Group{members: members, mode: mode, crew: crew}
	g.info = gpuexec.Info{Kind: members[0].About.Kind, Device: deviceNames(members) + ", " + string(mode), Workers: crew.Size()}
	return g
}

// deviceNames is "4 x NVIDIA H200", or a sum of such where devices differ.
func deviceNames(members []*run.Engine) string {
	var names []string
	count := make(map[string]int)
	for _, m := range members {
		name := m.About.Device
		if count[name] == 0 {
			names = append(names, name)
		}
		count[name]++
	}
	for i, name := range names {
		names[i] = fmt.Sprintf("%d x %s", count[name], name)
	}
	return strings.Join(names, " + ")
}

func (g *Group) Info() gpuexec.Info { return g.info }

func (g *Group) Memory() (all []gpuexec.Holding) {
	for _, m := range g.members {
		all = append(all, m.Memory()...)
	}
	return all
}

// Hasher implements lsh.Engine: by the first device, since one hashes more than any number of cores can bring.
func (g *Group) Hasher(f *lsh.Functions) (lsh.Hasher, error) { return g.members[0].Hasher(f) }

// Finder implements metric.Engine: by the first device.
func (g *Group) Finder(ctx context.Context, space *metric.Vectors) (metric.Finder, error) {
	return g.members[0].Finder(ctx, space)
}

func (g *Group) Close() error { return run.CloseAll(slices.Values(g.members)) }

func (g *Group) Load(ctx context.Context, x gpuexec.Source, later ...gpuexec.Source) (gpuexec.Searcher, error) {
	if err := run.CheckSources(x, later...); err != nil {
		return nil, err
	}
	ranges := g.ranges(x)
	following := make([][]run.Extent, len(g.members))
	for _, next := range later {
		for i, tiles := range g.ranges(next) {
			following[i] = append(following[i], run.Extent{Source: next, Tiles: tiles})
		}
	}
	shards, err := g.loadShards(ctx, x, ranges, following)
	if err != nil {
		return nil, err
	}
	if g.mode == gpuexec.DeviceCapacity {
		return newSpreadSearcher(x, g.crew, shards, ranges), nil
	}
	return newReplicaSearcher(shards), nil
}

// ranges are the tiles of each member. There may be fewer than members (run.CutTiles).
func (g *Group) ranges(x gpuexec.Source) []run.Tiles {
	if g.mode == gpuexec.DeviceCapacity {
		return run.CutTiles(g.members[0].Weigh(x), len(g.members))
	}
	return slices.Repeat([]run.Tiles{run.AllTiles(x)}, len(g.members))
}

// loadShards loads all members at the same time: each has a way of its own to its memory. There is a shard per range.
func (g *Group) loadShards(ctx context.Context, x gpuexec.Source, ranges []run.Tiles, later [][]run.Extent) ([]*run.Searcher, error) {
	shards := make([]*run.Searcher, len(ranges))
	err := callAll(ctx, len(ranges), func(ctx context.Context, i int) error {
		s, err := g.members[i].LoadTiles(ctx, run.Extent{Source: x, Tiles: ranges[i]}, later[i])
		if err == nil {
			shards[i] = s
		}
		return err
	}, func(i int, err error) error { return fmt.Errorf("device %d of %d: %w", i+1, len(g.members), err) })
	if err == nil {
		return shards, nil
	}
	loaded := slices.DeleteFunc(shards, func(s *run.Searcher) bool { return s == nil })
	return nil, errors.Join(err, run.CloseAll(slices.Values(loaded)))
}

// callAll calls members at the same time, the first one on this goroutine. It returns the first error, as it is to be told; the others
// end because of it, and are waited for. A panic is an error like any other.
func callAll(ctx context.Context, members int, call func(ctx context.Context, i int) error, told func(i int, err error) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	one := func(i int) {
		var err error
		if panicked := run.Protect(func() { err = call(ctx, i) }); panicked != nil {
			err = panicked
		}
		if err != nil {
			cancel(told(i, err))
		}
	}
	var others sync.WaitGroup
	for i := 1; i < members; i++ {
		others.Go(func() { one(i) })
	}
	one(0)
	others.Wait()
	return context.Cause(ctx)
}

// groupCapacity is the capacity of shards that run the same batches: what the least of them can take, the memory of
// all, and the parts of the one that has most.
func groupCapacity(shards []*run.Searcher) gpuexec.Capacity {
	c := shards[0].Capacity()
	forms := []string{c.Form} // that differ
	for _, s := range shards[1:] {
		other := s.Capacity()
		c.BatchPlans = min(c.BatchPlans, other.BatchPlans)
		c.BatchBytes = min(c.BatchBytes, other.BatchBytes)
		c.InFlight = min(c.InFlight, other.InFlight)
		c.IndexBytes += other.IndexBytes
		c.DeviceBytes += other.DeviceBytes
		c.SharedBytes += other.SharedBytes
		c.Parts = max(c.Parts, other.Parts)
		if !slices.Contains(forms, other.Form) {
			forms = append(forms, other.Form)
		}
	}
	c.Form = strings.Join(forms, "; ")
	return c
}

func groupCost(shards []*run.Searcher, p *gpuexec.Plan) int64 {
	var most int64
	for _, s := range shards {
		most = max(most, s.Cost(p))
	}
	return most
}
