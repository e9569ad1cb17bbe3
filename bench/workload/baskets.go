package workload

import (
	"context"
	"slices"
	"strconv"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/wire"
)

// W7, baskets: sets of goods of the shape of the retail baskets of FIMI (88,162 baskets of 1 to 76 of 16,470 goods, 10.3 on
// average), grown to millions: their lengths, and goods whose frequencies fall as theirs do, among six times as many. (1 / (rank + 1)
// puts the first into 0.6 of all baskets, the hundredth into 0.009 and the ten thousandth into 0.0001; theirs are in 0.57, 0.008 and
// 0.00007.) A query is a basket with a third of its goods exchanged.
const (
	basketGoods    = 100_000
	basketShift    = 1
	basketExchange = 3 // one good of so many
)

// basketLengths are the 20-quantiles of the lengths of the retail baskets.
var basketLengths = [...]int{1, 2, 3, 3, 4, 4, 5, 6, 6, 7, 8, 9, 10, 11, 12, 14, 16, 18, 21, 27, 76}

// basket draws a basket. It may be shorter than was drawn, since goods come once.
func basket(dst []uint32, src *source) []uint32 {
	at := src.intn(len(basketLengths) - 1)
	low, high := basketLengths[at], basketLengths[at+1]
	length := low + int(src.float()*src.float()*float64(high-low+1)) // the longest are the fewest
	dst = dst[:0]
	for range length {
		dst = append(dst, zipf(src, basketGoods, basketShift))
	}
	slices.Sort(dst)
	return slices.Compact(dst)
}

func goodText(good uint32) string { return strconv.FormatUint(uint64(good), 10) }

func baskets(ctx context.Context, opts Options) (*Workload, error) {
	object := func(dst []uint32, id int) []uint32 {
		src := newSource(opts.Seed, 'b', uint64(id))
		return basket(dst, &src)
	}
	spec, err := index.Builtin().ParseSchema([]byte("name: baskets\nkind: sets\n"))
	if err != nil {
		return nil, err
	}
	texts := make([]string, basketGoods)
	for good := range texts {
		texts[good] = goodText(uint32(good))
	}
	var scratch []uint32
	w, err := buildRecords(ctx, spec, opts, func(rec *schema.Record, id int) {
		scratch = object(scratch, id)
		rec.Cells[0].Values = rec.Cells[0].Values[:0]
		for _, good := range scratch {
			rec.Cells[0].Values = append(rec.Cells[0].Values, texts[good])
		}
	})
	if err != nil {
		return nil, err
	}
	queries := make([][]uint32, opts.Queries)
	for i := range queries {
		src := newSource(opts.Seed, 'q', uint64(i))
		queries[i] = object(nil, src.intn(opts.Objects))
		for j := range queries[i] {
			if src.intn(basketExchange) == 0 {
				queries[i][j] = zipf(&src, basketGoods, basketShift)
			}
		}
		slices.Sort(queries[i])
		queries[i] = slices.Compact(queries[i])
		query := wire.Query{K: opts.K, IDF: opts.idf()}
		for _, good := range queries[i] {
			query.Set = append(query.Set, wire.String(goodText(good)))
		}
		w.Queries = append(w.Queries, query)
	}
	return w, w.ofTerms(&opts, "set", basketGoods, queries, object)
}
