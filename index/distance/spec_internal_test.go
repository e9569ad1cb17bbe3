package distance

import (
	"strings"
	"testing"

	"github.com/geniemq/geniemq/index/schema"
)

// Who is searched how: what a metric is not good for is refused with what to do instead.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		of     Values
		metric string
		index  schema.Names
		want   string // of the faults; empty: there are none
	}{
		{Vectors, "l2", schema.Names{"scan", "tree", "cells", "permutation"}, ""},
		{Vectors, "hamming", schema.Names{"tree", "permutation"}, ""},
		{Vectors, "hamming", schema.Names{"cells"}, "of which a mean is none"},
		{Vectors, "ip", nil, ""},
		{Vectors, "ip", schema.Names{"scan"}, ""},
		{Vectors, "ip", schema.Names{"tree"}, "products are no distances"},
		{Vectors, "ip", schema.Names{"scan", "cells"}, "products are no distances"},
		{Vectors, "ip", schema.Names{"permutation"}, "products are no distances"},
		{Vectors, "ip", schema.Names{"scan", "lsh"}, "products are no distances"},
		{Vectors, "l2", schema.Names{"scan", "lsh"}, ""},
		{Vectors, "dot", nil, `metric "dot" is unknown: there are l1, l2, linf, l3 to l8, cosine, angular, ip and hamming of vectors`},
		{Vectors, "geo", nil, "metric geo does not compare vectors"},
		{Points, "ip", nil, "metric ip does not compare points"},
		{Texts, "ip", nil, "metric ip does not compare texts"},
		{Points, "geo", schema.Names{"cells"}, "index cells is no way to search points"},
		{Texts, "edit", schema.Names{"cells"}, "index cells is no way to search texts"},
	} {
		column := &schema.Column{Name: "c", Metric: c.metric, Index: c.index}
		var said []string
		for _, err := range Check(column, c.of) {
			said = append(said, err.Error())
		}
		if all := strings.Join(said, "; "); (all == "") != (c.want == "") || !strings.Contains(all, c.want) {
			t.Errorf("%v by %s, index %v: %q, want %q", c.of, c.metric, c.index, all, c.want)
		}
	}
}
