package distance

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/cost"
)

// Planner chooses the ways in which queries of one column are answered on one device.
//
// Ways that are exact give the same hits, so the cheapest is taken: by what a query is expected to take a core, as the device's constants and what was
// sampled when paths were built say, times what such queries took before over what was expected (Situation.Factor). Neither changes a hit.
//
// A path that may miss hits is taken only where a recall is asked for. That choice changes hits, so it depends on the query and the index alone: it is made with the
// reference device's constants, of one query, without factors. An index that GPUs serve says so (Column.ForGPU).
//
// It is immutable, and for any number of goroutines.
type Planner struct {
	column  *Column
	each    cost.Distance
	apart   float64 // of a distance that is not beside others
	offer   float64 // a hit that is taken into account
	query   float64 // to be asked and answered, whichever way
	far     float64 // to read a vector or a text from memory, of more than near caches hold
	objects float64 // with a value
	paths   []priced
	// measured: by constants of this host. By the reference device's it is chosen which answers are given, so its prices stay.
	measured bool
}

type priced struct {
	name  string
	exact bool
	price Price
}

// Price is what a search by a path takes a core, in nanoseconds.
type Price func(a *Asked) float64

// Asked is a query as it is priced.
type Asked struct {
	*Query
	Want     metric.Want   // of all objects: more than the query's K where a filter passes few; K 0: all within are counted
	Share    float64       // of the objects, which pass
	Passing  uint32        // objects of the index; 0: all
	Objects  float64       // with a value
	Distance cost.Distance // what one takes
	Apart    float64       // more, where it is not beside others
	Far      float64       // more, where other queries have not just looked at the same objects
}

// Situation is what decides beside the query.
type Situation struct {
	Passing uint32 // objects that pass its filter
	Queries int    // that a scan would compare together
	// Part: the device holds a part of the objects, which paths do not know.
	Part bool
	// Grams is what method ngram takes, in nanoseconds; 0: counts prove nothing, or there are none.
	Grams float64
	// Factor is what searches by a method took over what was expected; nil: as expected.
	Factor func(method string) float64
	// Elsewhere is what a method takes that is not executed by this host's cores, as the time of a core that is worth as much; 0: they do it. nil: they do all.
	Elsewhere func(method string) time.Duration
}

// Choice is a way to answer a query.
type Choice struct {
	Method    string
	Predicted time.Duration // of a core, before what Factor says
	// Why and Considered are for people, of a query with Explain.
	Why        string
	Considered []Considered
}

// Considered is a way that a query could have been answered.
type Considered struct {
	Method    string
	Predicted time.Duration // of a core
	Factor    float64       // by which such queries took longer, lately
	Exact     bool
}

// Planner makes that of a column on a device, with so many objects that have a value. Where paths are bound already, their searchers tell how long searches take on this host.
func (c *Column) Planner(d *cost.Device, objects uint32, bound map[string]Searcher) *Planner {
	o := cost.Object{Metric: c.Metric, Dims: c.Dims}
	switch c.Of {
	case Points:
		o.Dims = 3
	case Vectors:
		o.Bytes = map[string]int{StorageF32: 4, StorageF16: 2, StorageU8: 1}[c.Storage]
	case Texts:
		o.Length = max(1, c.textBytes())
	}
	p := &Planner{
		column: c, each: d.Distance(o), objects: float64(objects),
		apart: d.Of(cost.Constant{Name: "apart", Reference: 40}), offer: d.Of(offerConstant),
		query: around, measured: d.Measured(),
	}
	switch c.Of {
	case Vectors:
		bytes := float64(o.Dims * o.Bytes)
		p.far = bytes * d.Of(cost.Constant{Name: "far byte", Reference: 0.036}) * max(0, 1-nearBytes/(bytes*max(1, p.objects)))
	case Texts:
		p.far = (1 + o.Length/64) * d.Of(cost.Constant{Name: "far line", Reference: 60}) * max(0, 1-nearTexts/((o.Length+8)*max(1, p.objects)))
	}
	usual := p.each.Asked(strings.Repeat("x", int(o.Length)))
	for i := range c.paths {
		name, path := c.paths[i].name, c.paths[i].path
		p.paths = append(p.paths, priced{name, path.Exact(), path.Price(On{d, usual, p.far, bound[name]})})
	}
	return p
}

// offerConstant is a hit that is taken into account.
var offerConstant = cost.Constant{Name: "offer", Reference: 80}

// around a search, nanoseconds: memory, clocks and looks at what is asked, which hardly differ by processor as searches do.
const around = 350

// nearBytes of vectors stay in a core's near caches, about: what searches by a path look at beyond is read from memory for each query, where a scan reads it once for all.
// Texts are looked at here and there, by their places, and share the caches with these and the paths.
const nearBytes, nearTexts = 2 << 20, 1 << 20

// Distance is what one takes, of a query.
func (p *Planner) Distance(q *Query) cost.Distance { return p.each.Asked(q.Text).Within(q.Most) }

// asked is a query as it is priced. Filters make paths look at more: the objects that pass are taken for evenly spread.
func (p *Planner) asked(q *Query, passing uint32) Asked {
	a := Asked{Query: q, Want: q.Want(), Share: 1, Objects: p.objects, Distance: p.Distance(q), Apart: p.apart, Far: p.far}
	if all := q.Column.Objects; passing > 0 && passing < all {
		a.Share, a.Passing = float64(passing)/float64(all), passing
		a.Want.K = int(min(p.objects, float64(a.Want.K)/a.Share))
	}
	if q.Total {
		a.Want.K = 0 // all within are counted, however many are wanted
	}
	return a
}

// fewPass is how many objects, one in so many, a scan compares one by one.
const fewPass = 8

// scan is what comparing every object that passes takes.
func (p *Planner) scan(a *Asked, queries int) float64 {
	sum := p.objects * a.Distance.Among(queries)
	if p.measured { // what is written down has no part for reading what one query alone looks at
		sum += p.objects * a.Far / float64(max(1, queries))
	}
	if a.Share*fewPass < 1 {
		sum = p.objects * a.Share * (a.Distance.Alone + p.apart)
	}
	if k := min(float64(a.K), p.objects); k > 0 && !a.Bounded {
		sum += p.offer * k * (1 + math.Log(p.objects/k)) // objects come in any order
	}
	return sum
}

// worth: a way that may miss hits has to take a tenth less than all that find them. Else rank vectors would be chosen where the recall has them compare all objects. On a GPU, which scans
// by its matrix units, it has to take a fiftieth, by a core's prices too: it pays there where it looks at about one object in 50 (docs/benchmarks/history/2026-11-30-h200-radii.md).
const worth, worthOnGPU = 0.9, 1. / 50

// few says where a recall is asked for which path that may miss hits is expected to take so much less than all that find them; "" none.
func (p *Planner) few(q *Query, passing uint32) (method string) {
	if q.Recall == 0 || q.K == 0 || q.Total {
		return ""
	}
	a := p.asked(q, passing)
	all, some := p.scan(&a, 1), math.Inf(1)
	for i := range p.paths {
		switch own := p.paths[i].price(&a); {
		case p.paths[i].exact:
			all = min(all, own)
		case own < some:
			method, some = p.paths[i].name, own
		}
	}
	least := all * worth
	if p.column.ForGPU {
		least = all * worthOnGPU
	}
	if some > least {
		return ""
	}
	return method
}

// Alike says that a planner chooses alike for two queries in the same situation: they differ in nothing but numbers and symbols, which it does not look at. How many symbols a text has it does.
func (q *Query) Alike(o *Query) bool {
	return q.Column == o.Column && (q.Column.Of != Texts || cost.Blocks(q.Text) == cost.Blocks(o.Text)) && q.K == o.K && q.Most == o.Most && q.Total == o.Total && q.Method == o.Method && q.Explain == o.Explain &&
		q.Bounded == o.Bounded && q.Fraction == o.Fraction && q.Recall == o.Recall
}

// Choose chooses the way to answer a query: what it names, or for Auto the cheapest that finds what is wanted.
func (p *Planner) Choose(q *Query, s Situation) Choice {
	a := p.asked(q, s.Passing)
	var ways [8]Considered
	all := p.ways(ways[:0], &a, &s)
	c := Choice{Method: Scan}
	switch few := ""; {
	case s.Part && (q.Method != Ngram || s.Grams == 0):
		c.Why = "a part of the objects is scanned, since paths are over all"
	case q.Method == Ngram && s.Grams == 0:
		c.Why = "within so large a radius an object need not share any n-gram with the text"
	case q.Method != Auto:
		c.Method, c.Why = q.Method, "the query names it"
	case s.Passing == 0:
		c.Why = "nothing passes the filter"
	default:
		if few = q.Column.reference.few(q, s.Passing); few != "" {
			c.Method, c.Why = few, "on the reference device it takes least for the recall"
			break
		}
		least := math.Inf(1)
		for i := range all {
			if w := &all[i]; w.Exact && float64(w.Predicted)*w.Factor < least {
				least, c.Method = float64(w.Predicted)*w.Factor, w.Method
			}
		}
		if c.Why = "it takes least of those that find all"; q.Recall > 0 && p.column.ForGPU {
			c.Why = "it takes least of those that find all, and with auto_for: gpu what may miss hits has to take a fiftieth of that"
		}
	}
	if i := slices.IndexFunc(all, func(w Considered) bool { return w.Method == c.Method }); i >= 0 {
		c.Predicted = all[i].Predicted
	}
	if q.Explain {
		c.Considered = slices.Clone(all)
	} else {
		c.Why = ""
	}
	return c
}

// ways are all that can answer a query, with what they take.
func (p *Planner) ways(to []Considered, a *Asked, s *Situation) []Considered {
	add := func(method string, ns float64, exact bool) {
		w := Considered{Method: method, Predicted: time.Duration(min(max(p.query+ns, 1), math.MaxInt64/4)), Factor: 1, Exact: exact}
		if s.Factor != nil {
			w.Factor = s.Factor(method)
		}
		if s.Elsewhere != nil {
			if took := s.Elsewhere(method); took > 0 {
				w.Predicted, w.Factor = took, 1 // which is about this host
			}
		}
		to = append(to, w)
	}
	add(Scan, p.scan(a, s.Queries), true)
	if s.Grams > 0 {
		add(Ngram, s.Grams, true)
	}
	if s.Part {
		return to
	}
	for i := range p.paths {
		path := &p.paths[i]
		if (a.K == 0 || a.Total) && !p.column.Path(path.name).Counts() {
			continue
		}
		add(path.name, path.price(a), path.exact || path.name == cellsName && a.Recall == 0)
	}
	return to
}

// Among how many queries a scan's work is estimated where nothing is known of a batch.
const usual = 64

// Work estimates how long a core takes for a query that all objects pass: that of the reference device, whoever answers it.
func (q *Query) Work() time.Duration {
	p := q.Column.reference
	s := Situation{Passing: q.Column.Objects, Queries: usual}
	if q.Column.Theta(q) >= 1 && (q.Method == Auto || q.Method == Ngram) {
		a := p.asked(q, s.Passing)
		s.Grams = p.scan(&a, usual) / 20 // about; lists are not looked at here
	}
	return p.Choose(q, s).Predicted
}

// Theta is how many n-grams an object within the radius shares with the text of a query at least (Theorem 5.2's bound: package verify, equation 1), of a column
// with n-grams; below 1 nothing is known. An empty text shares none with an empty one that has none.
func (c *Column) Theta(q *Query) int {
	n, symbols := c.Grams, q.symbols()
	if n == 0 || symbols == 0 || !(q.Most >= 0) || q.Most > float64(symbols) {
		return 0
	}
	return symbols + n - 1 - n*int(q.Most)
}
