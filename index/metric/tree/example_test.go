package tree_test

import (
	"context"
	"fmt"
	"math"

	"github.com/geniemq/geniemq/index/metric"
	"github.com/geniemq/geniemq/index/metric/tree"
)

// A tree is built over a space, kept as bytes, and searched by a query of the space.
func Example() {
	l1 := metric.Metric{Kind: metric.L1}
	space, err := metric.NewVectors(l1, 1, []float32{7, 1, 4, 9, 4, 30})
	if err != nil {
		panic(err)
	}
	built, err := tree.Build(context.Background(), space, tree.Options{Seed: 1})
	if err != nil {
		panic(err)
	}
	opened, err := tree.Open(built.Encode(), l1, space.Len(), space.Dims())
	if err != nil {
		panic(err)
	}
	query, err := space.Query([]float32{5})
	if err != nil {
		panic(err)
	}
	answer, err := opened.Search(context.Background(), tree.Ask{
		Asker: opened.Positions(query), // objects of the space are not in the order of the tree
		Want:  metric.Want{K: 3, Most: l1.Within(10)},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(answer.Hits)
	count, err := opened.Search(context.Background(), tree.Ask{Asker: opened.Positions(query), Want: metric.Want{Most: math.Inf(1)}, Total: true})
	fmt.Println(count.Within, err)
	// Output:
	// [{1 2} {1 4} {2 0}]
	// 6 <nil>
}
