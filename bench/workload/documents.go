package workload

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
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
	text := "name: documents\nkind: documents\nstop_words: none\n"
	if opts.Rescore != "" { // of records an index keeps their words by object
		text, opts.name = "name: documents\ncolumns:\n- {name: text, type: text, stop_words: none}\n", opts.name+"-records"
	}
	spec, err := index.Builtin().ParseSchema([]byte(text))
	if err != nil {
		return nil, err
	}
	if opts.IDFScale != 0 {
		spec.Columns[0].IDFScale, opts.name = opts.IDFScale, fmt.Sprintf("%s-scale%d", opts.name, opts.IDFScale)
	}
	texts := make([]string, vocabulary)
	for word := range texts {
		texts[word] = wordText(uint32(word))
	}
	var w *Workload
	if opts.Rescore == "" {
		w, err = build(ctx, spec, opts, func(b *postings.Batch, id int) error {
			for _, word := range object(make([]uint32, 0, documentWords), id) {
				b.AddString(0, texts[word])
			}
			return nil
		})
	} else {
		var scratch []uint32
		w, err = buildRecords(ctx, spec, opts, func(rec *schema.Record, id int) {
			scratch = object(scratch, id)
			rec.Cells[0].Values[0] = joined(scratch, texts)
		})
	}
	if err != nil {
		return nil, err
	}
	queries := make([][]uint32, opts.Queries)
	for i := range queries {
		src := newSource(opts.Seed, 'q', uint64(i))
		queries[i] = words(nil, &src, documentQuery)
		w.Queries = append(w.Queries, wire.Query{K: opts.K, Text: joined(queries[i], texts), IDF: opts.idf()})
	}
	return w, w.ofTerms(&opts, "text", vocabulary, queries, object)
}

// wordText is a word of the vocabulary as text; the tokenizer leaves it as it is.
func wordText(word uint32) string { return "w" + strconv.FormatUint(uint64(word), 36) }

// joined is a text of words.
func joined(words []uint32, texts []string) string {
	var text strings.Builder
	for i, word := range words {
		if i > 0 {
			text.WriteByte(' ')
		}
		text.WriteString(texts[word])
	}
	return text.String()
}
