package workload

import (
	"context"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/wire"
	"github.com/geniemq/geniemq/wire/value"
)

// W6, mixed records: goods with words of a title, a brand, a price, tags and a picture, a vector of 96 bytes. A query asks for goods like one that
// there is: most words of its title and some others, its brand, about its price, its tags, nearly its picture. With Options.Filter hits have to cost
// about as much, too: so many of all goods do. Words, brands and tags fall as shifted Zipf laws; prices are log-uniform, in cents; pictures lie
// in clusters. W6words is the same goods without pictures.
const (
	goodsWords    = 8
	goodsAsked    = 6 // words of the title that a query has
	goodsOthers   = 2 // and others
	goodsBrands   = 20_000
	goodsTags     = 2_000
	goodsMostTags = 4
	cheapest      = 10.0
	dearest       = 1000.0
	priceReach    = 1.1 // a query asks for prices from 1/1.1 to 1.1 times that of its object
)

const goodsSchema = `
name: goods
columns:
  - {name: title, type: text, stop_words: none}
  - {name: brand, type: category}
  - {name: price, type: number, edges: equi-depth}
  - {name: tags, type: set}
`

// pictureColumn has as many hash functions as columns of vectors have.
const pictureColumn = `  - {name: picture, type: vector, keep: u8}
`

// goods is one object.
type goods struct {
	title, tags []uint32 // ascending
	brand       uint32
	price       float64
	rank        float64 // the share of all goods that cost less, nearly
	id          int
}

// zipf draws a rank below n that falls as a shifted Zipf law.
func zipf(src *source, n, shift int) uint32 {
	rank := float64(shift) * (math.Exp(src.float()*math.Log(float64(n)/float64(shift)+1)) - 1)
	return min(uint32(rank), uint32(n)-1)
}

func priceAt(rank float64) float64 {
	return math.Round(cheapest*math.Pow(dearest/cheapest, rank)*100) / 100
}

func (g *goods) make(seed uint64, id int) {
	src := newSource(seed, 'g', uint64(id))
	g.id = id
	g.title = words(g.title, &src, goodsWords)
	g.brand = zipf(&src, goodsBrands, 5)
	g.rank = src.float()
	g.price = priceAt(g.rank)
	g.tags = g.tags[:0]
	for range src.intn(goodsMostTags + 1) {
		g.tags = append(g.tags, zipf(&src, goodsTags, 3))
	}
	slices.Sort(g.tags)
	g.tags = slices.Compact(g.tags)
}

func brandText(brand uint32) string { return "b" + strconv.FormatUint(uint64(brand), 36) }
func tagText(tag uint32) string     { return "t" + strconv.FormatUint(uint64(tag), 36) }

// record writes the object as a record.
func (g *goods) record(rec *schema.Record, texts []string) {
	rec.Cells[0].Values[0] = joined(g.title, texts)
	rec.Cells[1].Values[0] = brandText(g.brand)
	rec.Cells[2].Values[0] = strconv.FormatFloat(g.price, 'f', 2, 64)
	rec.Cells[3].Values = rec.Cells[3].Values[:0]
	for _, tag := range g.tags {
		rec.Cells[3].Values = append(rec.Cells[3].Values, tagText(tag))
	}
}

// wanted is what a query asks for.
type wanted struct {
	title, tags []uint32 // ascending
	brand       uint32
	low, high   float64 // prices that count
	least, most float64 // prices that pass
	like        int     // the object that it is like
}

// want makes the i-th query.
func (opts *Options) want(i int) (q wanted) {
	src := newSource(opts.Seed, 'q', uint64(i))
	var like goods
	like.make(opts.Seed, src.intn(opts.Objects))
	for range min(goodsAsked, len(like.title)) {
		q.title = append(q.title, like.title[src.intn(len(like.title))])
	}
	q.title = append(q.title, words(nil, &src, goodsOthers)...)
	slices.Sort(q.title)
	q.title = slices.Compact(q.title)
	q.brand, q.tags, q.like = like.brand, like.tags, like.id
	q.low, q.high = like.price/priceReach, like.price*priceReach
	first := min(max(0, like.rank-opts.Filter*src.float()), max(0, 1-opts.Filter))
	q.least, q.most = priceAt(first), priceAt(min(1, first+opts.Filter))
	return q
}

func priceRange(low, high float64) wire.Condition {
	return wire.Condition{Attr: "price", Min: wire.Number(low), Max: wire.Number(high)}
}

// query is what is asked for on the wire.
func (q *wanted) query(opts *Options, p *pictures, i int) (wire.Query, error) {
	var title []string
	for _, word := range q.title {
		title = append(title, wordText(word))
	}
	query := wire.Query{K: opts.K, IDF: opts.idf(), Row: []wire.Condition{
		{Attr: "title", Value: wire.String(strings.Join(title, " "))},
		{Attr: "brand", Value: wire.String(brandText(q.brand))},
		priceRange(q.low, q.high),
	}}
	if len(q.tags) > 0 {
		var tags value.Builder
		tags.Array()
		for _, tag := range q.tags {
			tags.String(tagText(tag))
		}
		tags.End()
		list, err := tags.Tree()
		if err != nil {
			return query, err
		}
		query.Row = append(query.Row, wire.Condition{Attr: "tags", Other: &wire.Other{Value: list, Refusal: wire.Errorf(wire.BadRequest, "a list")}})
	}
	if p != nil {
		picture, err := p.condition(q.like, i)
		if err != nil {
			return query, err
		}
		query.Row = append(query.Row, picture)
	}
	if opts.Filter > 0 {
		query.Filter = []wire.Condition{priceRange(q.least, q.most)}
	}
	return query, nil
}

// priceBuckets are the buckets of prices as the reference finds them: by counting edges.
type priceBuckets struct{ *postings.Attribute }

func (b priceBuckets) of(v float64) int {
	return sort.Search(len(b.Edges), func(i int) bool { return b.Edges[i] > v })
}

// goodsRarities are the weights of what goods have.
type goodsRarities struct{ words, brands, tags rarity }

func (opts *Options) goodsRarities() (r goodsRarities, err error) {
	var g goods
	of := func(terms int, have func() []uint32) (weights rarity) {
		if err == nil {
			weights, err = opts.rarities(terms, func(_ []uint32, id int) []uint32 {
				g.make(opts.Seed, id)
				return have()
			})
		}
		return weights
	}
	r.words = of(vocabulary, func() []uint32 { return g.title })
	r.brands = of(goodsBrands, func() []uint32 { return []uint32{g.brand} })
	r.tags = of(goodsTags, func() []uint32 { return g.tags })
	return r, err
}

// count is the match count of an object.
func (q *wanted) count(g *goods, weigh *goodsRarities, buckets priceBuckets, bucket int) uint32 {
	n := overlap(q.title, g.title, weigh.words) + overlap(q.tags, g.tags, weigh.tags)
	if g.brand == q.brand {
		n += weigh.brands.of(g.brand)
	}
	if q.high >= buckets.Min && q.low <= buckets.Max && buckets.of(q.low) <= bucket && bucket <= buckets.of(q.high) {
		n++
	}
	return n
}

// mixedOf makes goods with pictures or without.
func mixedOf(pictured bool) func(context.Context, Options) (*Workload, error) {
	return func(ctx context.Context, opts Options) (*Workload, error) {
		if !pictured {
			return mixed(ctx, opts, goodsSchema, nil)
		}
		opts.name += "-pictures" // in a cache there may be goods without
		return mixed(ctx, opts, goodsSchema+pictureColumn, newPictures(opts.Seed))
	}
}

func mixed(ctx context.Context, opts Options, text string, p *pictures) (*Workload, error) {
	spec, err := index.Builtin().ParseSchema([]byte(text))
	if err != nil {
		return nil, err
	}
	texts := make([]string, vocabulary)
	for word := range texts {
		texts[word] = wordText(uint32(word))
	}
	var g goods
	record := func(rec *schema.Record, id int) {
		g.make(opts.Seed, id)
		g.record(rec, texts)
		if p != nil {
			cell := &rec.Cells[4]
			cell.Values, cell.Vector = cell.Values[:0], p.object(cell.Vector, id)
		}
	}
	w, err := buildLearned(ctx, spec, opts, record, p != nil)
	if err != nil {
		return nil, err
	}
	asked := make([]wanted, opts.Queries)
	for i := range asked {
		asked[i] = opts.want(i)
		query, err := asked[i].query(&opts, p, i)
		if err != nil {
			return nil, err
		}
		w.Queries = append(w.Queries, query)
	}
	attrs := w.Index.Attributes()
	price := priceBuckets{&attrs[slices.IndexFunc(attrs, func(a postings.Attribute) bool { return a.Name == "price" })]}
	weigh, err := opts.goodsRarities()
	if err != nil {
		return nil, err
	}
	w.scored = &scored{column: "title", terms: vocabulary, query: func(i int) []uint32 { return asked[i].title }, weights: weigh.words,
		object: func(dst []uint32, id int) []uint32 {
			g := goods{title: dst}
			g.make(opts.Seed, id)
			return g.title
		}}
	if p != nil {
		if err := p.hashedBy(w.Index.Schema(), asked); err != nil {
			return nil, err
		}
	}
	w.Reference = func(i, lo, hi int, visit func(id, count uint32)) {
		q := &asked[i]
		var g goods
		agreeing := p.agreeing(i, lo, hi)
		for id := lo; id < hi; id++ {
			g.make(opts.Seed, id)
			if opts.Filter > 0 && (g.price < q.least || g.price > q.most) {
				continue
			}
			if n := q.count(&g, &weigh, price, price.of(g.price)) + agreeing(id); n > 0 {
				visit(uint32(id), n)
			}
		}
	}
	return w, nil
}
