package verify

import (
	"errors"
	"fmt"
	"math"

	"github.com/geniemq/geniemq/index/forward"
	"github.com/geniemq/geniemq/index/graph"
	"github.com/geniemq/geniemq/index/tree"
)

// structures is the edit distance of trees, or of graphs. One that is missing, or too large to be compared, has none and comes last.
type structures struct {
	column *forward.Column
	unit   uint32
	size   int64
	// pattern makes the query's side ready, in the memory of an older one.
	pattern func(old pattern) pattern
	// threshold is the certificate: what has a smaller match count has at least the distance tau.
	threshold func(tau int) int
}

// pattern is what packages tree and graph compare stored ones with.
type pattern interface {
	Distance(stored string, bound int, pace func() error) (distance int, within bool, err error)
	Resume(pace func() error) (distance int, within bool, err error)
}

func newTrees(_ *Measure, a *Asked) (measure, error) {
	query := new(tree.Tree)
	if err := query.Decode(string(a.Stored)); err != nil {
		return nil, fmt.Errorf("the tree for column %q: %w", a.Column.Name, err)
	}
	n := query.Len()
	if n > tree.MaxCompared {
		return nil, unsupported("the tree for column %q has %d nodes: trees of up to %d are compared", a.Column.Name, n, tree.MaxCompared)
	}
	return &structures{
		column: a.Column, unit: a.Unit, size: int64(n),
		pattern: func(old pattern) pattern {
			p := reused[tree.Pattern](old)
			p.Reset(query)
			return p
		},
		threshold: func(tau int) int { return tree.Threshold(n, tau) },
	}, nil
}

func newGraphs(_ *Measure, a *Asked) (measure, error) {
	query := new(graph.Graph)
	if err := query.Decode(string(a.Stored)); err != nil {
		return nil, fmt.Errorf("the graph for column %q: %w", a.Column.Name, err)
	}
	n, degree := query.Len(), query.Degree()
	if n > graph.MaxCompared {
		return nil, unsupported("the graph for column %q has %d vertices: graphs of up to %d are compared", a.Column.Name, n, graph.MaxCompared)
	}
	return &structures{
		column: a.Column, unit: a.Unit, size: int64(n),
		pattern: func(old pattern) pattern {
			p := reused[graph.Pattern](old)
			p.Reset(query)
			return p
		},
		threshold: func(tau int) int { return graph.Threshold(n, degree, tau) },
	}, nil
}

func (s *structures) bytes() int64 { return 64 * s.size }

func (s *structures) cost() int64 { return 500 + 10*s.size*s.size }

func (s *structures) certified(last *ranked, count uint32) bool {
	return s.unit > 0 && last.key != nowhere && int64(count/s.unit) < int64(s.threshold(int(last.key)))
}

func (s *structures) empty() bool { return false }

func (s *structures) report(r *ranked) float64 { return r.key }

func (s *structures) comparer(old comparer) comparer {
	c, ok := old.(*structuresComparer)
	if !ok {
		c = new(structuresComparer)
		c.pace = func() error {
			c.meter.Did(c.meter.Most())
			if c.meter.ask() {
				return c.meter.take()
			}
			return nil
		}
	}
	c.structures, c.meter, c.resuming = s, nil, false
	c.query = s.pattern(c.query)
	return c
}

type structuresComparer struct {
	*structures
	query    pattern
	meter    *meter
	pace     func() error // asks the meter
	paused   uint32       // the object whose comparison stopped,
	resuming bool         // if one did
}

func (c *structuresComparer) block() int { return 1 }

func (c *structuresComparer) compare(dst []ranked, candidates []Candidate, limit float64, m *meter) ([]ranked, error) {
	c.meter = m
	for _, o := range candidates {
		stored := c.column.Text(o.ID)
		m.Did(200 + len(stored))
		key, err := c.distance(o.ID, stored, limit)
		if err != nil {
			c.paused, c.resuming = o.ID, true
			return dst, err
		}
		if key <= limit {
			dst = append(dst, ranked{id: o.ID, count: o.Count, key: key})
		}
	}
	return dst, nil
}

// distance compares an object, or goes on with it. Above the limit the distance means nothing. The error is the pace's.
func (c *structuresComparer) distance(id uint32, stored string, limit float64) (key float64, err error) {
	if stored == "" || limit < 0 {
		return nowhere, nil
	}
	bound := math.MaxInt32
	if limit < math.MaxInt32 {
		bound = int(math.Floor(limit))
	}
	var distance int
	var within bool
	if c.resuming && c.paused == id {
		distance, within, err = c.query.Resume(c.pace)
	} else {
		distance, within, err = c.query.Distance(stored, bound, c.pace)
	}
	c.resuming = false
	for _, none := range []error{tree.ErrTooLarge, tree.ErrDamaged, graph.ErrTooLarge, graph.ErrDamaged} {
		if errors.Is(err, none) {
			return nowhere, nil
		}
	}
	if err != nil || !within {
		return nowhere, err
	}
	return float64(distance), nil
}
