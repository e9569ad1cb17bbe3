//go:build cuda

package neighbours

import (
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/device"
	"github.com/geniemq/geniemq/gpuexec/cuda/nearest"
	"github.com/geniemq/geniemq/gpuexec/cuda/room"
)

// visitKernels are those of cells that are visited together (kernels/near_visits.cu).
type visitKernels struct {
	order, mark, count, place, put, visit, answer device.Function
	threads, step                                 int // of a block; shared memory for each step
}

func findVisits(e *device.Engine) (k visitKernels, err error) {
	const module = "near_visits"
	l := lookup{engine: e}
	threads := l.number(module, "near_visits_threads")
	kernel := func(name string) device.Function { return l.kernel(module, name, threads, 0) }
	k.threads, k.step = threads, l.number(module, "near_visits_step_bytes")
	k.order, k.mark = kernel("near_visits_order"), kernel("near_visits_mark")
	k.count, k.place = kernel("near_visits_count"), kernel("near_visits_place")
	k.put, k.answer = kernel("near_visits_put"), kernel("near_visits_answer")
	k.visit = l.kernel(module, "near_visits", l.number(module, "near_visits_visiting"), e.Shared()-l.number(module, "near_visits_static"))
	return k, l.err()
}

// visits is a column by float16s in the order of its cells, or by objects alone where its sieve has no float16s.
type visits struct {
	visitKernels
	column                                            *column
	cells                                             *nearest.Cells
	few, begins, reach, padded, starts, order, cellOf abi.Pointer
}

// orderVisits makes them of what the column's sieve has; nil: it has none, or there is no room.
func (p *candidates) orderVisits(e *device.Engine, r *room.Room, own *candidateColumn, of *nearest.Cells, k visitKernels, at []abi.Pointer) (*visits, error) {
	c := own.of
	if c.Sieve == nil {
		return nil, nil
	}
	var padded []uint32
	places, halves := uint32(0), c.Sieve.Product == nearest.Halves
	if halves {
		padded = of.Padded()
		places = padded[len(padded)-1]
	}
	few, begins, starts := c.Sieve.FewBytes(places), c.Sieve.BeginsBytes(places), int64(abi.WordBytes*len(padded))
	cellOf := of.CellOf()
	bytes := few + begins + abi.NearReachBytes + starts + int64(abi.WordBytes*len(cellOf))
	v := &visits{visitKernels: k, column: c, cells: of, starts: at[0], order: at[1]}
	ok, err := p.take(e, r, "cells of "+c.Of.Name+" by "+c.Sieve.Product.Said(), bytes, func(m *device.Memory) (err error) {
		for _, one := range []struct {
			to    *abi.Pointer
			bytes int64
		}{{&v.few, few}, {&v.begins, begins}, {&v.reach, abi.NearReachBytes}, {&v.padded, starts}, {&v.cellOf, int64(abi.WordBytes * len(cellOf))}} {
			if *one.to, err = m.Allocate("the objects of cells", one.bytes); err != nil {
				return err
			}
		}
		if err := m.Upload(v.cellOf, func(write func([]byte)) { write(abi.Bytes(cellOf)) }); err != nil || !halves {
			return err
		}
		if err := m.Upload(v.padded, func(write func([]byte)) { write(abi.Bytes(padded)) }); err != nil {
			return err
		}
		return m.Run("putting float16s in order", func(s *device.Steps) {
			s.Fill(v.few, few)
			device.Launch(s, k.order, of.Cells(), 1, &abi.NearVisitsOrder{
				Few: c.few, Begins: c.begins, Reaches: c.reaches, Starts: v.starts, Order: v.order, Padded: v.padded, FewTo: v.few, BeginsTo: v.begins, ReachTo: v.reach,
				Steps: uint32(c.Sieve.Steps), Tiles: uint32(c.Tiles.Len()),
			})
		})
	})
	if !ok {
		return nil, err
	}
	own.bytes, of.Together, of.Scans = own.bytes+bytes, halves, p.scan.waves
	return v, nil
}

// args are what kernels read of a piece.
func (v *visits) args(p *nearest.CandidatesPiece, near abi.Near, arena abi.Pointer) abi.NearVisits {
	at := func(offset int64) abi.Pointer { return arena + abi.Pointer(offset) }
	n, s := len(p.Asks), v.column.Sieve
	args := abi.NearVisits{
		Few: v.few, Begins: v.begins, Reach: v.reach, Padded: v.padded, Starts: v.starts, Order: v.order,
		Asked: at(p.First.Queries), Found: at(p.First.States), Cells: at(p.First.Candidates),
		Queries: near.Queries, States: near.States, Entries: near.Entries, Out: near.Out, Lists: near.Lists, Sieved: at(p.Sieves), Halves: at(p.Sieves + nearest.FewAt(n)),
		Gamma: s.Gamma, Scale: s.ScaleOfValues(), Dims: uint32(v.column.Dims), Steps: uint32(s.Steps), QueriesOfBatch: uint32(n), ListRoom: uint32(p.ListRoom), Count: uint32(v.cells.Cells()),
	}
	if v.column.Angles() {
		args.Angles = 1
	}
	return args
}

// blocks are those of kernels in which a warp has a query.
func (v *visits) blocks(queries int) int { return (queries*abi.WarpLanes + v.threads - 1) / v.threads }

// scan records what marks the cells of the queries of a piece, a scan that passes over others, and what answers.
func (v *visits) scan(steps *device.Steps, of launcher, p *nearest.CandidatesPiece, near abi.Near, arena abi.Pointer) {
	args := v.args(p, near, arena)
	args.Pairs = arena + abi.Pointer(p.Marks.Sets)
	device.Launch(steps, v.mark, len(p.Asks), 1, &args)
	near.Sets, near.PassingWords, near.Cells = args.Pairs, uint32(p.Marks.Words), v.cellOf
	of.waves(steps, near, arena)
	device.Launch(steps, v.answer, v.blocks(len(p.Asks)), 1, &args)
}

// record records what visits the cells of the queries of a piece but their nearest, and answers.
func (v *visits) record(steps *device.Steps, k *launches, p *nearest.CandidatesPiece, near abi.Near, arena abi.Pointer) {
	args, n, blocks, s := v.args(p, near, arena), len(p.Asks), v.blocks(len(p.Asks)), v.column.Sieve
	at := func(offset int64) abi.Pointer { return arena + abi.Pointer(offset) }
	args.Counts, args.Pairs, args.Groups = at(p.Visits.Counts), at(p.Visits.Pairs), at(p.Visits.Groups)
	steps.Fill(args.Counts, abi.WordBytes*int64(args.Count+2))
	device.Launch(steps, v.count, blocks, 1, &args)
	device.Launch(steps, v.place, (v.cells.Cells()+v.threads-1)/v.threads, 1, &args)
	device.Launch(steps, v.put, blocks, 1, &args)
	device.Launch(steps, v.visit.Sharing(s.Steps*v.step), max(1, p.Visits.Most), 1, &args)
	device.Launch(steps, k.list[v.column.Terms], n, 1, &near)
	device.Launch(steps, v.answer, blocks, 1, &args)
}
