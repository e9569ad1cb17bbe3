//go:build cuda

package neighbours

import (
	"context"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/device"
	"github.com/geniemq/geniemq/gpuexec/cuda/nearest"
)

// loadCells lays cells out, of which those of queries to a recall are visited on the device (kernels/near_cells.cu). It is nil where there are none.
func loadCells(e *device.Engine, r *room, s *scan) (*candidates, error) {
	threads, err := e.Constant("near_cells", "near_cells_threads")
	if err != nil {
		return nil, err
	}
	listed, err := e.Kernel("near_cells", "near_celled", threads, 0)
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
		rows := func(write func([]byte)) { write(abi.Bytes(of.Sections().Centroids)) }
		if own.near, err = load(e, s.kernels, r, of.Near, of.Centroids(), rows, nil, e.Device().Profile.Paths.Sieves || e.Untried()); err != nil || own.near == nil {
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
		at, err := p.keep(e, r, own, of.Starts, of.Order())
		if err != nil || at == nil {
			return nil, err
		}
		own.list = func(steps *device.Steps, p *nearest.CandidatesPiece, near abi.Near, arena abi.Pointer) {
			v := abi.NearCelled{
				Near: near, Queries: arena + abi.Pointer(p.First.Queries), States: arena + abi.Pointer(p.First.States), Entries: arena + abi.Pointer(p.First.Candidates),
				Starts: at[0], Order: at[1],
			}
			for v.Others = range uint32(2) { // the nearest cell, and then the others
				device.Launch(steps, listed, len(p.Asks), 1, &v)
				device.Launch(steps, s.kernels.list[c.Terms], len(p.Asks), 1, &near)
			}
		}
		return own, nil
	})
}
