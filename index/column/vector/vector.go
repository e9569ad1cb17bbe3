// Package vector is the type of columns of vectors: cells of numbers become keywords by hash functions, so that near vectors have many in common.
//
// # What is promised
//
// A column has m attributes, one for each hash function, of which each object with a vector has one keyword. A query's vector becomes m items,
// one for each function, of the keywords that match its own: so the count of the column is how many functions agree, times the weight. Count
// over m estimates the functions' similarity s (lsh.Parameters.Similarity), which falls with the distance.
//
// # What hash functions are made of
//
// Their parameters are learned from a sample before the first object is added (column.Learner), as far as the schema leaves them open, and then
// stand in the schema: in its fields what people understand, and in the field learned all of it, as package lsh encodes it. An index file holds its
// schema; so queries hash as objects did, and there is no second place that could say otherwise. A schema whose fields were changed
// after learning is refused.
//
// A column that is searched by distance (package distance) keeps its vectors, and has attributes only where index names lsh too.
//
// # One rule, two sides
//
// Objects and queries come to their numbers by Parse and to keywords by lsh.Functions, which give the same bits on every machine.
package vector

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/lsh"
	"github.com/geniemq/geniemq/index/schema"
)

// DefaultFunctions is m, by the paper's choice for epsilon and delta of 0.06.
const DefaultFunctions = 237

// How vectors are kept for comparing them with queries.
const (
	keepFloats  = distance.StorageF32
	keepHalves  = distance.StorageF16
	keepBytes   = distance.StorageU8
	keepNothing = "none"
)

// Column is the type of columns of vectors.
type Column struct{}

// Name implements column.Type.
func (Column) Name() string { return string(schema.VectorColumn) }

// In implements column.Type: records of all kinds.
func (Column) In(kind schema.Kind) bool { return kind.Mixed() }

// Check implements column.Type.
func (Column) Check(_ *schema.Schema, c *schema.Column) []error {
	faults := schema.Faults(distance.Check(c, distance.Vectors))
	own := []string{"dims", "from", "store", "metric", "storage", "index", "tree", "permutation", "cells", "auto_for"}
	faults.If(c.Dims < 0 || c.Dims > lsh.MaxDim, "dims %d: must be 1 to %d", c.Dims, lsh.MaxDim)
	faults.If(c.From != nil && len(c.From) == 0, "from names no input column: leave it out, or name some")
	if !distance.Hashed(c) {
		for _, err := range column.Foreign(c, own...) {
			faults = append(faults, fmt.Errorf("%w (that is, of vectors, with index: [lsh])", err))
		}
		return faults
	}
	faults = append(faults, column.Foreign(c, append(own, "similarity", "functions", "buckets", "width", "reach", "seed", "recall", "keep", "learned", "layout")...)...)
	c.Keep = cmp.Or(c.Keep, keepOf(c))
	faults.If(distance.Nearest(c) && c.Keep != keepOf(c), "keep %s and storage %s: a vector is stored once, so leave keep out", c.Keep, c.Storage)
	return append(faults, checkHashed(c)...)
}

// keepOf is how vectors are kept for rescoring, where the schema does not say: as they are stored for distances, if they are.
func keepOf(c *schema.Column) string {
	if distance.Nearest(c) {
		return c.Storage
	}
	return keepFloats
}

// checkHashed fills in what hash functions leave open, and returns every fault.
func checkHashed(c *schema.Column) []error {
	var faults schema.Faults
	c.Similarity = cmp.Or(c.Similarity, lsh.L2.String())
	if c.Functions == 0 && c.Recall == 0 {
		c.Functions = DefaultFunctions
	}
	family, err := lsh.ParseFamily(c.Similarity)
	faults.If(err != nil, "similarity %q is unknown: use l2, l1, cosine or laplacian", c.Similarity)
	if _, err := schema.ParseLayout(c.Layout, schema.Ordinal); err != nil {
		faults = append(faults, err)
	}
	faults.If(c.Functions < 0 || c.Functions > lsh.MaxFunctions, "functions %d: must be 1 to %d", c.Functions, lsh.MaxFunctions)
	faults.If(c.Buckets < 0 || c.Buckets == 1 || c.Buckets > lsh.MaxBuckets, "buckets %d: must be 2 to %d", c.Buckets, lsh.MaxBuckets)
	faults.If(!(c.Width >= 0 && c.Width <= 1e20), "width %g: must be above 0, in units of distance", c.Width)
	faults.If(c.Reach != nil && (*c.Reach < 0 || *c.Reach > lsh.MaxReach), "reach: must be 0 to %d", lsh.MaxReach)
	faults.If(!(c.Recall >= 0 && c.Recall < 1), "recall %g: must be above 0 and below 1", c.Recall)
	faults.If(!slices.Contains([]string{keepFloats, keepHalves, keepBytes, keepNothing}, c.Keep), "keep %q is unknown: use f32, u8 (integers from 0 to 255) or none", c.Keep)
	faults.If(c.Keep == keepHalves && c.Storage != keepHalves, "keep f16 is storage: f16")
	if family == lsh.Cosine || family == lsh.Laplacian {
		faults.If(c.Reach != nil && *c.Reach > 0, "reach belongs to similarity l2 and l1: %v has no neighbouring buckets", family)
	}
	if family == lsh.Cosine {
		faults.If(c.Width != 0 || c.Buckets != 0 && c.Buckets != 2, "width and buckets belong to the other similarities: cosine has the two sides of a plane")
	}
	if len(faults) == 0 && c.Learned != nil {
		if _, err := parameters(c); err != nil {
			faults = append(faults, err)
		}
	}
	return faults
}

// parameters are what was learned, which must be what the fields say.
func parameters(c *schema.Column) (lsh.Parameters, error) {
	p, err := lsh.Decode(c.Learned)
	if err != nil {
		return p, fmt.Errorf("learned: %w", err)
	}
	reach := 0
	if c.Reach != nil {
		reach = *c.Reach
	}
	if p.Family.String() != c.Similarity || p.Dim != c.Dims || p.Functions != c.Functions || p.Buckets != c.Buckets || p.Width != c.Width ||
		p.Reach != reach || p.Seed != c.Seed {
		return p, errors.New("learned does not fit the other fields: it is what building fills in; leave it out where they change")
	}
	return p, nil
}

// Attributes implements column.Type: one a function; none where vectors are searched by distance alone.
func (Column) Attributes(c *schema.Column) []schema.AttributeSpec {
	if !distance.Hashed(c) {
		return nil
	}
	specs := make([]schema.AttributeSpec, c.Functions)
	for i := range specs {
		specs[i] = schema.AttributeSpec{
			Name: fmt.Sprintf("%s (%d)", c.Name, i), Type: schema.Ordinal, Keywords: uint32(c.Buckets), Layout: c.Layout, Distinct: true,
		}
	}
	return specs
}

// Keeps implements column.Keeper.
func (Column) Keeps(_ *schema.Schema, c *schema.Column) schema.KeptSpec {
	keep := cmp.Or(c.Storage, c.Keep)
	if keep == keepNothing {
		return schema.KeptSpec{Returned: c.Store}
	}
	return schema.KeptSpec{Form: schema.KeptVectors, Returned: c.Store, Dimensions: c.Dims, Bytes: keep == keepBytes, Halves: keep == keepHalves}
}

// functions makes the hash functions of a column.
func functions(c *schema.Column) (*lsh.Functions, error) {
	if c.Learned == nil {
		return nil, errors.New("its hash functions have not been learned from data")
	}
	p, err := parameters(c)
	if err != nil {
		return nil, err
	}
	return lsh.New(p)
}
