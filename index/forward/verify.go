package forward

import (
	"context"
	"fmt"
	"strings"

	"github.com/geniemq/geniemq/index/graph"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/store"
	"github.com/geniemq/geniemq/index/tree"
)

// Verify checks what opening leaves: the order of terms and their sums, that numbers are finite, blocks of rows, totals, dictionaries. It
// returns all faults, up to ten, each a *store.CorruptError. It takes four bytes for each term.
func (x *Forward) Verify(ctx context.Context) error {
	var faults store.Faults
	faults.Parallel(len(x.columns), func(i int) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := x.columns[i].verify(); err != nil {
			return fmt.Errorf("kept column %q: %w", x.columns[i].Name, err)
		}
		return nil
	})
	faults.Parallel(len(x.stored), func(tile int) error {
		return x.stored[tile].verify(x.file.TileLen(tile), len(x.rows))
	})
	return faults.Err()
}

func (c *Column) verify() error {
	var total totals
	var counts []uint32
	var weights []uint8
	if c.Form == schema.KeptTerms {
		counts = make([]uint32, c.Keywords)
		weights = weightsOf(c.frequency, c.IDFScale, c.file.Objects())
	}
	if c.Form == schema.KeptNumbers {
		if err := c.floats.verify(&total); err != nil {
			return err
		}
	}
	for tile := range c.file.Tiles() {
		var err error
		switch n := c.file.TileLen(tile); tileKind(c.Form) {
		case SectionTerms:
			err = c.terms[tile].verify(c, weights, &total, func(term uint32) { counts[term]++ })
		case SectionVectors:
			err = c.vectors[tile].verify(n, &c.KeptSpec, &total)
		case SectionBlobs:
			for i := range uint32(n) {
				total.add(uint32(len(c.blobs[tile].Bytes(i))))
				if err := c.readable(c.blobs[tile].At(i)); err != nil {
					return store.Corrupt("object %d of the tile: %v", i, err)
				}
			}
		}
		if err != nil {
			return err
		}
	}
	if c.Form == schema.KeptTerms {
		total.total = total.length
	}
	if total.objects != c.Objects || total.most != c.Most || total.total != c.Total {
		return store.Corrupt("%d objects have %d values, at most %d; the table says %d, %d and %d", total.objects, total.total, total.most,
			c.Objects, c.Total, c.Most)
	}
	for term, n := range counts {
		if c.frequency[term] != n {
			return store.Corrupt("%d objects have term %d, not %d", n, term, c.frequency[term])
		}
	}
	return c.verifyDictionary()
}

// readable says why what is kept of an object is no tree or graph.
func (c *Column) readable(blob string) error {
	switch {
	case blob == "":
		return nil
	case c.Form == schema.KeptTrees:
		return new(tree.Tree).Decode(blob)
	case c.Form == schema.KeptGraphs:
		return new(graph.Graph).Decode(blob)
	}
	return nil
}

func (c *Column) verifyDictionary() error {
	if !c.Vocabulary {
		return nil
	}
	previous := ""
	for term := range c.Keywords {
		s := c.dictionary.At(term)
		if term > 0 && strings.Compare(s, previous) <= 0 {
			return store.Corrupt("term %d of the dictionary is not above its predecessor", term)
		}
		previous = s
		if found, ok := c.finder.Find(&c.dictionary, s); !ok || found != term {
			return store.Corrupt("the finder does not find term %d", term)
		}
	}
	used := 0
	for _, slot := range c.finder {
		if slot != 0 {
			used++
		}
	}
	if used != int(c.Keywords) {
		return store.Corrupt("the finder has %d entries for %d terms", used, c.Keywords)
	}
	return nil
}
