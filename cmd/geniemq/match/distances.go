package match

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/geniemq/geniemq/cmd/geniemq/match/alike"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/schema"
)

// keepNothing says of vectors that the index has but their keywords.
const keepNothing = "none"

// measure finds how distances of a column of vectors or points are measured: by the service itself, where the column has a metric; else candidates are found by
// hash functions, and then put into order by a measure. none says why there is none.
func (c *column) measure(described *schema.Column) (none string) {
	name := described.Metric
	switch {
	case described.Type == schema.PointColumn:
		name = string(metric.Geo)
	case distance.Nearest(described):
		name = cmp.Or(name, string(metric.L2))
	case described.Keep == keepNothing:
		return "the index keeps no vectors of it"
	case described.Similarity == "cosine":
		name, c.by = string(metric.Angular), "angular"
	case described.Similarity == "l1" || described.Similarity == "laplacian":
		name, c.by = string(metric.L1), "l1"
	default:
		name, c.by = string(metric.L2), "l2"
	}
	m, err := distance.ParseMetric(name)
	switch {
	case err != nil: // of a schema that was checked
		return err.Error()
	case m.Kind == metric.IP:
		return "it is searched by products, which say nothing of likeness"
	}
	c.Scale = alike.Own(m, described.Dims)
	return ""
}

// scales says of each column of vectors or points what its distances are worth, and leaves out what cannot be compared or would be twice.
//
// Which distance is far is in the data, and no default is right: a degree is near for a city and far for a house. So a column whose metric has no scale of its own is
// compared only where --max-distance gives one, or where it is all that there is: then pairs are just the nearest.
func (o *options) scales(q *question, input *schema.Schema) error {
	most := maps.Clone(o.most)
	var far []string
	for i := range q.columns {
		if c := &q.columns[i]; alike.Far(c.Type) {
			far = append(far, c.name)
		}
	}
	if d, ok := most[""]; ok {
		if delete(most, ""); len(far) != 1 {
			return fmt.Errorf("--max-distance %v: say of which column, as in --max-distance where=%[1]v; vectors or points are compared in %s", d, schema.List(far))
		}
		most[far[0]] = d
	}
	for name, d := range most {
		at := q.named(name)
		if at < 0 || !alike.Far(q.columns[at].Type) {
			return fmt.Errorf("--max-distance %s=%v: no vectors or points of that name are compared", name, d)
		}
		s := &q.columns[at].Scale
		s.Most, s.Known, s.Limit = d, true, true
	}
	leading := ""
	if q.leading >= 0 {
		leading = q.columns[q.leading].name
	}
	parts := make(map[string]bool) // of places, which are compared as such
	for i := range q.columns {
		c := &q.columns[i]
		if c.Type == schema.PointColumn && (c.Scale.Known || c.name == leading) && len(o.pairs) == 0 {
			for _, name := range input.Columns[c.input].From {
				parts[name] = true
			}
		}
	}
	q.columns = slices.DeleteFunc(q.columns, func(c column) bool {
		lost := alike.Far(c.Type) && !c.Scale.Known && c.name != leading
		if lost {
			q.left = append(q.left, c.name)
		}
		return lost || !alike.Far(c.Type) && parts[input.Columns[c.input].Name]
	})
	q.leading = q.named(leading)
	if q.leading < 0 || !alike.Far(q.columns[q.leading].Type) {
		return nil
	}
	if !o.minSaid {
		o.min = 0
	}
	if c := &q.columns[q.leading]; !c.Scale.Known && len(q.columns) > 1 {
		alone := fmt.Sprintf("by --map %s=%s", c.name, input.Columns[c.input].Name)
		if o.within {
			alone = "by a schema that skips the others"
		}
		return fmt.Errorf("column %s is compared by its distances (%s), and nobody knows which of them is far beside other columns: say so by --max-distance %[1]s=DISTANCE, or compare it alone %s",
			c.name, distance.MetricName(c.Scale.Metric), alone)
	}
	return nil
}

// degrees is the unit of angles; a service that rescores tells them as arcs.
func (c *column) degrees(d float64) float64 {
	if c.by == "angular" {
		return d * 180 / math.Pi
	}
	return d
}
