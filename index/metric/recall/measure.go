package recall

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/internal/spread"
)

// Path is an approximate search that looks at objects in steps: those of the first steps, whichever they are, are compared with the query.
type Path interface {
	// Steps is how many steps a search for k neighbours takes with an effort. It does not fall where k or the effort rises.
	Steps(k uint32, effort float64) uint32
	// Locator makes what one goroutine asks.
	Locator() Locator
}

// Locator finds out at which step, from 0, the search comes to some objects whose query is object number query: step says it of object number i of
// them, where k neighbours are looked for. Where objects are steps, the query itself is none. The objects come in the order of (value, id), and never is
// the query among them. What it returns holds until the next call.
type Locator func(query uint32, asker metric.Asker, objects []metric.Hit) (step func(i int, k uint32) uint32)

// Plan says what is measured.
type Plan struct {
	Queries []uint32  // objects that are asked, each held out
	Ks      []uint32  // ascending; what exceeds the number of objects is left out
	Efforts []float64 // ascending
	// Aid is a device that finds the neighbours, where there is one and the objects are vectors.
	Aid *metric.Aid
}

// Measure finds the neighbours of the queries by comparing them with all objects, and what a path finds of them. The table does not depend on the number
// of workers.
func Measure(ctx context.Context, space metric.Space, path Path, plan Plan, workers int) (*Table, error) {
	t := &Table{Efforts: plan.Efforts}
	for _, k := range plan.Ks {
		if k < space.Len() { // the query is none
			t.Ks = append(t.Ks, k)
		}
	}
	if len(t.Ks) == 0 || len(plan.Queries) == 0 || len(plan.Efforts) == 0 {
		return &Table{}, nil
	}
	t.Objects, t.Queries = space.Len()-1, uint32(len(plan.Queries))
	near, err := t.elsewhere(ctx, space, &plan)
	counted := make([][]uint32, len(plan.Queries))
	if err == nil {
		err = spread.Run(ctx, workers, (len(counted)+together-1)/together, func() func(int) {
			m := &measurer{table: t, space: space, path: path, locate: path.Locator()}
			return func(i int) {
				lo, hi := i*together, min((i+1)*together, len(counted))
				m.ask(plan.Queries[lo:hi], near[lo:hi], counted[lo:hi])
			}
		})
	}
	if err != nil {
		return nil, fmt.Errorf("measuring recall: %w", err)
	}
	t.Found = make([]uint64, len(t.Ks)*len(t.Efforts))
	for _, found := range counted {
		for i, n := range found {
			t.Found[i] += uint64(n)
		}
	}
	return t, nil
}

// What is compared at a time: so many queries, for which objects are read once, with so many objects.
const (
	together = 8
	run      = 512
)

// measurer is what one goroutine asks with.
type measurer struct {
	table  *Table
	space  metric.Space
	path   Path
	locate Locator
	askers [together]metric.Asker
	near   [together]neighbourhood
	values [together * run]float64
}

// ask writes how many neighbours are found for some queries, together at most: [query][k][effort]. Where it is not known which these are they are looked for.
func (m *measurer) ask(queries []uint32, near [][]metric.Hit, found [][]uint32) {
	askers := m.askers[:0]
	for i, query := range queries {
		if near[i] == nil {
			m.near[len(askers)].reset(query, m.table.most())
			askers = append(askers, m.space.Of(query))
		}
	}
	if len(askers) > 0 {
		m.compare(askers)
	}
	compared := 0
	for i, query := range queries {
		if near[i] != nil {
			found[i] = m.found(query, m.space.Of(query), near[i])
			continue
		}
		found[i] = m.found(query, askers[compared], m.near[compared].objects)
		compared++
	}
}

// compare finds the neighbours of queries by comparing them with all objects.
func (m *measurer) compare(askers []metric.Asker) {
	for lo, n := uint64(0), uint64(m.space.Len()); lo < n; lo += run {
		count := min(run, n-lo)
		metric.Block(askers, uint32(lo), uint32(lo+count), m.values[:])
		for i := range askers {
			m.near[i].add(uint32(lo), m.values[uint64(i)*count:][:count])
		}
	}
	for i := range askers {
		m.near[i].cut()
	}
}

// found counts what is found of the neighbours of a query, [k][effort]. The objects are all that are as near as the last of them at most, in order.
func (m *measurer) found(query uint32, asker metric.Asker, objects []metric.Hit) []uint32 {
	step := m.locate(query, asker, objects)
	efforts := m.table.Efforts
	found := make([]uint32, len(m.table.Ks)*len(efforts))
	for i, k := range m.table.Ks {
		row := found[i*len(efforts) : (i+1)*len(efforts)]
		for at, h := range objects {
			if h.Value > objects[k-1].Value {
				break
			}
			// It is found with this effort and all above.
			first := step(at, k)
			j := sort.Search(len(efforts), func(j int) bool { return m.path.Steps(k, efforts[j]) > first })
			if j < len(row) {
				row[j]++
			}
		}
		sum := uint32(0)
		for j := range row {
			sum += row[j]
			row[j] = min(sum, k)
		}
	}
	return found
}

// neighbourhood gathers all objects but the query that are at most as far from it as the k-th of them.
type neighbourhood struct {
	query   uint32
	k, full int
	most    float64 // what is farther is none
	objects []metric.Hit
}

func (b *neighbourhood) reset(query uint32, k int) {
	b.query, b.k, b.full, b.most, b.objects = query, k, 2*k, math.Inf(1), b.objects[:0]
}

// add takes in objects from number lo on, which are k in all at least.
func (b *neighbourhood) add(lo uint32, values []float64) {
	for i, v := range values {
		if id := lo + uint32(i); v <= b.most && id != b.query {
			b.objects = append(b.objects, metric.Hit{Value: v, ID: id})
		}
	}
	if len(b.objects) >= b.full {
		b.cut()
		b.full = 2*len(b.objects) + run
	}
}

// cut sorts the objects and drops what is too far.
func (b *neighbourhood) cut() {
	slices.SortFunc(b.objects, metric.Hit.Compare)
	b.most = b.objects[b.k-1].Value
	for b.objects[len(b.objects)-1].Value > b.most {
		b.objects = b.objects[:len(b.objects)-1]
	}
}
