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
	// Functions are the numbers m to choose from: by default so many from 32 to 1,024 that each is an eighth or so above the one before.
	Functions []int
	// Widths to choose from. By default for l2 and l1 a quarter to four times the mean distance of the Neighbours-th neighbour, for laplacian the mean paired
	// distance of the sample, as the paper has it.
	Widths []float64
	// Reaches to choose from: 0 to 4 by default for l2 and l1, else 0. Where there are several, a table is measured of two below and above what is chosen too.
	Reaches []int
	// Buckets is D; by default 8,192 where buckets are re-hashed, else the fewest with which one hash of the sample in a thousand is clamped at most.
	Buckets int
	// Centre is where the middle bucket is where buckets are clamped; by default the sample's mean.
	Centre []float32
	// Rehash asks for re-hashing with l2 too.
	Rehash bool
	// Seed of the functions, and of what is drawn from the sample.
	Seed uint64
	// Queries are held out of the sample (200 by default); the rest is searched.
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
	// Recall is the mean over the held-out queries, for as many objects as there will be, Error its standard error: measured where the sample is all, else a forecast.
	Recall, Error float64
	// Load is how many postings an average object adds to what a query counts: the mean match count.
	Load float64
	// Cost is what is least among what reaches the recall: work for a query and object, in postings that are read from a list.
	Cost float64
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

// Choose chooses width, centre, buckets, reach and number of functions from a sample of the data, so that a recall is reached at the least cost. What is cheapest among
// all of them a forecast says, by distances from queries that are held out of the sample. Then objects are hashed, and real match counts say what it is. Where the
// sample is all there is, that must reach the recall, less 1.645 standard errors and as if one more query had found nothing, and forecasts are corrected by it.
//
// Where the index will have f times as many objects as the sample, the forecast is of these, and counts of the sample prove nothing of them: with ten
// thousand objects of a thousand clusters nearly any functions find the cluster, and that is all; with a million the ten nearest are to be told from a
// thousand of the same cluster. Measure again (Measurement) with what the index holds. The error is an *UnreachedError when nothing reaches the recall.
func Choose(sample []float32, o Options) (Choice, error) {
	c, err := choose(sample, o)
	if err != nil {
		return c, fmt.Errorf("choosing hash functions: %w", err)
	}
	return c, nil
}

func choose(sample []float32, o Options) (Choice, error) {
	if err := o.fill(len(sample)); err != nil {
		return Choice{}, err
	}
	queries, objects := o.split(sample)
	for i, part := range [][]float32{queries, objects} {
		if at := firstBeyond(part, math.MaxFloat32); at >= 0 {
			return Choice{}, fmt.Errorf("%s: %w", []string{"held-out queries", "objects"}[i],
				&ElementError{at / o.Dim, at % o.Dim, part[at], math.MaxFloat32})
		}
	}
	x := newForecast(&o, queries, objects)
	if len(o.Widths) == 0 {
		var err error
		if o.Widths, err = o.widths(x.means[o.Neighbours-1], objects); err != nil {
			return Choice{}, err
		}
	}
	c, reached := x.cheapest(o.Recall)
	whole := o.Objects <= len(objects)/o.Dim
	if !whole {
		if err := o.measure(&c, queries, objects, false); err != nil {
			return Choice{}, err
		}
		if !reached {
			return c, &UnreachedError{o.Recall, c}
		}
		return c, nil
	}
	return o.correct(x, c, reached, queries, objects)
}

// attempts to reach a recall as cheaply as can be, each by a forecast that was corrected.
const attempts = 8

// correct measures what was chosen by a forecast that reached the recall or did not, and chooses again by what the forecast was off, as long as that does not reach the recall,
// or may be cheaper.
func (o *Options) correct(x *forecast, c Choice, reached bool, queries, objects []float32) (Choice, error) {
	var best, nearest Choice
	aim := logit(o.Recall)
	type ways struct {
		functions, reach int
		width            float64
	}
	tried := make(map[ways]bool)
	for len(tried) < attempts {
		own := ways{c.Parameters.Functions, c.Parameters.Reach, c.Parameters.Width}
		if tried[own] {
			if best.Cost > 0 || !reached || aim > logit(1) {
				break
			}
			// Its forecast is better than it is by more than aim has gone up. Beyond logit(1), which is finite, a forecast of 1 would be chosen for ever.
			aim += .3
			c, reached = x.cheapest(1 / (1 + math.Exp(-aim)))
			continue
		}
		tried[own] = true
		if err := o.measure(&c, queries, objects, true); err != nil {
			return Choice{}, err
		}
		// Several are tried with the same queries, the rest of which may be harder: as if one more had found nothing.
		sure := (c.Recall - 1.645*c.Error) * float64(o.Queries) / float64(o.Queries+1)
		if nearest.Cost == 0 || c.Recall > nearest.Recall {
			nearest = c
		}
		if sure >= o.Recall && (best.Cost == 0 || c.Cost < best.Cost) {
			best = c
		}
		if off := logit(o.Recall) - logit(sure); off > 0 {
			aim += min(1.5, off+.3) // rather too much than to try again
		} else {
			aim += max(-1.5, off)
		}
		if c, reached = x.cheapest(1 / (1 + math.Exp(-aim))); !reached && best.Cost > 0 || best.Cost > 0 && c.Cost > .95*best.Cost {
			break
		}
	}
	if best.Cost == 0 {
		return nearest, &UnreachedError{o.Recall, nearest}
	}
	return best, nil
}

// logit is the logarithm of odds, of shares that are not quite 0 or 1.
func logit(share float64) float64 {
	share = max(.001, min(.999, share))
	return math.Log(share / (1 - share))
}

// fill fills in defaults and looks for faults.
func (o *Options) fill(numbers int) error {
	o.Recall = cmp.Or(o.Recall, .95)
	o.Neighbours = cmp.Or(o.Neighbours, 10)
	o.Candidates = cmp.Or(o.Candidates, max(32, 8*o.Neighbours))
	o.Queries, o.Workers = cmp.Or(o.Queries, 200), cmp.Or(o.Workers, 1)
	if len(o.Functions) == 0 {
		o.Functions = []int{32, 40, 48, 56, 64, 72, 80, 96, 112, 128, 144, 160, 192, 224, 255, 288, 320, 384, bounded, 512, 640, 768, 1024}
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
	o.Reaches, o.Functions, o.Rehash = distinct(o.Reaches), distinct(o.Functions), o.Rehash || o.Family == L1 || o.Family == Laplacian
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

// widths are those to try, by the mean distance of the last neighbour.
func (o *Options) widths(last float64, objects []float32) (widths []float64, err error) {
	if o.Family == Laplacian {
		const pairs = 10_000
		n, d := len(objects)/o.Dim, o.Dim
		object := func(i int) []float32 { return objects[i*d : (i+1)*d] }
		rng, mean := rand.New(rand.NewPCG(o.Seed, 0)), 0.0
		for range pairs {
			a := rng.IntN(n)
			mean += o.Family.Distance(object(a), object((a+1+rng.IntN(n-1))%n)) / pairs
		}
		width, err := WidthOf(mean)
		return []float64{width}, err
	}
	if last, err = WidthOf(last); err != nil {
		return nil, err
	}
	for _, scale := range []float64{4, 2.8, 2, 1.4, 1, .7, .5, .35, .25} {
		widths = append(widths, max(minWidth, min(maxWidth, last*scale)))
	}
	return widths, nil
}

// WidthOf is the width of functions for vectors that lie so far apart: their distance, or 1 where all are equal. Buckets much narrower or wider than that tell
// nothing of vectors, and take 16 million keywords per function or one: so what is beyond the widths that there are is refused.
func WidthOf(distance float64) (float64, error) {
	switch {
	case distance == 0:
		return 1, nil
	case !(distance >= minWidth && distance <= maxWidth):
		return 0, fmt.Errorf("vectors lie %.3g apart, and buckets of hash functions are %g to %g wide: scale the vectors", distance, minWidth, maxWidth)
	}
	return distance, nil
}

const (
	// fitted objects are enough to know how hashes spread.
	fitted = 10_000
	// together objects are hashed at a time.
	together = 2048
)

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
		if low := f.low[i%wide.Functions]; low == math.MinInt32 || low >= math.MaxInt32-MaxBuckets/2-127 {
			far[i] = MaxBuckets / 2 // the middle itself is beyond the numbers there are (package block)
		}
	}
	slices.Sort(far)
	if p.Buckets == 0 {
		p.Buckets = min(MaxBuckets, 2*(far[int(float64(len(far)-1)*(1-tolerated))]+1))
	}
	beyond, _ := slices.BinarySearch(far, min(p.Buckets, MaxBuckets-2)/2) // with the most buckets, in the last of which all that is clamped lies
	if clamped = float64(len(far)-beyond) / float64(len(far)); clamped > 0.5 && p.Buckets == MaxBuckets {
		err = fmt.Errorf("buckets of hash functions that are %g wide: %.0f %% of the hashes lie beyond the %d that there are; give a greater width, or none to have it learned", p.Width, 100*clamped, MaxBuckets)
	}
	return clamped, err
}

// measure makes parameters complete that were chosen: with buckets and centre, and a table of the recalls with the reaches that they could have. Of the
// whole, what was measured is the recall, in place of the forecast.
func (o *Options) measure(c *Choice, queries, objects []float32, whole bool) (err error) {
	p := &c.Parameters
	p.Seed, p.Buckets, p.Centre = o.Seed, o.Buckets, o.Centre
	if _, err = p.Fit(objects[:min(len(objects), fitted*o.Dim)], o.Workers); err != nil {
		return err
	}
	f, err := New(*p)
	if err != nil {
		return err
	}
	n, reaches := len(objects)/o.Dim, []int{p.Reach}
	if len(o.Reaches) > 1 {
		reaches = []int{max(0, p.Reach-2), max(0, p.Reach-1), p.Reach, p.Reach + 1, p.Reach + 2}
	}
	x, err := NewMeasurement(f, queries, Measures{
		fitting(n, o.Neighbours, 1, 2, 5, 10, 20, 50, 100),
		fitting(n, o.Candidates, 1, 2, 5, 10, 20, 32, 50, 80, 100, 160, 200, 320, 500, 800, 1000, 2000), reaches,
	})
	if err != nil {
		return err
	}
	if err := x.hash(f, objects, o.Workers); err != nil {
		return err
	}
	if whole {
		at := slices.Index(x.measures.Reaches, p.Reach)
		c.Recall, c.Error = meanAndError(x.shares(o.Neighbours, o.Candidates)[at])
		c.Load = x.load(at)
	}
	p.Recall, err = x.Table()
	return errors.Join(err, p.Check())
}

// load is the mean match count of a way.
func (x *Measurement) load(way int) (mean float64) {
	for q := range x.tallies {
		mean += float64(x.tallies[q].matches[way]) / float64(x.objects) / float64(len(x.tallies))
	}
	return mean
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
