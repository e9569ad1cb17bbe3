//go:build cuda

package neighbours

import (
	"context"
	"errors"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/device"
	"github.com/geniemq/geniemq/gpuexec/cuda/nearest"
	"github.com/geniemq/geniemq/gpuexec/cuda/room"
)

// loadCells lays cells out, of which those of queries to a recall are visited on the device (kernels/near_cells.cu). It is nil where there are none.
func loadCells(e *device.Engine, r *room.Room, s *scan) (*candidates, error) {
	k, err := findCells(e)
	if err != nil {
		return nil, err
	}
	visits, err := findVisits(e)
	if err != nil {
		return nil, err
	}
	p := &candidates{scan: s, method: "cells", form: "cells"}
	return p.each(nil, func(c *column, _ []uint32) (*candidateColumn, error) {
		of := nearest.NewCells(c.Column)
		if of == nil {
			return nil, nil
		}
		own := &candidateColumn{candidateFinder: of, of: c}
		var err error
		centroids := func(write func([]byte)) { write(abi.Bytes(of.Sections().Centroids)) }
		if own.near, err = load(e, s.kernels, r, of.Near, of.Centroids(), centroids, nil, e.Device().Profile.Paths.Sieves || e.Untried()); err != nil || own.near == nil {
			return nil, err
		}
		own.bytes = own.near.bytes()
		own.ask = func(_ context.Context, asks []nearest.Ask) ([]nearest.Ask, error) {
			return of.Asked(asks), nil
		}
		var rows, norms abi.Pointer // by place
		at, err := p.keep(e, r, own, c.RowsBytes()+c.NormsBytes(), func(m *device.Memory, at []abi.Pointer) (err error) {
			rows, norms, err = k.ordered(m, c, at[1])
			return err
		}, of.Starts, of.Order())
		if err != nil || at == nil {
			return nil, err
		}
		together, err := p.orderVisits(e, r, own, of, visits, at)
		if err != nil {
			return nil, errors.Join(err, own.near.close())
		}
		own.compare = func(steps *device.Steps, p *nearest.CandidatesPiece, near abi.Near, arena abi.Pointer) {
			if p.Marks != nil {
				together.scan(steps, launcher{s.kernels, c, &p.Piece, e.Device()}, p, near, arena)
				return
			}
			byId := near
			near.Rows, near.Norms = rows, norms
			celled := abi.NearCelled{
				Near: near, Queries: arena + abi.Pointer(p.First.Queries), States: arena + abi.Pointer(p.First.States), Entries: arena + abi.Pointer(p.First.Candidates),
				Starts: at[0], Order: at[1],
			}
			if p.Visits != nil {
				celled.Nearest = 1
			}
			device.Launch(steps, k.visits(c.Terms, len(p.Asks), e.Device().Processors), len(p.Asks), 1, &celled)
			if p.Visits != nil {
				together.record(steps, s.kernels, p, byId, arena)
			}
		}
		return own, nil
	})
}

// cellKernels are those of cells (kernels/near_cells.cu).
type cellKernels struct {
	order      device.Function // rows by place
	orderWarps int
	visit      map[nearest.Terms][]device.Function // with 1, 2, 4 ... warps for a query
}

func findCells(e *device.Engine) (k cellKernels, err error) {
	const module = "near_cells"
	l := lookup{engine: e}
	threads, warps, share := l.number(module, "near_order_threads"), l.number(module, "near_cells_warps"), l.number(module, "near_cells_share")
	k.order, k.orderWarps = l.kernel(module, "near_order", threads, 0), threads/abi.WarpLanes
	k.visit = make(map[nearest.Terms][]device.Function)
	for _, terms := range nearest.AllTerms() {
		for n := 1; n <= warps && terms != nearest.Unequal; n *= 2 { // of codes there are no means
			k.visit[terms] = append(k.visit[terms], l.kernel(module, "near_cells_"+string(terms), n*abi.WarpLanes, n*share))
		}
	}
	return k, l.err()
}

// warpsAtOnce is how many warps of a multiprocessor compare objects at once, and rounds how many times as many there are where queries are few.
const warpsAtOnce, rounds = 16, 2

// visits is the kernel for so many queries: few have more warps each.
func (k *cellKernels) visits(terms nearest.Terms, queries, processors int) device.Function {
	of := k.visit[terms]
	at := len(of) - 1
	for at > 0 && queries<<at > processors*warpsAtOnce*rounds {
		at--
	}
	return of[at]
}

// ordered copies rows and norms of a column into an order, which lies on the device.
func (k *cellKernels) ordered(m *device.Memory, c *column, order abi.Pointer) (rows, norms abi.Pointer, err error) {
	if rows, err = m.Allocate("the rows of cells", c.RowsBytes()); err != nil {
		return 0, 0, err
	}
	if norms, err = m.Allocate("the norms of cells", c.NormsBytes()); err != nil {
		return 0, 0, err
	}
	err = m.Run("putting rows in order", func(s *device.Steps) {
		device.Launch(s, k.order, (int(c.Objects)+k.orderWarps-1)/k.orderWarps, 1, &abi.NearOrder{
			Rows: c.rows, Norms: c.norms, Order: order, RowsTo: rows, NormsTo: norms, Places: c.Objects, Bytes: uint32(c.RowsBytes() / int64(c.Objects)),
		})
	})
	return rows, norms, err
}
