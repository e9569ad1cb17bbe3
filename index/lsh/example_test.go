package lsh_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/geniemq/geniemq/index/lsh"
)

// A column of vectors: parameters from a sample, keywords of objects, what a query asks, and what its counts mean.
func Example() {
	const dim, n = 16, 2000
	rng := rand.New(rand.NewPCG(1, 1))
	vectors := make([]float32, n*dim)
	for i := range vectors {
		vectors[i] = float32(rng.NormFloat64())
	}

	// Once per index: what is stored in the file.
	choice, err := lsh.Choose(vectors, lsh.Options{Family: lsh.L2, Dim: dim, Recall: .8, Functions: []int{128}, Reaches: []int{2}})
	if err != nil {
		fmt.Println(err)
		return
	}
	stored, err := choice.Parameters.AppendBinary(nil)
	if err != nil {
		fmt.Println(err)
		return
	}

	// Whoever opens it makes the same functions.
	p, err := lsh.Decode(stored)
	if err != nil {
		fmt.Println(err)
		return
	}
	f, err := lsh.New(p)
	if err != nil {
		fmt.Println(err)
		return
	}

	// Objects in batches, on all cores: keyword keywords[v*m+i] of attribute i.
	keywords := make([]uint32, n*p.Functions)
	if err := f.Hash(keywords, vectors, 2); err != nil {
		fmt.Println(err)
		return
	}

	// The queries of a message: item i asks the spans around asked[(q*m+i)*Asked() : ...].
	query := vectors[:dim]
	asked := make([]uint32, p.Functions*p.Asked())
	if err := f.HashQueries(asked, query, 1); err != nil {
		fmt.Println(err)
		return
	}
	count := uint32(0)
	for i := range p.Functions {
		if lo, hi := p.Span(asked[i]); lo <= keywords[i] && keywords[i] < hi {
			count++
		}
	}
	_, known := p.Recall.Lookup(10, 80, uint32(p.Reach))
	fmt.Println(count == uint32(p.Functions), p.Similarity(count), p.Distance(p.Similarity(count)), known)
	// Output: true 1 0 true
}
