//go:build cuda

package neighbours

import (
	"context"
	"errors"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/device"
	"github.com/geniemq/geniemq/gpuexec/cuda/nearest"
)

// loadCells lays cells out, of which those of queries to a recall are visited on the device (kernels/near_cells.cu). It is nil where there are none.
func loadCells(e *device.Engine, r *room, s *scan) (*candidates, error) {
	k, err := findCells(e)
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
			asked := make([]nearest.Ask, len(asks))
			for i := range asks {
				asked[i] = of.Asked(&asks[i])
			}
			return asked, nil
		}
		var rows, norms abi.Pointer // by place
		at, err := p.keep(e, r, own, c.RowsBytes()+c.NormsBytes(), func(m *device.Memory, at []abi.Pointer) (err error) {
			rows, norms, err = k.ordered(m, c, at[1])
			return err
		}, of.Starts, of.Order())
		if err != nil || at == nil {
			return nil, err
		}
		own.compare = func(steps *device.Steps, p *nearest.CandidatesPiece, near abi.Near, arena abi.Pointer) {
			near.Rows, near.Norms = rows, norms
			n, share := len(p.Asks), k.share(len(p.Asks), e.Device().Processors)
			device.Launch(steps, k.visit[c.Terms], (n*share+k.warps-1)/k.warps, 1, &abi.NearCelled{
				Near: near, Queries: arena + abi.Pointer(p.First.Queries), States: arena + abi.Pointer(p.First.States), Entries: arena + abi.Pointer(p.First.Candidates),
				Starts: at[0], Order: at[1], Share: uint32(share),
			})
		}
		return own, nil
	})
}

// cellKernels are those of cells (kernels/near_cells.cu).
type cellKernels struct {
	order device.Function // rows by place
	visit map[nearest.Terms]device.Function
	warps int // of a block
}

func findCells(e *device.Engine) (k cellKernels, err error) {
	const module = "near_cells"
	threads, fault := e.Constant(module, "near_cells_threads")
	if k.warps, err = e.Constant(module, "near_cells_warps"); errors.Join(fault, err) != nil {
		return k, errors.Join(fault, err)
	}
	if k.order, err = e.Kernel(module, "near_order", threads, 0); err != nil {
		return k, err
	}
	k.visit = make(map[nearest.Terms]device.Function)
	for _, terms := range nearest.AllTerms() {
		if k.visit[terms], err = e.Kernel(module, "near_cells_"+string(terms), threads, 0); err != nil {
			return k, err
		}
	}
	return k, nil
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
		device.Launch(s, k.order, (int(c.Objects)+k.warps-1)/k.warps, 1, &abi.NearOrder{
			Rows: c.rows, Norms: c.norms, Order: order, RowsTo: rows, NormsTo: norms, Places: c.Objects, Bytes: uint32(c.RowsBytes() / int64(c.Objects)),
		})
	})
	return rows, norms, err
}

// warpsAtOnce is how many warps of a multiprocessor compare objects at once.
const warpsAtOnce = 16

// share is how many warps of a block a query of so many has: few queries have more, as long as all run at once.
func (k *cellKernels) share(queries, processors int) int {
	share := k.warps
	for share > 1 && queries*share > processors*warpsAtOnce {
		share /= 2
	}
	return share
}
