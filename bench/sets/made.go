package sets

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sort"

	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/internal/spread"
)

// source is what a made data set is drawn from.
func source(o *Options, set uint64) *rand.Rand { return rand.New(rand.NewPCG(o.Seed+1, set)) }

// tloc is like the places of people who write: around cities, as many as live there, some kilometres away (0.05 degrees).
func tloc(o *Options, n int) ([]schema.Cell, error) {
	rows, err := table(o.Folder, "cities15000/cities15000.txt.gz", "\t", 0, []int{4, 5, 14})
	if err != nil {
		return nil, err
	}
	people := make([]float64, len(rows)+1) // before each city
	for i, row := range rows {
		people[i+1] = people[i] + float64(row[2])
	}
	rng := source(o, 't')
	elements := make([]float32, 2*n)
	cells := make([]schema.Cell, n)
	for i := range cells {
		at := rng.Float64() * people[len(rows)]
		city := rows[sort.Search(len(rows)-1, func(c int) bool { return people[c+1] > at })]
		x := elements[2*i : 2*i+2]
		x[0], x[1] = city[0]+float32(0.05*rng.NormFloat64()), city[1]+float32(0.05*rng.NormFloat64())
		cells[i].Vector = x
	}
	return cells, nil
}

// embeddings are like those of words: the spectrum of real ones (variances i^-0.72), a mean of norm 0.51, unit length; two are 75 degrees apart, give or take 5.
func embeddings(o *Options, n int) ([]schema.Cell, error) {
	const dims, norm = 300, 0.51
	rng := source(o, 'v')
	var mean, deviation [dims]float64
	length, variance := 0.0, 0.0
	for i := range dims {
		mean[i] = rng.NormFloat64()
		length += mean[i] * mean[i]
		deviation[i] = math.Pow(float64(i+1), -0.36)
		variance += deviation[i] * deviation[i]
	}
	cells := make([]schema.Cell, n)
	for i := range cells {
		var x [dims]float64
		square := 0.0
		for j := range x {
			x[j] = norm*mean[j]/math.Sqrt(length) + math.Sqrt((1-norm*norm)/variance)*deviation[j]*rng.NormFloat64()
			square += x[j] * x[j]
		}
		cells[i].Vector = make([]float32, dims)
		for j := range x {
			cells[i].Vector[j] = float32(x[j] / math.Sqrt(square))
		}
	}
	return cells, nil
}

// strands are windows of a random genome of 10 million bases, in which one base in 50 was changed, put in or left out.
func strands(o *Options, n int) ([]schema.Cell, error) {
	const genome, bases, letters = 10_000_000, 108, "ACGT"
	rng := source(o, 'd')
	all := make([]byte, genome)
	for i := range all {
		all[i] = letters[rng.IntN(len(letters))]
	}
	cells := make([]schema.Cell, n)
	for i := range cells {
		var strand [bases]byte
		from := rng.IntN(genome - 2*bases)
		for j := range strand {
			strand[j] = all[from]
			switch from++; rng.IntN(150) { // one base in 50, of three sorts
			case 0:
				strand[j] = letters[rng.IntN(len(letters))]
			case 1:
				from--
			case 2:
				from++
			}
		}
		cells[i].Values = []string{string(strand[:])}
	}
	return cells, nil
}

const colorDims = 282

// colors are like features of pictures: 20,000 clusters of bytes, half of which are 0.
func colors(o *Options, n int) ([]schema.Cell, error) {
	const clusters = 20_000
	rng := source(o, 'c')
	centres := make([][colorDims]uint8, min(clusters, max(1, n)))
	for c := range centres {
		for j := range colorDims {
			if rng.IntN(2) == 0 {
				centres[c][j] = uint8(min(255, 1+40*rng.ExpFloat64()))
			}
		}
	}
	// As many objects as a full set of a million has per cluster, so that a smaller set is as dense.
	used := max(1, min(len(centres), n/50))
	cells := make([]schema.Cell, n)
	for i := range cells {
		centre := &centres[rng.IntN(used)]
		x := make([]float32, colorDims)
		for j, e := range centre {
			if e > 0 {
				x[j] = float32(math.Round(min(255, max(0, float64(e)+8*rng.NormFloat64()))))
			}
		}
		cells[i].Vector = x
	}
	return slices.Clip(cells), nil
}

// around makes vectors around one of so many others, by so much of what these are apart.
func around(centres, dims int, noise float64) func(o *Options, n int) ([]schema.Cell, error) {
	return func(o *Options, n int) ([]schema.Cell, error) {
		middle := make([]float64, centres*dims)
		rng := source(o, 'a')
		for i := range middle {
			middle[i] = rng.NormFloat64()
		}
		elements, cells := make([]float32, n*dims), make([]schema.Cell, n)
		return cells, spread.Run(context.Background(), runtime.GOMAXPROCS(0), n, func() func(i int) {
			return func(i int) {
				rng := rand.New(rand.NewPCG(o.Seed+1, uint64(i)))
				from, x := rng.IntN(centres)*dims, elements[i*dims:(i+1)*dims:(i+1)*dims]
				for j := range x {
					x[j] = float32(middle[from+j] + noise*rng.NormFloat64())
				}
				cells[i].Vector = x
			}
		})
	}
}
