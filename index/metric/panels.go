package metric

import (
	"math"
	"slices"
	"sync"

	"github.com/geniemq/geniemq/index/metric/bound"
	"github.com/geniemq/geniemq/index/metric/sums"
)

// PanelRows is how many rows are laid out together: only scans that begin with one of them find the panels of a space.
const PanelRows = sums.Panel

// panels are rows as many queries are compared with them at once: as columns, of sums.Panel rows each.
type panels struct {
	elements []float32
	lengths  [][sums.Panel]float32 // of l2 squares that are not more than they are, of others norms
	squares  []float32             // of each panel the largest square of a norm, not a number if a row is damaged
}

// lay lays out rows, in the memory of earlier ones.
func (p *panels) lay(k *sums.Kernels, m Metric, dims int, rows []float32) {
	size := dims * sums.Panel
	count := (len(rows) + size - 1) / size
	p.elements = slices.Grow(p.elements[:0], count*size)[:count*size]
	p.lengths, p.squares = slices.Grow(p.lengths[:0], count)[:count], slices.Grow(p.squares[:0], count)[:count]
	less := bound.Float32Down(1 - 2*bound.FusedGamma(dims) - 0x1p-23) // which allows for rounding the product
	for i := range count {
		panel, lengths := p.elements[i*size:(i+1)*size], &p.lengths[i]
		k.Turn(panel, rows[i*size:min((i+1)*size, len(rows))], dims)
		k.Lengths(panel, dims, lengths)
		p.squares[i] = slices.Max(lengths[:]) // which is NaN if one is
		for r, square := range lengths {
			switch {
			case m.Kind == L2:
				lengths[r] = square * less
			case square < 0x1p-100: // of which it is not known well enough
				lengths[r] = float32(math.NaN())
			default:
				lengths[r] = float32(math.Sqrt(float64(square)))
			}
		}
	}
}

// of are those of n rows, of which the first begins a panel.
func (p *panels) of(first, n, dims int) panels {
	lo, hi := first/sums.Panel, (first+n+sums.Panel-1)/sums.Panel
	return panels{p.elements[lo*sums.Panel*dims : hi*sums.Panel*dims], p.lengths[lo:hi], p.squares[lo:hi]}
}

// largest is the largest norm of a row, not less; no number if there is a damaged row.
func (p *panels) largest(dims int) float64 {
	return math.Sqrt(float64(slices.Max(p.squares))) * (1 + 2*bound.FusedGamma(dims))
}

// laid are the panels of all rows of a space, made by whoever compares many queries with it first.
type laid struct {
	once sync.Once
	panels
}

// UsePanels is the same space, for one that batch after batch is compared with: its rows are laid out for many queries once, not for each batch. That takes PanelBytes of memory. Where nothing would
// come of it, it is the space as it was: many queries are sieved by panels under l2, cosine, angular and ip, and of bytes hardly ever.
func (s *Vectors) UsePanels() *Vectors {
	each := s.rows.inPart()
	if _, bytes := s.rows.(*table[uint8]); bytes || s.order != nil || each < s.n && each%sums.Panel != 0 || !(s.metric.Kind == L2 || s.metric.Kind == IP || s.angles()) {
		return s
	}
	with := *s
	with.laid = new(laid)
	return &with
}

// PanelBytes is what panels take, 0 if the space uses none.
func (s *Vectors) PanelBytes() int64 {
	if s.laid == nil {
		return 0
	}
	rows := (int64(s.n) + sums.Panel - 1) / sums.Panel * sums.Panel
	return 4*rows*int64(s.dims+1) + 4*rows/sums.Panel
}

// panelled are the panels of all rows, nil of a space that does not use any.
func (a *vectorAsker[E]) panelled() *panels {
	s := a.space
	if s.laid == nil {
		return nil
	}
	s.laid.once.Do(func() {
		all := &s.laid.panels
		for first := uint32(0); first < s.n; {
			rows, n := a.stretch(first, s.n, wholePanels(s.dims))
			a.widen(rows, false)
			a.own.lay(s.kernels, s.metric, s.dims, a.wide[:n*s.dims])
			all.elements, all.lengths, all.squares = append(all.elements, a.own.elements...), append(all.lengths, a.own.lengths...), append(all.squares, a.own.squares...)
			first += uint32(n)
		}
	})
	return &s.laid.panels
}

// wholePanels is scanned, or a little less, as whole panels have it.
func wholePanels(dims int) int { return max(1, scanned/(sums.Panel*dims)) * sums.Panel * dims }
