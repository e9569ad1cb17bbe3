// Package translate is where the protocol meets the index: queries become plans, hits become results.
package translate

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/shown"
	"github.com/geniemq/geniemq/internal/pool"
	"github.com/geniemq/geniemq/wire"
)

// Translator turns a wire.Query into a plan for one index and the engine's
// answer into a wire.Result. Nothing else knows both sides. It is safe for concurrent use.
type Translator struct {
	Name    string // of the index, as its users know it
	Version string // its version
	index   *index.Index
	queries *index.Queries
	// textColumn is the column of the texts of sequences, "" of other indexes.
	textColumn string
	shown      *shown.Objects // the payloads of objects
	longestKey int64          // in bytes
	prepares   bool           // there is something for Prepare to do
	// A text with certify may have so many symbols; more than certifyWork in all would have to be compared.
	certifySymbols, certifyWork int64

	// Memory that is used again.
	converters pool.Of[converter]
	answers    pool.Of[Answer]
	spares     pool.Of[spareHits]
}

// New makes the translator of an index. certifyLimit bounds the symbols of a text with certify times the bytes of all texts; 0: no
// bound.
func New(name string, x *index.Index, certifyLimit int64) (*Translator, error) {
	queries, err := index.NewQueries(x)
	if err != nil {
		return nil, err
	}
	e := &Translator{Name: name, Version: x.Version(), index: x, queries: queries}
	e.certifyWork, e.certifySymbols = certifyLimit, certifyLimit/max(1, x.TextBytes())
	key, _, _ := x.Longest()
	e.textColumn, e.prepares = queries.Compared(), queries.Prepares("")
	e.shown = shown.Of(x, e.textColumn)
	e.longestKey = int64(key)
	return e, nil
}

// show makes what is shown of some hits of a query, in empty ones, and says whether they hold keys or payloads. It stops at the one at which payloads that are put
// together take more than most bytes together: made is how many there are before, and size what they take with it.
func (e *Translator) show(dst []wire.Hit, hits []gpuexec.Hit, q *Query, reader *shown.Reader, most int) (held bool, made, size int) {
	keyed := e.index.Schema().Key != "" && q.Form != wire.HitsColumns
	composed := e.shown.Composed()
	for i := range dst {
		// Fields with pointers are empty and stay so where there is nothing to put: no write barriers, one per hit.
		from, to := &hits[i], &dst[i]
		to.ID, to.Count = from.ID, from.Count
		if keyed { // else the key is the id, which wire writes
			to.Key = e.index.Key(from.ID)
		}
		// The memory may be that of another answer, whose hits had these.
		to.HasSimilarity, to.HasScore = false, false
		if to.HasDistance = q.Answer.Scored; to.HasDistance {
			to.Distance = from.Score
		}
		if q.Payload {
			if to.Payload = reader.Object(from.ID); composed {
				if size += len(to.Payload); size > most {
					return true, i, size
				}
			}
		}
	}
	return keyed || q.Payload, len(dst), size
}

// payloadsWithin is how many of the first hits have payloads of at most so many bytes together, at least, and how many bytes those of all hits have.
func (e *Translator) payloadsWithin(hits []gpuexec.Hit, most int) (n, size int) {
	for i := range hits {
		size += len(e.index.Payload(hits[i].ID))
		if e.textColumn != "" {
			size += len(e.index.Text(hits[i].ID))
		}
		if size <= most {
			n = i + 1
		}
	}
	return n, size
}

// Probe asks for the objects with some keyword.
func Probe(x *index.Index) gpuexec.Plan {
	query := new(postings.MatchQuery)
	plan := gpuexec.Plan{Family: postings.FamilyName, Query: query, K: 1}
	for i, a := range x.Attributes() {
		if a.Keywords > 0 {
			query.StartItem(uint32(i), 1)
			query.AddSpan(a.Keywords/2, a.Keywords/2+1)
			break
		}
	}
	return plan
}

// Example is a query that finds something in the index, where that has what it takes. It holds no apostrophe.
func (e *Translator) Example() string {
	x, query := e.index, map[string]any{"k": 3}
	if e.textColumn != "" && x.Objects() > 0 {
		query["text"] = x.Text(x.Objects() / 2)
	} else {
		row := make(map[string]any)
		columns := x.Schema().Columns
		for i := range columns {
			if value := e.exampleOf(&columns[i]); value != nil && len(row) < 3 {
				row[columns[i].Name] = value
			}
		}
		if query["row"] = row; len(row) == 0 && x.Schema().Kind.Mixed() {
			delete(query, "row")
			if !e.exampleDistance(query) {
				query["total"] = true
			}
		}
	}
	text, err := json.Marshal(query)
	if err != nil {
		return "{}"
	}
	return strings.ReplaceAll(string(text), "'", `\u0027`) // it is shown between quotes, for a shell
}

// exampleOf is what a column can be asked for; nil where nothing simple comes to mind.
func (e *Translator) exampleOf(c *schema.Column) any {
	x := e.index
	switch c.Type {
	case schema.VectorColumn:
		if !distance.Hashed(c) { // it is no column for rows
			return nil
		}
		return e.exampleVector(c, 0)
	case schema.StringColumn:
		if kept := x.Forward(); kept != nil && kept.Column(c.Name) != nil && x.Objects() > 0 {
			if text := kept.Column(c.Name).Text(x.Objects() / 2); text != "" {
				return text
			}
		}
		return nil
	case schema.TreeColumn, schema.GraphColumn:
		return nil
	}
	at := slices.IndexFunc(x.Attributes(), func(a postings.Attribute) bool { return a.Name == c.Name })
	if at < 0 || x.Attribute(at).Keywords == 0 {
		return nil
	}
	a := x.Attribute(at)
	middle := x.KeywordName(at, a.Keywords/2)
	switch {
	case a.Type == schema.Ordinal: // a hash function
		return nil
	case c.Type == schema.DateColumn: // the interval is written in dates
		from, _, _ := strings.Cut(strings.TrimLeft(middle, "["), ",")
		return map[string]string{"min": from}
	case a.Type == schema.Number:
		return map[string]float64{"min": a.Min, "max": (a.Min + a.Max) / 2}
	}
	return middle
}

// exampleDistance asks for what is near to an object, where a column can be searched by distance; false: none can.
func (e *Translator) exampleDistance(query map[string]any) bool {
	columns := e.index.Distances()
	for i := range columns.Len() {
		c := columns.At(i)
		id := uint32(0)
		for id < min(c.Objects, exampleObjects) && !c.Has(id) {
			id++
		}
		if !c.Has(id) {
			continue
		}
		query["column"] = c.Name
		switch c.Of {
		case distance.Vectors:
			at := slices.IndexFunc(e.index.Schema().Columns, func(s schema.Column) bool { return s.Name == c.Name })
			query["vector"] = e.exampleVector(&e.index.Schema().Columns[at], id)
		case distance.Points:
			query["point"] = e.index.Forward().Column(c.Name).Numbers(id)
		default:
			delete(query, "column")
			continue // strings are asked in rows
		}
		return true
	}
	return false
}

// exampleObjects is how many objects are looked at for an example.
const exampleObjects = 100

// exampleVector is an object's vector in a column.
func (e *Translator) exampleVector(c *schema.Column, id uint32) []float32 {
	vector := make([]float32, c.Dims)
	if kept := e.index.Forward(); kept != nil && kept.Column(c.Name) != nil && e.index.Objects() > 0 {
		floats, bytes := kept.Column(c.Name).Vector(id)
		copy(vector, floats)
		for i, v := range bytes {
			vector[i] = float32(v)
		}
	}
	return vector
}
