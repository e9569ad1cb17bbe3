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
	// Queries are held out of the sample (100 by default); the rest is searched.
	Queries int
	// Objects are how many there will be, where the sample is not all: it stands for so many. By default what the sample has.
	Objects int
	// Workers are how many cores may compute; 1 by default.
	Workers int
}

// Choice is what Choose has found.
type Choice struct {
	// Parameters are complete, with a recall table that was measured on the sample.
	Parameters Parameters
	// Recall is the mean over the held-out queries, for as many objects as there will be, Error its standard error.
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

// Choose chooses width, centre, buckets, reach and number of functions from a sample of the data, so that a recall is reached at the least cost: the fewest matches to
// count. The recall is that of real match counts of queries that are held out of the sample, less 1.645 standard errors, so that it is reached with 95 % confidence.
//
// That a sample is large matters more than anything: with ten thousand objects of a thousand clusters nearly any functions find the cluster, and that is all;
// with a million the ten nearest are to be told from a thousand of the same cluster. So all of the sample is searched. Where the
// index will have f times as many objects as the sample, the sample has one in f of the neighbours and of the candidates: 10 of 80 are the nearest among the first 10 there.
// Nothing promises that it goes on so: measure again (Measurement) with what the index holds. The error is an *UnreachedError when nothing reaches the recall.
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
	o.Queries, o.Workers = cmp.Or(o.Queries, 100), cmp.Or(o.Workers, 1)
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

// split takes queries out of the sample, and puts all in random order, so that the first so many are a sample as well.
func (o *Options) split(sample []float32) (queries, objects []float32) {
	n := len(sample) / o.Dim
	rng := rand.New(rand.NewPCG(o.Seed, 1))
	order := make([]int, n)
	for i := range order {
		j := rng.IntN(i + 1)
		order[i] = order[j]
		order[j] = i
	}
	shuffled := make([]float32, 0, len(sample))
	for _, at := range order {
		shuffled = append(shuffled, sample[at*o.Dim:(at+1)*o.Dim]...)
	}
	return shuffled[:o.Queries*o.Dim], shuffled[o.Queries*o.Dim:]
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
	// Half to four times are so far from each other that a part of the objects says it well enough.
	n = min(n, fitted)
	mean, asked := 0.0, len(queries)/d
	for q := range asked {
		nearest := best{limit: o.Neighbours}
		for i := range n {
			if score := -o.Family.Distance(queries[q*d:(q+1)*d], object(i)); nearest.wants(score) {
				nearest.add(scored{score: score, id: uint32(i)})
			}
		}
		last := nearest.first()
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

const (
	// fitted objects are enough to know how hashes spread.
	fitted = 10_000
	// together objects are hashed at a time.
	together = 2048
)

// try measures one width with every number of functions and reach.
func (o *Options) try(queries, objects []float32, width float64) ([]Choice, error) {
	most := o.Functions[len(o.Functions)-1]
	p := Parameters{Family: o.Family, Dim: o.Dim, Functions: most, Width: width, Seed: o.Seed, Rehash: o.Rehash, Buckets: o.Buckets, Centre: o.Centre}
	clamped, err := p.Fit(objects[:min(len(objects), fitted*o.Dim)], o.Workers)
	if err != nil {
		return nil, err
	}
	f, err := New(p)
	if err != nil {
		return nil, err
	}
	x, err := newMeasurement(f, queries, Measures{[]int{o.Neighbours}, []int{o.Candidates}, o.Reaches}, o.Functions)
	if err != nil {
		return nil, err
	}
	n := len(objects) / o.Dim
	if err := x.hash(f, objects, o.Workers); err != nil {
		return nil, err
	}
	k, candidates := o.thinned(n)
	var choices []Choice
	for way, shares := range x.shares(k, candidates) {
		c := Choice{Parameters: p, Clamped: clamped}
		c.Parameters.Functions, c.Parameters.Reach = o.Functions[way/len(x.measures.Reaches)], x.measures.Reaches[way%len(x.measures.Reaches)]
		c.Recall, c.Error = meanAndError(shares)
		matches := 0.0
		for q := range x.tallies {
			matches += float64(x.tallies[q].matches[way])
		}
		// A function that finds nothing costs its look-up all the same.
		c.Load = matches/float64(len(x.tallies))/float64(x.objects) + float64(c.Parameters.Functions)*1e-6
		choices = append(choices, c)
	}
	return choices, nil
}

// thinned are how many neighbours and candidates a sample of n has of what all objects will have: of every f one.
func (o *Options) thinned(n int) (k, candidates int) {
	f := max(1, float64(o.Objects)/float64(n))
	k = max(1, int(math.Round(float64(o.Neighbours)/f)))
	return k, max(k, int(float64(o.Candidates)/f))
}

// hash hashes objects and adds them.
func (x *Measurement) hash(f *Functions, objects []float32, workers int) error {
	keywords := make([]uint32, together*f.parameters.Functions)
	for len(objects) > 0 {
		n := min(together, len(objects)/x.dim)
		own := keywords[:n*f.parameters.Functions]
		if err := f.Hash(own, objects[:n*x.dim], workers); err != nil {
			return err
		}
		x.Add(own, objects[:n*x.dim], workers)
		objects = objects[n*x.dim:]
	}
	return nil
}

// shares are the shares of k neighbours that are among the candidates, by way and query.
func (x *Measurement) shares(k, candidates int) [][]float64 {
	all := make([][]float64, len(x.m)*len(x.measures.Reaches))
	for way := range all {
		for q := range x.tallies {
			all[way] = append(all[way], float64(found(x.tallies[q].ranks(way), k, candidates))/float64(k))
		}
	}
	return all
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

// tabulate measures what was chosen with more neighbours and candidates, and the reaches that it could have.
func (o *Options) tabulate(c Choice, queries, objects []float32) (Choice, error) {
	f, err := New(c.Parameters)
	if err != nil {
		return c, err
	}
	n := len(objects) / o.Dim
	x, err := NewMeasurement(f, queries, Measures{
		fitting(n, o.Neighbours, 1, 2, 5, 10, 20, 50, 100),
		fitting(n, o.Candidates, 1, 2, 5, 10, 20, 32, 50, 80, 100, 160, 200, 320, 500, 800, 1000, 2000), o.Reaches,
	})
	if err != nil {
		return c, err
	}
	if err := x.hash(f, objects, o.Workers); err != nil {
		return c, err
	}
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
