package distance

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/cost"
	"github.com/geniemq/geniemq/index/metric/descent"
	"github.com/geniemq/geniemq/index/metric/tree"
)

// tried is a searcher of a tree that can be tried with the tree's own objects.
type tried interface {
	// try searches for what is nearest to an object, as far as the meter lets it.
	try(object uint32, want metric.Want, meter metric.Meter) (tree.Answer, error)
}

// ratios are what searches of a tree take over what the prices of their parts say: for the nearest 1, 10 and 100, and for all within a radius.
type ratios []float64

const (
	nearests = 3 // kinds of searches, before the one within a radius
	within   = nearests
	kinds    = within + 1
)

// of is the ratio of a search of a row: of so many nearest as a power of them.
func (x ratios) of(r tree.Row) float64 {
	if r.K == 0 {
		return x[within]
	}
	at := min(max(math.Log10(max(1, r.Work.Hits)), 0), nearests-1)
	below := min(int(at), nearests-2)
	return x[below] * math.Pow(x[below+1]/x[below], at-float64(below))
}

// ratios tries searches for objects of the tree. Each finds itself, so that one more is asked for. The radius is how far the tenth of an object in the middle is: where objects lie far apart, it
// is many times as far.
func (t openedTree) ratios(on On, p tree.Prices) ratios {
	s, ok := on.Searcher.(tried)
	if !ok || t.Len() < 2 {
		return []float64{1, 1, 1, 1}
	}
	rng := rand.New(rand.NewPCG(4, 4))
	var objects [cost.MostTried]uint32
	for i := range objects {
		objects[i] = rng.Uint32N(t.Len())
	}
	radius := math.Inf(1)
	return on.Device.Ratios(kinds, func(kind, n int) float64 {
		want := metric.Want{K: withinAtMost, Most: radius}
		if kind < nearests {
			want = metric.Want{K: 1 + int(math.Pow10(kind)), Most: math.Inf(1)}
		}
		want.K = min(want.K, int(t.Len()))
		var did tree.Work
		var reaches []float64 // as far as each went
		for _, object := range objects[:n] {
			a, err := s.try(object, want, &brief{left: look})
			if err != nil {
				return math.NaN()
			}
			did.Add(a.Work)
			if len(a.Hits) == want.K {
				reaches = append(reaches, a.Hits[want.K-1].Value)
			}
		}
		reach := want.Most
		if len(reaches) > 0 && kind < nearests {
			slices.Sort(reaches)
			reach = reaches[len(reaches)/2]
		}
		if kind == nearests/2 {
			radius = reach
		}
		return float64(n) * t.Cost(p, t.Did(did.Times(1/float64(n)), reach))
	})
}

const (
	// withinAtMost are wanted within a radius.
	withinAtMost = 1024
	// look is the work between two looks at the clock, some 50 us.
	look = 10_000
	// briefly is what a search that is tried may take.
	briefly = 3 * time.Millisecond
)

// brief stops a search when it has taken long enough to tell of its ratio. One that is done before never looks at the clock.
type brief struct {
	left  int
	until time.Time
}

// Most implements metric.Meter.
func (*brief) Most() int { return look }

// Did implements metric.Meter.
func (b *brief) Did(work int) { b.left -= work }

// Stop implements metric.Meter.
func (b *brief) Stop() bool {
	if b.left > 0 {
		return false
	}
	b.left = look
	now := time.Now()
	if b.until.IsZero() {
		b.until = now.Add(briefly)
	}
	return now.After(b.until)
}

// try implements tried.
func (s *treeSearcher) try(object uint32, want metric.Want, meter metric.Meter) (tree.Answer, error) {
	search, err := s.tree.Begin(tree.Ask{Asker: s.space.Of(object), Want: want})
	if err != nil {
		return tree.Answer{}, err
	}
	search.Run(meter)
	return search.End(), nil
}

// try implements tried.
func (s fewSearcher) try(object uint32, want metric.Want, meter metric.Meter) (tree.Answer, error) {
	var x [descent.Most]float64
	own := x[:s.space.Dims()]
	s.space.Coordinates(object, own)
	search, err := s.Tree.Begin(own, want, false)
	if err != nil {
		return tree.Answer{}, err
	}
	search.Run(nil, meter)
	return search.End(nil), nil
}
