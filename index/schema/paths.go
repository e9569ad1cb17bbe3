package schema

import (
	"cmp"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// TreeOptions are those of the access path tree. The zero value leaves all to the builder.
type TreeOptions struct {
	// Capacity is how many children a node of a pivot tree has, 2 to 256. Default auto.
	Capacity Count `yaml:"capacity,omitempty"`
	// Leaf is how many objects a leaf has, 1 to 1,024. Default auto.
	Leaf Count `yaml:"leaf,omitempty"`
	// Bounds are auto, box or pivot. Default auto: boxes where there are coordinates.
	Bounds string `yaml:"bounds,omitempty"`
	Seed   uint64 `yaml:"seed,omitempty"`
}

// PermutationOptions are those of the access path permutation.
type PermutationOptions struct {
	// Permutants, 1 to 255. Default 64.
	Permutants int `yaml:"permutants,omitempty"`
	// Similarity of ranks: rho or footrule. Default rho.
	Similarity string `yaml:"similarity,omitempty"`
	// Fraction of the objects that are compared where a query does not say, above 0 and at most 1. Default 0.01.
	Fraction float64 `yaml:"fraction,omitempty"`
	Seed     uint64  `yaml:"seed,omitempty"`
}

// CellsOptions are those of the access path cells.
type CellsOptions struct {
	// Cells is how many there are, 1 to 1,048,576. Default auto.
	Cells Count  `yaml:"cells,omitempty"`
	Seed  uint64 `yaml:"seed,omitempty"`
}

// What Column.AutoFor names.
const (
	ForCPU = "cpu"
	ForGPU = "gpu"
)

// Count is a number, or auto, which is 0.
type Count int

const auto = "auto"

// UnmarshalYAML reads a number of at least 1, or auto.
func (c *Count) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode && node.Value == auto {
		*c = 0
		return nil
	}
	var n int
	if err := node.Decode(&n); err != nil || n < 1 {
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: %.40q is neither auto nor a number of at least 1", node.Line, node.Value)}}
	}
	*c = Count(n)
	return nil
}

// Faults are all that is wrong with what somebody wrote.
type Faults []error

// If adds a fault where something is wrong.
func (f *Faults) If(wrong bool, format string, args ...any) {
	if wrong {
		*f = append(*f, fmt.Errorf(format, args...))
	}
}

// CheckPaths fills in the defaults of the options of access paths and returns every fault. takes says whether the column names a path.
func (c *Column) CheckPaths(takes func(path string) bool) []error {
	var faults Faults
	faults.If(c.Tree != nil && !takes("tree"), "tree: index does not name it: write index: [tree]")
	faults.If(c.Permutation != nil && !takes("permutation"), "permutation: index does not name it: write index: [permutation]")
	faults.If(c.Cells != nil && !takes("cells"), "cells: index does not name it: write index: [cells]")
	faults.If(c.AutoFor != "" && !takes("cells") && !takes("permutation"), "auto_for: index names neither cells nor permutation, so there is nothing to choose")
	faults.If(c.AutoFor != "" && c.AutoFor != ForCPU && c.AutoFor != ForGPU, "auto_for %q is unknown: use cpu or gpu", c.AutoFor)
	if t := c.Tree; t != nil {
		faults.If(t.Capacity == 1 || t.Capacity > 256, "tree.capacity %d: must be auto or 2 to 256", t.Capacity)
		faults.If(t.Leaf > 1024, "tree.leaf %d: must be auto or 1 to 1024", t.Leaf)
		faults.If(t.Bounds != "" && t.Bounds != auto && t.Bounds != "box" && t.Bounds != "pivot", "tree.bounds %q is unknown: use auto, box or pivot", t.Bounds)
	}
	if p := c.Permutation; p != nil {
		p.Permutants = cmp.Or(p.Permutants, 64)
		p.Similarity = cmp.Or(p.Similarity, "rho")
		p.Fraction = cmp.Or(p.Fraction, 0.01)
		faults.If(p.Permutants < 1 || p.Permutants > 255, "permutation.permutants %d: must be 1 to 255", p.Permutants)
		faults.If(p.Similarity != "rho" && p.Similarity != "footrule", "permutation.similarity %q is unknown: use rho or footrule", p.Similarity)
		faults.If(!(p.Fraction > 0 && p.Fraction <= 1), "permutation.fraction %g: must be above 0 and at most 1", p.Fraction)
	}
	if k := c.Cells; k != nil {
		faults.If(k.Cells > 1<<20, "cells.cells %d: must be auto or 1 to %d", k.Cells, 1<<20)
	}
	return faults
}
