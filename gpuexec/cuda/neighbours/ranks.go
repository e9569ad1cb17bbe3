//go:build cuda

package neighbours

import (
	"context"
	"errors"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/device"
	"github.com/geniemq/geniemq/gpuexec/cuda/nearest"
	"github.com/geniemq/geniemq/gpuexec/cuda/room"
	"github.com/geniemq/geniemq/gpuexec/cuda/textscan"
	"github.com/geniemq/geniemq/gpuexec/run"
)

// rankKernels are those of rank vectors (kernels/near_ranks.cu).
type rankKernels struct {
	listed device.Function
	guess  *guessKernels
	scans  map[nearest.Terms]*scanKernel     // of rank vectors
	edits  map[nearest.Terms]device.Function // of texts
}

// loadRanks lays rank vectors out, by which candidates of the method permutation are found. It is nil where there are none. The ranks of a query are found on the host, since they
// are some values of one each.
func loadRanks(e *device.Engine, r *room.Room, s *scan, texts *textscan.Path) (*candidates, error) {
	k := rankKernels{scans: make(map[nearest.Terms]*scanKernel), edits: make(map[nearest.Terms]device.Function)}
	if err := k.find(e); err != nil {
		return nil, err
	}
	p := &candidates{scan: s, method: "permutation", form: "rank vectors"}
	return p.each(texts, func(c *column, starts []uint32) (*candidateColumn, error) {
		of := nearest.NewRanks(c.Column)
		if of == nil {
			return nil, nil
		}
		own := &candidateColumn{candidateFinder: of, of: c}
		var err error
		rows := func(write func([]byte)) { write(of.Ranks()) }
		if own.near, err = load(e, s.kernels, r, of.Near, nil, rows, nil, false); err != nil || own.near == nil {
			return nil, err
		}
		of.Guesses = e.Device().Profile.Paths.RankGuesses || e.Untried()
		own.near.scan, own.bytes = k.scans[of.Near.Terms], own.near.RowsBytes()
		own.ask = func(ctx context.Context, asks []nearest.Ask) ([]nearest.Ask, error) {
			return ranksOfQueries(ctx, s, own, of, asks)
		}
		var at []abi.Pointer
		if starts != nil {
			if at, err = p.keep(e, r, own, 0, nil, starts); err != nil || at == nil {
				return nil, err
			}
		}
		own.compare = func(steps *device.Steps, p *nearest.CandidatesPiece, near abi.Near, arena abi.Pointer) {
			k.compare(steps, s.kernels, own, p, near, arena, at)
		}
		return own, nil
	})
}

// find finds the kernels.
func (k *rankKernels) find(e *device.Engine) error {
	const module = "near_ranks"
	l := lookup{engine: e}
	kernel := func(name string, threads int) device.Function { return l.kernel(module, name, threads, 0) }
	lists, threads := l.number(module, "near_ranks_threads"), l.number(module, "rank_threads")
	k.listed = kernel("near_ranked", lists)
	k.guess = &guessKernels{kernel("near_guess", lists), l.kernel("near_gate", "near_guessed", l.number("near_gate", "near_gate_threads"), 0)}
	for _, terms := range nearest.TextTerms() {
		k.edits[terms] = kernel("near_list_"+string(terms), lists)
	}
	for _, terms := range []nearest.Terms{nearest.Squares, nearest.Differences} {
		k.scans[terms] = &scanKernel{kernel("rank_"+string(terms), threads), threads, l.number(module, "rank_queries"), l.number(module, "rank_blocks"), k.guess}
	}
	return l.err()
}

// ranksOfQueries finds the ranks of queries, on all cores, and is what they ask of rank vectors.
func ranksOfQueries(ctx context.Context, s *scan, own *candidateColumn, of *nearest.Ranks, asks []nearest.Ask) ([]nearest.Ask, error) {
	space, _ := s.host.Column(s.host.At(own.of.Of))
	const together = 16 // that a core ranks at a time
	found, errs := make([]nearest.Ask, len(asks)), make([]error, len(asks))
	err := s.engine.Host.Crew.Run(ctx, (len(asks)+together-1)/together, func(_ *run.Shift, unit int) {
		searcher := of.Searcher()
		for i := unit * together; i < min(len(asks), (unit+1)*together); i++ {
			asker, err := asks[i].Query.Asker(space)
			if errs[i] = err; err == nil {
				found[i] = of.Asked(&asks[i], searcher.Ranks(asker))
			}
		}
	})
	return found, errors.Join(err, errors.Join(errs...))
}

// compare makes what is near the lists of queries, compares these, and answers. at: where the starts of texts lie.
func (k *rankKernels) compare(steps *device.Steps, all *launches, own *candidateColumn, p *nearest.CandidatesPiece, near abi.Near, arena abi.Pointer, at []abi.Pointer) {
	n := len(p.Asks)
	v := abi.NearRanked{
		Near: near, Queries: arena + abi.Pointer(p.First.Queries), States: arena + abi.Pointer(p.First.States), Entries: arena + abi.Pointer(p.First.Candidates),
		Symbols: uint32(own.of.Symbols()),
	}
	if len(at) > 0 {
		v.Starts = at[0]
	}
	device.Launch(steps, k.listed, n, 1, &v)
	if len(at) == 0 {
		device.Launch(steps, all.list[own.of.Terms], n, 1, &near)
	} else {
		device.Launch(steps, k.edits[own.of.Terms], n, 1, &v)
		device.Launch(steps, all.compact, n, 1, &near)
	}
	device.Launch(steps, all.answer, n, 1, &near)
}
