package distance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/schema"
)

// What columns say in index beside the names of access paths: what has been there before, and counts.
const (
	hashed = "lsh"
	grams  = Ngram
)

// How the elements of vectors are stored.
const (
	StorageF32 = "f32"
	StorageF16 = "f16"
	StorageU8  = "u8"
)

// Values is what the objects of a column are, as far as distances are concerned.
type Values uint8

// The sorts of values.
const (
	Vectors Values = iota + 1
	Points
	Texts
)

// String returns a word for people.
func (v Values) String() string { return [...]string{"nothing", "vectors", "points", "texts"}[v] }

// metricsOf are the metrics of a sort of values, the default first.
func metricsOf(v Values) []string {
	switch v {
	case Points:
		return []string{"geo"}
	case Texts:
		return []string{"edit"}
	}
	return []string{"l2", "l1", "linf", "l3", "l4", "l5", "l6", "l7", "l8", "cosine", "angular", "ip", "hamming"}
}

// ParseMetric reads the name of a metric as a schema has it: l3 to l8 are those with an exponent.
func ParseMetric(name string) (metric.Metric, error) {
	if len(name) == 2 && name[0] == 'l' && name[1] >= '3' && name[1] <= '8' {
		return metric.Metric{Kind: metric.Lp, P: int(name[1] - '0')}, nil
	}
	m := metric.Metric{Kind: metric.Kind(name)}
	switch m.Kind {
	case metric.L1, metric.L2, metric.Linf, metric.Cosine, metric.Angular, metric.IP, metric.Hamming, metric.Edit, metric.Geo:
		return m, nil
	}
	return metric.Metric{}, fmt.Errorf("metric %q is unknown: there are l1, l2, linf, l3 to l8, cosine, angular, ip and hamming of vectors, edit of strings, geo of points", name)
}

// MetricName is the name of a metric as a schema has it.
func MetricName(m metric.Metric) string {
	if m.Kind == metric.Lp {
		return fmt.Sprintf("l%d", m.P)
	}
	return string(m.Kind)
}

// Hashed says that a column of vectors is indexed by hash functions: index names them, or the column says nothing of distances.
func Hashed(c *schema.Column) bool {
	return slices.Contains(c.Index, hashed) || c.Index == nil && c.Metric == "" && c.Storage == ""
}

// Nearest says that a column is searched by distance where a query does not say otherwise: its schema says something of distances. Strings and
// sequences that say nothing can be searched so all the same, where a query asks for it.
func Nearest(c *schema.Column) bool {
	return c.Metric != "" || c.Storage != "" ||
		slices.ContainsFunc([]string(c.Index), func(name string) bool { return name != hashed && name != grams })
}

// Check fills in what a column leaves open of how it is searched by distance, and returns every fault. It leaves a column alone that says nothing of it, but
// for points, which are searched in no other way.
func Check(c *schema.Column, of Values) []error {
	var faults schema.Faults
	if of == Points || Nearest(c) {
		c.Metric = cmp.Or(c.Metric, metricsOf(of)[0])
		if of == Vectors {
			c.Storage = cmp.Or(c.Storage, kept(c), StorageF32)
		}
		if c.Index == nil && of != Texts {
			c.Index = schema.Names{Scan}
		}
	}
	if _, err := ParseMetric(cmp.Or(c.Metric, "l2")); err != nil {
		faults = append(faults, err)
	} else {
		faults.If(c.Metric != "" && !slices.Contains(metricsOf(of), c.Metric), "metric %s does not compare %v: use %s", c.Metric, of, schema.List(metricsOf(of)))
	}
	faults.If(c.Storage != "" && of != Vectors, "storage belongs to type vector")
	faults.If(c.Storage != "" && of == Vectors && !slices.Contains([]string{StorageF32, StorageF16, StorageU8}, c.Storage),
		"storage %q is unknown: use f32, f16 (where that loses nothing) or u8 (integers from 0 to 255)", c.Storage)
	faults.If(c.Index != nil && len(c.Index) == 0, "index names nothing: leave it out, or name ways to search the column")
	seen := make(map[string]bool)
	for _, name := range c.Index {
		faults.If(seen[name], "index names %s twice", name)
		seen[name] = true
		if err := checkPath(c, name, of); err != nil {
			faults = append(faults, err)
		}
	}
	return append(faults, c.CheckPaths(func(path string) bool { return slices.Contains(c.Index, path) })...)
}

// kept is how a column of vectors keeps them for rescoring, where it says so; else nothing is known.
func kept(c *schema.Column) string {
	if c.Keep == StorageF32 || c.Keep == StorageU8 {
		return c.Keep
	}
	return ""
}

// checkPath says why a column cannot be searched in a way.
func checkPath(c *schema.Column, name string, of Values) error {
	switch {
	case c.Metric == string(metric.IP) && name != Scan:
		return fmt.Errorf("index %s is no way to search by ip, since products are no distances: use scan, or cosine with vectors of one length", name)
	case name == Scan, name == hashed && of == Vectors, name == grams && of == Texts:
		return nil
	case name == hashed || name == grams:
		return fmt.Errorf("index %s is no way to search %v", name, of)
	}
	if p := pathNamed(name); p != nil {
		switch {
		case !slices.Contains(p.Of, of):
			return fmt.Errorf("index %s is no way to search %v", name, of)
		case p.Check != nil:
			return p.Check(c)
		}
		return nil
	}
	return fmt.Errorf("index %q is unknown: there are %s", name, strings.Join(Methods()[1:], ", "))
}

// Methods are the names of all ways to search, as queries have them. The first leaves the choice to the worker.
func Methods() []string {
	names := []string{Auto, Scan}
	for _, p := range Paths() {
		names = append(names, p.Name)
	}
	return append(names, hashed, grams)
}

// Auto leaves the way to search to the worker. Scan compares with every object. Ngram compares with those that share enough n-grams to be within the radius, of
// texts that have n-grams; without a radius it counts them, and is no search by distance.
const (
	Auto  = "auto"
	Scan  = "scan"
	Ngram = "ngram"
)
