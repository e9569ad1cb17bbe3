package workload

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/wire"
)

// W3, short documents: 17 words per object and 12 per query from a vocabulary of a million whose frequencies fall as
// a shifted Zipf law: rank = shift x (e^(u ln(V/shift + 1)) - 1) for u uniform in [0, 1).
const (
	documentWords   = 17
	documentQuery   = 12
	vocabulary      = 1_000_000
	vocabularyShift = 20
)

// words draws n words and removes repeats, as documents do on both sides.
func words(dst []uint32, src *source, n int) []uint32 {
	dst = dst[:0]
	for range n {
		rank := vocabularyShift * (math.Exp(src.float()*math.Log(float64(vocabulary)/vocabularyShift+1)) - 1)
		dst = append(dst, min(uint32(rank), vocabulary-1))
	}
	slices.Sort(dst)
	return slices.Compact(dst)
}

func documents(ctx context.Context, opts Options) (*Workload, error) {
	object := func(dst []uint32, id int) []uint32 {
		src := newSource(opts.Seed, 'd', uint64(id))
		return words(dst, &src, documentWords)
	}
	start := time.Now()
	schema, err := index.Builtin().ParseSchema([]byte("name: documents\nkind: documents\nstop_words: none\n"))
	if err != nil {
		return nil, err
	}
	var scratch []uint32
	texts := make([]string, vocabulary)
	for word := range texts {
		texts[word] = wordText(uint32(word))
	}
	file, ix, err := build(ctx, schema, opts, func(b *index.Builder, id int) error {
		scratch = object(scratch, id)
		for _, word := range scratch {
			b.AddString(0, texts[word])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	w := &Workload{Index: ix, File: file, Build: time.Since(start), Plans: make([]gpuexec.Plan, opts.Queries)}

	encoder, err := index.NewQueries(ix)
	if err != nil {
		return nil, err
	}
	queries := make([][]uint32, opts.Queries)
	for i := range w.Plans {
		src := newSource(opts.Seed, 'q', uint64(i))
		queries[i] = words(nil, &src, documentQuery)
		plan := &w.Plans[i]
		match := new(postings.MatchQuery)
		plan.Family, plan.Query, plan.K = postings.FamilyName, match, opts.K
		var text []string
		for _, word := range queries[i] {
			text = append(text, wordText(word))
		}
		w.Queries = append(w.Queries, wire.Query{K: opts.K, Text: strings.Join(text, " ")})
		if err := encoder.Text(match, strings.Join(text, " ")); err != nil {
			return nil, err
		}
	}
	w.Reference = func(i, lo, hi int, visit func(id, count uint32)) {
		var doc []uint32
		for id := lo; id < hi; id++ {
			doc = object(doc, id)
			if count := overlap(queries[i], doc); count > 0 {
				visit(uint32(id), count)
			}
		}
	}
	return w, nil
}

// wordText is a word of the vocabulary as text; the tokenizer leaves it as it is.
func wordText(word uint32) string { return "w" + strconv.FormatUint(uint64(word), 36) }

// overlap counts the common elements of two ascending lists without repeats.
func overlap(a, b []uint32) (n uint32) {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			a = a[1:]
		case a[0] > b[0]:
			b = b[1:]
		default:
			a, b, n = a[1:], b[1:], n+1
		}
	}
	return n
}
