package vector

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/lsh"
	"github.com/geniemq/geniemq/index/schema"
)

const (
	// sampleVectors and sampleNumbers bound the sample, by vectors and by their elements.
	sampleVectors = 1 << 17
	sampleNumbers = 32 << 20
	// fitVectors are enough where nothing is to be chosen.
	fitVectors = 10_100
	// stands is for how many times its objects a sample stands, where the data go on.
	stands = 8
	// fewVectors are too few to measure anything with.
	fewVectors = 60
	// defaultRecall is what is aimed at where the schema wants none.
	defaultRecall = .95
)

// Sample implements column.Learner.
func (Column) Sample(c *schema.Column) int {
	if c.Learned != nil {
		return 0
	}
	if !distance.Hashed(c) {
		if c.Dims > 0 {
			return 0
		}
		return fewVectors
	}
	most := sampleVectors
	if given(c) {
		most = fitVectors
	}
	return max(fewVectors, min(most, sampleNumbers/max(1, c.Dims)))
}

// given says whether a schema leaves nothing to choose.
func given(c *schema.Column) bool {
	return c.Width > 0 && c.Reach != nil && c.Functions > 0 && c.Recall == 0
}

// Learn implements column.Learner. Of vectors that are searched by distance alone it learns how many dimensions there are. Else the first sound vector says how many dimensions there are; width, reach, buckets and number of functions are those that
// cost least among those that reach the recall (lsh.Choose), by neighbours within the sample. A recall that the schema asks for and that is not
// reached is an error; where it asks for none, what comes nearest to 0.95 is taken.
func (Column) Learn(c *schema.Column, sample []schema.Cell, whole bool, workers int) error {
	vectors, err := sampled(c, sample)
	if err != nil {
		return err
	}
	if !distance.Hashed(c) {
		return nil
	}
	family, err := lsh.ParseFamily(c.Similarity)
	if err != nil {
		return err
	}
	var p lsh.Parameters
	if given(c) || len(vectors)/c.Dims < fewVectors {
		p, err = plain(c, family, vectors)
	} else {
		p, err = choose(c, family, vectors, whole, workers)
	}
	if err != nil {
		return err
	}
	if p.Functions > lsh.MaxElements/p.Dim {
		return fmt.Errorf("functions %d of %d dimensions are more than %d numbers: take fewer functions", p.Functions, p.Dim, lsh.MaxElements)
	}
	return learned(c, p)
}

// learned writes parameters into the schema.
func learned(c *schema.Column, p lsh.Parameters) error {
	data, err := p.AppendBinary(nil)
	if err != nil {
		return err
	}
	c.Dims, c.Functions, c.Buckets, c.Width, c.Seed, c.Learned = p.Dim, p.Functions, p.Buckets, p.Width, p.Seed, data
	c.Reach = &p.Reach
	return nil
}

// sampled returns the vectors of a sample that are sound, and says how many dimensions they have. The others are refused when they are added.
func sampled(c *schema.Column, sample []schema.Cell) (vectors []float32, err error) {
	takes, err := plainObjectsOf(c)
	if err != nil {
		return nil, err
	}
	var x []float32
	var refused error // the first cell that is no vector
	for i := range sample {
		x, err = appendCell(x[:0], &sample[i])
		if err = sample[i].Refused(err); err == nil && len(x) > 0 {
			err = cmp.Or(finite(x), takes.takes(x))
		}
		if refused = cmp.Or(refused, err); err != nil || len(x) == 0 { // what is left of a cell at fault says nothing of others
			continue
		}
		if c.Dims == 0 {
			if len(x) > lsh.MaxDim {
				return nil, fmt.Errorf("the first vector has %d elements: vectors have at most %d", len(x), lsh.MaxDim)
			}
			c.Dims = len(x)
		}
		if len(x) == c.Dims {
			vectors = append(vectors, x...)
		}
	}
	switch {
	case c.Dims > 0:
	case refused != nil:
		return nil, fmt.Errorf("no cell at the beginning of the data is a vector, so that it is not known how many elements they have: "+
			"the first that has a value: %w; correct the data or the schema, or give dims", refused)
	default:
		return nil, errors.New("there is no vector, so that it is not known how many elements they have: give dims")
	}
	return vectors, nil
}

// choose lets data decide what the schema leaves open. Where the sample is not all of them nobody knows how many there are: there may well be eight times as many, and if
// there are more, the reach can make up for it when all have been seen (Measure).
func choose(c *schema.Column, family lsh.Family, vectors []float32, whole bool, workers int) (lsh.Parameters, error) {
	n := len(vectors) / c.Dims
	o := lsh.Options{
		Family: family, Dim: c.Dims, Buckets: c.Buckets, Seed: c.Seed, Workers: max(1, workers),
		Recall: cmp.Or(c.Recall, defaultRecall), Queries: min(200, n/5), Candidates: min(Candidates, n/3), Neighbours: min(Neighbours, n/10),
	}
	if !whole {
		o.Objects = stands * n
	}
	if c.Functions > 0 {
		o.Functions = []int{c.Functions}
	}
	if c.Width > 0 {
		o.Widths = []float64{c.Width}
	}
	if c.Reach != nil {
		o.Reaches = []int{*c.Reach}
	}
	choice, err := lsh.Choose(vectors, o)
	var unreached *lsh.UnreachedError
	if errors.As(err, &unreached) && (c.Recall == 0 || !whole) {
		choice, err = unreached.Best, nil
	}
	if err != nil {
		return lsh.Parameters{}, err
	}
	if c.Recall == 0 {
		// What was measured on a sample does not hold for all objects. Where all are measured, this table says which reaches there are to choose from.
		choice.Parameters.Recall = lsh.Table{}
	}
	return choice.Parameters, nil
}

// plain are parameters that leave nothing to choose, or of so few vectors that whatever they are is good enough.
func plain(c *schema.Column, family lsh.Family, vectors []float32) (lsh.Parameters, error) {
	p := lsh.Parameters{
		Family: family, Dim: c.Dims, Functions: cmp.Or(c.Functions, DefaultFunctions), Seed: c.Seed, Width: c.Width, Buckets: c.Buckets,
		Rehash: family == lsh.L1 || family == lsh.Laplacian,
	}
	if c.Reach != nil {
		p.Reach = *c.Reach
	}
	n := len(vectors) / c.Dims
	mean, pairs := 0.0, 0
	for i := range min(n, fewVectors) {
		for j := range i {
			mean += family.Distance(vectors[i*c.Dims:(i+1)*c.Dims], vectors[j*c.Dims:(j+1)*c.Dims])
			pairs++
		}
	}
	if p.Width == 0 && family != lsh.Cosine {
		var err error
		if p.Width, err = lsh.WidthOf(mean / 2 / float64(max(1, pairs))); err != nil {
			return p, err
		}
	}
	if n == 0 { // and dims is given
		vectors = make([]float32, c.Dims)
	}
	_, err := p.Fit(vectors, 1)
	return p, err
}
