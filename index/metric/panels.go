package metric

import (
	"math"
	"slices"
	"sync"

	"github.com/geniemq/geniemq/index/metric/bound"
	"github.com/geniemq/geniemq/index/metric/sums"
)

// PanelRows is how many rows are laid out together: scans whose first object is a multiple of it find the panels of a space.
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

// laid are the panels of all rows of a space, made when they are first wanted.
type laid struct {
	once sync.Once
	panels
}

// MostPanels is how many bytes the panels of a space may take: those of some ten to hundred thousand rows, which to lay out takes as long as to compare them with dozens of queries.
const MostPanels = 64 << 20

// Sieved says that many queries are compared with rows by panels where the machine can: under l2, cosine, angular and ip, and of bytes hardly ever.
func (s *Vectors) Sieved() bool {
	_, bytes := s.rows.(*table[uint8])
	return !bytes && (s.metric.Kind == L2 || s.metric.Kind == IP || s.angles())
}

// UsePanels is the same space, for one that batch after batch is compared with: its rows are laid out for many queries once, not for each batch. That takes PanelBytes of memory. Where that is more than
// MostPanels, or nothing would come of it, it is the space as it was.
func (s *Vectors) UsePanels() *Vectors {
	each := s.rows.inPart()
	with := *s
	with.laid = new(laid)
	if !s.Sieved() || s.order != nil || each < s.n && each%sums.Panel != 0 || with.PanelBytes() > MostPanels {
		return s
	}
	return &with
}

// PanelBytes is what panels take, 0 if the space uses none.
func (s *Vectors) PanelBytes() int64 {
	if s.laid == nil {
		return 0
	}
	count := int64(s.panelCount())
	return 4 * count * (sums.Panel*int64(s.dims+1) + 1)
}

func (s *Vectors) panelCount() int { return (int(s.n) + sums.Panel - 1) / sums.Panel }

// LayOut makes the panels of a space that uses them, if nobody has: in some units of work, which share does all, on several cores if it likes. Where share fails the space goes on without.
func (s *Vectors) LayOut(share func(units int, work func(unit int)) error) (err error) {
	if s.laid == nil || s.n == 0 || !s.kernels.Sieves() {
		return nil
	}
	s.laid.once.Do(func() {
		count, each := s.panelCount(), uint32(wholePanels(s.dims)/s.dims)
		all := panels{make([]float32, count*sums.Panel*s.dims), make([][sums.Panel]float32, count), make([]float32, count)}
		err = share(int((s.n+each-1)/each), func(unit int) {
			first := uint32(unit) * each
			s.rows.lay(s, all, first, min(s.n, first+each))
		})
		if err == nil {
			s.laid.panels = all
		}
	})
	return err
}

// lay lays out the rows first to end-1 of a space in their places among all panels.
func (t *table[E]) lay(s *Vectors, all panels, first, end uint32) {
	a := t.asker(s, sums.EmptyQuery(s.dims)).(*vectorAsker[E])
	a.ready()
	for first < end {
		rows, n := a.stretch(first, end, int(end-first)*s.dims)
		a.widen(rows, false)
		own := all.of(int(first), n, s.dims)
		own.lay(s.kernels, s.metric, s.dims, a.wide[:n*s.dims])
		first += uint32(n)
	}
}

// panelled are the panels of all rows, nil of a space that does not use any.
func (a *vectorAsker[E]) panelled() *panels {
	s := a.space
	err := s.LayOut(func(units int, work func(unit int)) error {
		for unit := range units {
			work(unit)
		}
		return nil
	})
	if err != nil || s.laid == nil || len(s.laid.squares) == 0 {
		return nil
	}
	return &s.laid.panels
}

// wholePanels is scanned, as whole panels have it: of rows of more than a thousand elements that is one panel.
func wholePanels(dims int) int { return max(1, scanned/(sums.Panel*dims)) * sums.Panel * dims }
