package lsh

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Options say what Choose chooses from. A list with one value gives it; a list that is empty is filled from the data.
type Options struct {
	Family Family
	Dim    int
	// Recall is the share of the nearest Neighbours (10 by default) that must be among the first Candidates (by default the larger of 32 and 8 times Neighbours) by match
	// count; 0.95 by default.
	Recall     float64
	Neighbours int
	Candidates int
	// Functions are the numbers m to choose from: 64, 128, 237, 474 by default.
	Functions []int
	// Widths to choose from. By default for l2 and l1 half, once, twice and four times the mean distance of the Neighbours-th neighbour, for laplacian the mean paired
	// distance of the sample, as the paper has it.
	Widths []float64
	// Reaches to choose from: 0 to 4 by default for l2 and l1, else 0.
	Reaches []int
	// Buckets is D; by default 8,192 where buckets are re-hashed, else the fewest with which one hash of the sample in a thousand is clamped at most.
	Buckets int
	// Centre is where the middle bucket is where buckets are clamped; by default the sample's mean.
	Centre []float32
	// Rehash asks for re-hashing with l2 too.
	Rehash bool
	// Seed of the functions, and of what is drawn from the sample.
	Seed uint64
	// Queries are held out of the sample (100 by default), Objects (10,000) at most of the rest are searched.
	Queries, Objects int
	// Workers are how many cores may compute; 1 by default.
	Workers int
}

// Choice is what Choose has found.
type Choice struct {
	// Parameters are complete, with a recall table that was measured on the sample.
	Parameters Parameters
	// Recall is the mean over the held-out queries, Error its standard error.
	Recall, Error float64
	// Load is how many postings an average object adds to what a query counts: the mean match count. It is what is least among what reaches the recall.
	Load float64
	// Clamped is the share of the sample's hashes beyond the ends.
	Clamped float64
}

// UnreachedError says that nothing in the options reaches the recall. Best is what came nearest.
type UnreachedError struct {
	Wanted float64
	Best   Choice
}

func (e *UnreachedError) Error() string {
	p := &e.Best.Parameters
	return fmt.Sprintf("no hash functions reach a recall of %.3g: the best, %d functions of width %.4g with reach %d, has %.3f (standard error %.3f); ask for more candidates, allow more functions, or want less",
		e.Wanted, p.Functions, p.Width, p.Reach, e.Best.Recall, e.Best.Error)
}

// Choose chooses width, centre, buckets, reach and number of functions from a sample of the data, so that a recall is reached at the least cost: the fewest matches to count. The recall is that of
// real match counts of queries that are held out of the sample, less 1.645 standard errors, so that it is reached with 95 % confidence for objects as
// many as the sample has. The index has more, among which neighbours are harder to find: measure it again (Measurement) with what it holds. The error is an
// *UnreachedError when nothing reaches it.
func Choose(sample []float32, o Options) (Choice, error) {
	if err := o.fill(len(sample)); err != nil {
		return Choice{}, fmt.Errorf("choosing hash functions: %w", err)
	}
	queries, objects := o.split(sample)
	for i, part := range [][]float32{queries, objects} {
		if at := firstBeyond(part, math.MaxFloat32); at >= 0 {
			return Choice{}, fmt.Errorf("choosing hash functions: %s: %w", []string{"held-out queries", "objects"}[i],
				&ElementError{at / o.Dim, at % o.Dim, part[at], math.MaxFloat32})
		}
	}
	widths := o.Widths
	if len(widths) == 0 {
		widths = o.widths(queries, objects)
	}
	var found, nearest Choice
	for _, width := range widths {
		choices, err := o.try(queries, objects, width)
		if err != nil {
			return Choice{}, fmt.Errorf("choosing hash functions: %w", err)
		}
		for _, c := range choices {
			reached := c.Recall-1.645*c.Error >= o.Recall
			if reached && (found.Load == 0 || c.Load < found.Load) {
				found = c
			}
			if nearest.Load == 0 || c.Recall > nearest.Recall {
				nearest = c
			}
		}
	}
	if found.Load == 0 {
		return nearest, &UnreachedError{o.Recall, nearest}
	}
	return o.tabulate(found, queries, objects)
}

// fill fills in defaults and looks for faults.
func (o *Options) fill(numbers int) error {
	o.Recall = cmp.Or(o.Recall, .95)
	o.Neighbours = cmp.Or(o.Neighbours, 10)
	o.Candidates = cmp.Or(o.Candidates, max(32, 8*o.Neighbours))
	o.Queries, o.Objects, o.Workers = cmp.Or(o.Queries, 100), cmp.Or(o.Objects, 10_000), cmp.Or(o.Workers, 1)
	if len(o.Functions) == 0 {
		o.Functions = []int{64, 128, 237, 474}
	}
	if len(o.Reaches) == 0 {
		o.Reaches = []int{0}
		if o.Family.reaches() {
			o.Reaches = []int{0, 1, 2, 3, 4}
		}
	}
	if o.Family == Cosine {
		o.Widths = []float64{0}
	}
	o.Functions, o.Rehash = distinct(o.Functions), o.Rehash || o.Family == L1 || o.Family == Laplacian
	switch n := numbers / max(o.Dim, 1); {
	case !(o.Recall > 0 && o.Recall < 1):
		return fmt.Errorf("a recall of %g: take one between 0 and 1", o.Recall)
	case o.Neighbours < 1 || o.Candidates < o.Neighbours || o.Queries < 1 || o.Workers < 1:
		return fmt.Errorf("%d neighbours, %d candidates, %d queries, %d workers: all must be 1 or more, and candidates no fewer than neighbours",
			o.Neighbours, o.Candidates, o.Queries, o.Workers)
	case o.Dim < 1 || numbers%o.Dim != 0:
		return fmt.Errorf("a sample of %d numbers is no vectors of %d dimensions", numbers, o.Dim)
	case n < o.Queries+o.Candidates+1:
		return fmt.Errorf("a sample of %d vectors: %d queries and %d candidates need more than %d", n, o.Queries, o.Candidates, o.Queries+o.Candidates)
	}
	return nil
}

// split takes queries and objects out of the sample, evenly.
func (o *Options) split(sample []float32) (queries, objects []float32) {
	n := len(sample) / o.Dim
	total := min(n, o.Queries+o.Objects)
	asked := 0
	for i := range total {
		at := i * n / total
		vector := sample[at*o.Dim : (at+1)*o.Dim]
		if asked < o.Queries && (i+1)*o.Queries/total > asked {
			asked++
			queries = append(queries, vector...)
		} else {
			objects = append(objects, vector...)
		}
	}
	return queries, objects
}

// widths are those to try.
func (o *Options) widths(queries, objects []float32) []float64 {
	n, d := len(objects)/o.Dim, o.Dim
	object := func(i int) []float32 { return objects[i*d : (i+1)*d] }
	if o.Family == Laplacian {
		const pairs = 10_000
		rng, mean := rand.New(rand.NewPCG(o.Seed, 0)), 0.0
		for range pairs {
			a := rng.IntN(n)
			mean += o.Family.Distance(object(a), object((a+1+rng.IntN(n-1))%n)) / pairs
		}
		return []float64{within(mean)}
	}
	mean, asked := 0.0, len(queries)/d
	for q := range asked {
		nearest := best{limit: o.Neighbours}
		for i := range n {
			nearest.add(-o.Family.Distance(queries[q*d:(q+1)*d], object(i)), uint32(i))
		}
		last := nearest.first(o.Neighbours)
		mean -= last[len(last)-1].score / float64(asked)
	}
	var widths []float64
	for _, scale := range []float64{.5, 1, 2, 4} {
		widths = append(widths, within(mean*scale))
	}
	return widths
}

// within keeps a width that data gave in range: all of them may be equal.
func within(width float64) float64 {
	if width == 0 {
		return 1
	}
	return max(minWidth, min(maxWidth, width))
}

// try measures one width with every number of functions and reach.
func (o *Options) try(queries, objects []float32, width float64) ([]Choice, error) {
	most := o.Functions[len(o.Functions)-1]
	p := Parameters{Family: o.Family, Dim: o.Dim, Functions: most, Width: width, Seed: o.Seed, Rehash: o.Rehash, Buckets: o.Buckets, Centre: o.Centre}
	clamped, err := p.Fit(objects, o.Workers)
	if err != nil {
		return nil, err
	}
	f, err := New(p)
	if err != nil {
		return nil, err
	}
	measures := Measures{[]int{o.Neighbours}, []int{o.Candidates}, o.Reaches}
	x, err := newMeasurement(f, queries, measures, o.Functions)
	if err != nil {
		return nil, err
	}
	keywords := make([]uint32, len(objects)/o.Dim*most)
	if err := f.Hash(keywords, objects, o.Workers); err != nil {
		return nil, err
	}
	x.Add(keywords, objects, o.Workers)
	var choices []Choice
	for i, m := range o.Functions {
		for j, reach := range x.measures.Reaches {
			at := i*len(x.measures.Reaches) + j
			c := Choice{Parameters: p, Clamped: clamped}
			c.Parameters.Functions, c.Parameters.Reach = m, reach
			shares, matches := make([]float64, len(x.tallies)), 0.0
			for q := range x.tallies {
				shares[q] = float64(x.tallies[q].found(at, o.Neighbours, o.Candidates)) / float64(o.Neighbours)
				matches += float64(x.tallies[q].matches[at])
			}
			c.Recall, c.Error = meanAndError(shares)
			// A function that finds nothing costs its look-up all the same.
			c.Load = matches/float64(len(x.tallies))/float64(x.objects) + float64(m)*1e-6
			choices = append(choices, c)
		}
	}
	return choices, nil
}

// Fit fills in what a sample says and nobody gave: the number of buckets, and the centre of those that are clamped, which is the sample's mean. It returns the share of the
// sample's hashes that lie beyond the ends.
func (p *Parameters) Fit(sample []float32, workers int) (clamped float64, err error) {
	const tolerated = 1e-3
	switch {
	case p.Family == Cosine:
		p.Buckets = 2
		return 0, nil
	case !p.ordered():
		p.Buckets = cmp.Or(p.Buckets, 8192)
		return 0, nil
	case p.Dim < 1 || len(sample) == 0 || len(sample)%p.Dim != 0:
		return 0, fmt.Errorf("fitting hash functions: a sample of %d numbers is no vectors of %d dimensions", len(sample), p.Dim)
	}
	n := len(sample) / p.Dim
	if p.Centre == nil {
		sums := make([]float64, p.Dim)
		for i, x := range sample {
			sums[i%p.Dim] += float64(x)
		}
		p.Centre = make([]float32, p.Dim)
		for i, s := range sums {
			p.Centre[i] = float32(s / float64(n))
		}
	}
	// With that many buckets next to nothing is clamped, and keywords tell how far from the middle buckets are.
	wide := *p
	wide.Buckets = MaxBuckets
	wide.Functions = min(wide.Functions, 128) // enough to know how they spread
	f, err := New(wide)
	if err != nil {
		return 0, fmt.Errorf("fitting: %w", err)
	}
	keywords := make([]uint32, n*wide.Functions)
	if err := f.Hash(keywords, sample, workers); err != nil {
		return 0, fmt.Errorf("fitting hash functions: %w", err)
	}
	far := make([]int, len(keywords))
	for i, k := range keywords {
		d := int(k) - MaxBuckets/2
		far[i] = max(d, -d-1) // of 2h buckets those from -h to h-1 are there
	}
	slices.Sort(far)
	if p.Buckets == 0 {
		p.Buckets = min(MaxBuckets, 2*(far[int(float64(len(far)-1)*(1-tolerated))]+1))
	}
	beyond, _ := slices.BinarySearch(far, p.Buckets/2)
	return float64(len(far)-beyond) / float64(len(far)), nil
}

// tabulate measures what was chosen with more neighbours, candidates and reaches.
func (o *Options) tabulate(c Choice, queries, objects []float32) (Choice, error) {
	f, err := New(c.Parameters)
	if err != nil {
		return c, err
	}
	n := len(objects) / o.Dim
	reaches := []int{c.Parameters.Reach}
	if o.Family.reaches() {
		reaches = append(reaches, 0, 1, 2, 3, 4)
	}
	x, err := NewMeasurement(f, queries, Measures{
		fitting(n, o.Neighbours, 1, 2, 5, 10, 20, 50, 100),
		fitting(n, o.Candidates, 1, 2, 5, 10, 20, 32, 50, 80, 100, 160, 200, 320, 500, 800, 1000, 2000), reaches,
	})
	if err != nil {
		return c, err
	}
	keywords := make([]uint32, n*c.Parameters.Functions)
	if err := f.Hash(keywords, objects, o.Workers); err != nil {
		return c, err
	}
	x.Add(keywords, objects, o.Workers)
	c.Parameters.Recall, err = x.Table()
	return c, errors.Join(err, c.Parameters.Check())
}

// fitting are those numbers that are no more than n.
func fitting(n int, numbers ...int) (fit []int) {
	for _, x := range numbers {
		if x <= n {
			fit = append(fit, x)
		}
	}
	return fit
}
