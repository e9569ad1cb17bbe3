package workload

import (
	"cmp"
	"fmt"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/similarity"
	"github.com/geniemq/geniemq/service/translate"
	"github.com/geniemq/geniemq/wire"
)

// plan makes the plans of the queries, as the service does.
func (w *Workload) plan() error {
	translator, err := translate.New(w.Name, w.Index, 0)
	if err != nil {
		return err
	}
	w.Plans = make([]gpuexec.Plan, len(w.Queries))
	for i := range w.Queries {
		q := new(translate.Query)
		if translator.Plan(q, &w.Queries[i]); q.Err != nil {
			return q.Err
		}
		w.Plans[i] = q.Plan
	}
	return nil
}

// rarity is what terms weigh by how few objects have them, as the reference knows it; nil: 1 each.
type rarity []uint32

func (r rarity) of(term uint32) uint32 {
	if r == nil {
		return 1
	}
	return r[term]
}

// idf is what queries say.
func (opts *Options) idf() wire.Choice {
	if opts.IDF {
		return wire.Yes
	}
	return wire.Unsaid
}

// rarities counts in how many objects each of so many terms is, which object returns each once, and gives them their weights. Without
// Options.IDF they weigh 1 each.
func (opts *Options) rarities(terms int, object func(dst []uint32, id int) []uint32) (rarity, error) {
	if !opts.IDF {
		return nil, nil
	}
	idf, err := similarity.NewIDF(cmp.Or(opts.IDFScale, schema.DefaultIDFScale), uint64(opts.Objects))
	if err != nil {
		return nil, fmt.Errorf("weights by rarity: %w", err)
	}
	r := make(rarity, terms)
	var some []uint32
	for id := range opts.Objects {
		some = object(some, id)
		for _, term := range some {
			r[term]++
		}
	}
	for term, objects := range r {
		r[term] = idf.Weight(uint64(objects))
	}
	return r, nil
}

// overlap weighs the common elements of two ascending lists without repeats.
func overlap(a, b []uint32, weight rarity) (n uint32) {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			a = a[1:]
		case a[0] > b[0]:
			b = b[1:]
		default:
			n += weight.of(a[0])
			a, b = a[1:], b[1:]
		}
	}
	return n
}
