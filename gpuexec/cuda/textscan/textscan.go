//go:build cuda

// Package textscan compares queries with all texts of columns on a device, by edit distance. Tag cuda.
package textscan

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	hosted "github.com/geniemq/geniemq/gpuexec/cpu/nearest"
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/device"
	"github.com/geniemq/geniemq/gpuexec/cuda/nearest"
	"github.com/geniemq/geniemq/gpuexec/cuda/room"
	"github.com/geniemq/geniemq/gpuexec/cuda/texts"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/kernels"
)

// Path scans columns of texts by edit distance on a device (kernels/text_scan.cu), for queries whose pattern the device compares and of which no text
// that is left out can be a hit. A column lies there by length (texts.ByLength) where there is room.
type Path struct {
	host    *hosted.Matcher
	engine  *device.Engine
	kernels textKernels
	columns []textColumn // by position
	bytes   int64
	memory  *device.Memory
	release []func() // of the budget
}

// textColumn is a column on the device; of one that is not there all is zero.
type textColumn struct {
	*texts.ByLength
	at abi.Pointer
}

// textKernels are what a scan launches.
type textKernels struct {
	narrow, wide    device.Function
	compact, answer device.Function
	shared          int // bytes of shared memory that the kernels declare
}

// formByLength is how the form is said to people.
const formByLength = "texts by length"

// New lays the columns of texts out that there is room for. It is nil where there are none.
func New(ctx context.Context, e *device.Engine, r *room.Room, host *hosted.Matcher, own run.Extent) (*Path, error) {
	p := &Path{host: host, engine: e, columns: make([]textColumn, host.Columns().Len())}
	lo := min(own.Tiles.Base(), own.Source.Objects())
	for i := range p.columns {
		space, present := host.Column(i)
		column, ok := space.(*metric.Texts)
		if !ok {
			continue
		}
		x, err := texts.NewByLength(ctx, column.Text, present.Has, lo, lo+host.Objects(), e.Host.Crew)
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		if x == nil || x.Len() == 0 {
			continue
		}
		release, err := r.Take(formByLength, x.DeviceBytes())
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		if release == nil {
			continue
		}
		p.release, p.columns[i].ByLength, p.bytes = append(p.release, release), x, p.bytes+x.DeviceBytes()
	}
	if p.bytes == 0 {
		return nil, nil
	}
	err := p.kernels.find(e)
	if err == nil {
		p.memory, err = e.NewMemory(func(m *device.Memory) error { return p.upload(ctx, m, e.Host.Crew) })
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Descended is a column as a search of some of its texts wants it, where the texts lie, and where each begins, by object; nil where there is none.
func (p *Path) Descended(i int) (of *nearest.Column, at abi.Pointer, starts []uint32) {
	x := p.columns[i]
	if x.ByLength == nil {
		return nil, 0, nil
	}
	if of = nearest.NewTexts(p.host.Columns().At(i), p.host.Tiles(), x.ByLength); of == nil {
		return nil, 0, nil
	}
	return of, x.at, x.Starts()
}

// find finds the kernels.
func (k *textKernels) find(e *device.Engine) error {
	threads, err := e.Constant("text_scan", "text_scan_threads")
	if err != nil {
		return err
	}
	if k.shared, err = e.Constant("text_scan", "text_scan_shared"); err != nil {
		return err
	}
	const narrow, wide = abi.MaxNarrow * 8 * abi.WarpLanes, abi.HashedMaskBytes * abi.WarpLanes // masks of the longest pattern
	for _, f := range []struct {
		to              *device.Function
		module, name    string
		threads, shared int
	}{
		{&k.narrow, "text_scan", "text_scan_narrow", threads, k.shared + narrow},
		{&k.wide, "text_scan", "text_scan_wide", threads, k.shared + wide},
		{&k.compact, "select", "compact_wave", kernels.SelectThreads, 0},
		{&k.answer, "select", "answer", kernels.SelectThreads, 0},
	} {
		if *f.to, err = e.Kernel(f.module, f.name, f.threads, f.shared); err != nil {
			return err
		}
	}
	return nil
}

// upload copies the columns.
func (p *Path) upload(ctx context.Context, m *device.Memory, c *run.Crew) (err error) {
	for i := range p.columns {
		own := &p.columns[i]
		if own.ByLength == nil {
			continue
		}
		if own.at, err = m.Allocate("texts", own.DeviceBytes()); err != nil {
			return err
		}
		var encoding error
		err = m.Upload(own.at, func(write func(array []byte)) { encoding = own.Encode(ctx, c, write) })
		if err = errors.Join(encoding, err); err != nil {
			return err
		}
	}
	return nil
}

// room is the memory of a piece on a lane.
func (p *Path) room() texts.Room {
	r := p.engine.Room()
	return texts.Room{Arena: r.Arena, In: r.In, Out: r.Out}
}

// Takes implements nearest.Path.
func (p *Path) Takes(b *hosted.Batch, job int) bool {
	q := b.Job(job).Query.(*distance.Query)
	if b.Method(job) != distance.Scan {
		return false
	}
	x := p.columns[p.host.At(q.Column)]
	return x.ByLength != nil && x.Takes([]rune(q.Text), q.K, most(q), q.Filter != nil, p.room())
}

// most is the largest distance that is wanted.
func most(q *distance.Query) int { return int(max(-1, min(q.Most, abi.TextFarthest))) }

// Price implements nearest.Path.
func (p *Path) Price(q *distance.Query, method string, queries int) time.Duration {
	x := p.columns[p.host.At(q.Column)]
	if method != distance.Scan || x.ByLength == nil || !x.Takes([]rune(q.Text), q.K, most(q), q.Filter != nil, p.room()) {
		return 0
	}
	sizes := &p.engine.Device().Profile.Scan
	steps := float64(q.Column.Bytes()) * float64((len(q.Text)+63)/64) // all lengths, whatever the radius
	if all := float64(q.Column.Objects); all > 0 {
		steps *= float64(x.Len()) / all
	}
	steps *= sizes.Signs + (1-sizes.Signs)*x.Left
	places := p.engine.Device().Profile.Near.Place * float64(min(uint32(q.K), q.Column.Objects))
	return time.Duration(sizes.Batch/float64(max(1, queries)) + sizes.Step*steps/1e3 + places)
}

// Cost implements nearest.Path.
func (p *Path) Cost(of *gpuexec.Plan) int64 {
	q, ok := of.Query.(*distance.Query)
	if !ok || q == nil || q.Column == nil {
		return 0
	}
	at := p.host.At(q.Column)
	if at < 0 || p.columns[at].ByLength == nil {
		return 0
	}
	pattern := []rune(q.Text)
	if x := p.columns[at]; x.Takes(pattern, q.K, most(q), q.Filter != nil, p.room()) {
		return x.Cost(q.K, len(pattern), q.Filter != nil)
	}
	return 0
}

// Match implements nearest.Path: column after column, in pieces that fit.
func (p *Path) Match(ctx context.Context, b *hosted.Batch, jobs []int, t *gpuexec.Trace) (left []int, err error) {
	byColumn := make([][]int, len(p.columns))
	for _, job := range jobs {
		at := p.host.At(b.Job(job).Query.(*distance.Query).Column)
		byColumn[at] = append(byColumn[at], job)
	}
	waves := &p.engine.Device().Profile.Near
	return nil, p.engine.OnLane(ctx, func(l *device.Lane) error {
		for at, own := range byColumn {
			for places := waves.Places; len(own) > 0; places *= waves.MorePlaces {
				var err error
				if own, err = p.scan(ctx, l, &p.columns[at], b, own, places, t); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// wanted is for how many hits there is room, of a job that wants what is within a radius no more than so many places.
func wanted(q *distance.Query, places int) int {
	if math.IsInf(q.Most, 1) {
		return q.K
	}
	return min(q.K, places)
}

// scan answers jobs of one column, but for those whose places are full: they may have more hits (nearest.Spare).
func (p *Path) scan(ctx context.Context, l *device.Lane, x *textColumn, b *hosted.Batch, jobs []int, places int, t *gpuexec.Trace) (full []int, err error) {
	asks := make([]texts.Ask, len(jobs))
	for i, job := range jobs {
		q := b.Job(job).Query.(*distance.Query)
		passing, number := b.Passing(job)
		asks[i] = texts.Ask{
			Pattern: []rune(q.Text), K: wanted(q, places), Most: most(q), Total: q.Total || q.K == 0,
			Filter: number, Passing: abi.Bytes(passing),
		}
	}
	order := texts.Sort(asks)
	d := p.engine.Device()
	sizes := texts.Sizes{Processors: d.Processors, Blocks: d.Profile.Scan.Blocks, Growth: d.Profile.Scan.Growth, Work: d.Profile.Scan.Work,
		Wave: max(1, d.Profile.Scan.LeastWave/abi.TextBlock)}
	for done := 0; done < len(asks); {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		piece := x.Plan(asks[done:], p.room(), sizes)
		if len(piece.Asks) == 0 {
			return nil, fmt.Errorf("a search by edit distance with k %d does not fit a batch's %d bytes, though it should", asks[done].K, p.room().Arena)
		}
		begun := time.Now()
		if t != nil {
			t.Work.Used(piece.End(), len(piece.Asks))
		}
		out, err := l.Execute("executing a search by edit distance", t, piece.InBytes(), piece.Encode,
			func(s *device.Steps, arena abi.Pointer) { p.record(s, x, piece, arena) }, piece.States, piece.OutBytes())
		if err != nil {
			return nil, err
		}
		spent := time.Since(begun) / time.Duration(len(piece.Asks))
		piece.Decode(out, func(i int, f texts.Found) {
			job := jobs[order[done+i]]
			if k := piece.Asks[i].K; len(f.Entries) >= k && k < min(x.Len(), b.Job(job).Query.(*distance.Query).K) {
				full = append(full, job)
				return
			}
			answerTexts(b, job, f, spent)
		})
		done += len(piece.Asks)
	}
	return full, nil
}

// record records the launches of a piece.
func (p *Path) record(s *device.Steps, x *textColumn, piece *texts.Piece, arena abi.Pointer) {
	n := len(piece.Asks)
	at := func(offset int64) abi.Pointer { return arena + abi.Pointer(offset) }
	batch := abi.Batch{Queries: arena, States: at(piece.States), Entries: at(piece.Candidates), Out: at(piece.Answers)}
	layout := x.Layout()
	argument := abi.TextScan{
		Texts: x.at, Starts: x.at + abi.Pointer(layout.Starts), Ids: x.at + abi.Pointer(layout.IDs), First: x.at + abi.Pointer(layout.First), Signs: x.at + abi.Pointer(layout.Signs),
		Patterns: at(piece.Patterns), Asked: at(piece.Asked), Queries: arena, States: at(piece.States), Counts: at(piece.Counts),
		Entries: at(piece.Candidates), Passing: at(piece.Passing),
		Longest: uint32(x.Longest()), Positions: uint32(x.Len()), Symbols: uint32(x.Symbols.Count), Base: x.Base,
		PassingWords: uint32(piece.PassingBytes / abi.WordBytes),
	}
	piece.Waves(func(first, count int) {
		if first > 0 {
			device.Launch(s, p.kernels.compact, n, 1, &batch)
		}
		argument.FirstRank = uint32(first)
		for _, class := range piece.Classes {
			if ranks := min(count, class.Ranks-first); ranks > 0 {
				argument.FirstQuery, argument.Lanes = uint32(class.First), uint32(class.Lanes)
				device.Launch(s, p.masked(x, class.Lanes), class.Count, ranks, &argument)
			}
		}
	})
	device.Launch(s, p.kernels.answer, n, 1, &batch)
}

// masked is the kernel for the symbols of a column, with shared memory for the masks of patterns of so many lanes.
func (p *Path) masked(x *textColumn, lanes int) device.Function {
	if x.Symbols.Bytes() == 1 {
		return p.kernels.narrow.Sharing(8 * x.Symbols.Count * lanes)
	}
	return p.kernels.wide.Sharing(abi.HashedMaskBytes * lanes)
}

// answerTexts hands a job what was found.
func answerTexts(b *hosted.Batch, job int, f texts.Found, spent time.Duration) {
	q := b.Job(job).Query.(*distance.Query)
	hits := make([]metric.Hit, 0, len(f.Entries))
	for i := len(f.Entries) - 1; i >= 0 && q.K > 0; i-- {
		e := f.Entries[i]
		hits = append(hits, metric.Hit{Value: float64(abi.TextFarthest - e.Count()), ID: e.ID()})
	}
	b.Job(job).Spent = spent
	b.Answer(job, hits, &distance.Answer{
		Method: distance.Scan, Exact: true, Counted: q.Total || q.K == 0, Within: f.Within, Distances: f.Distances, Blocks: f.Blocks,
	})
}

// Residence implements nearest.Path.
func (p *Path) Residence() run.Residence {
	return run.Residence{IndexBytes: p.bytes, DeviceBytes: p.bytes, Parts: 1, Form: formByLength}
}

// Close implements nearest.Path.
func (p *Path) Close() error {
	var err error
	if p.memory != nil {
		err = p.memory.Free()
	}
	for _, release := range p.release {
		release()
	}
	return err
}
