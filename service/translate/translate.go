// Package translate is where the protocol meets the index: queries become plans, hits become results.
package translate

import (
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/column"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/schema"
	"github.com/geniemq/geniemq/index/verify"
	"github.com/geniemq/geniemq/wire"
)

// Translator turns a wire.Query into a plan for one index and the engine's
// answer into a wire.Result. Nothing else knows both sides. It is safe for concurrent use.
type Translator struct {
	Name    string // of the index, as its users know it
	index   *index.Index
	queries *index.Queries
	// textColumn is the column whose text a sequence's payload holds, "" where payloads are complete as stored.
	textColumn string
	// LongestKey and LongestPayload are bytes of what is shown of an object.
	LongestKey, LongestPayload int64
	// A text with certify may have so many symbols; more than certifyWork in all would have to be compared.
	certifySymbols, certifyWork int64
	converters                  sync.Pool // of *converter
}

// New makes the translator of an index. certifyLimit bounds the symbols of a text with certify times the bytes of all texts; 0: no
// bound.
func New(name string, x *index.Index, certifyLimit int64) (*Translator, error) {
	queries, err := index.NewQueries(x)
	if err != nil {
		return nil, err
	}
	e := &Translator{Name: name, index: x, queries: queries}
	e.certifyWork, e.certifySymbols = certifyLimit, certifyLimit/max(1, x.TextBytes())
	key, payload, text := x.Longest()
	e.LongestKey, e.LongestPayload = int64(key), int64(payload)
	e.converters.New = func() any { return new(converter) }
	if x.Schema().Kind == schema.Sequences {
		for _, col := range x.Schema().Columns {
			if col.Type == schema.TextColumn && !col.Store {
				e.textColumn = col.Name
				e.LongestPayload += quoteFactor * int64(text+len(col.Name)+4)
			}
		}
	}
	return e, nil
}

// quoteFactor is how many times longer a string may become in JSON.
const quoteFactor = 6

// Plan makes the plan of a query that wire has validated, in memory for its items and spans. The error is for the user.
func (e *Translator) Plan(items []postings.Item, spans []postings.Span, q *wire.Query) (gpuexec.Plan, *wire.Error) {
	match := &postings.MatchQuery{Items: items, Spans: spans}
	plan := gpuexec.Plan{Family: postings.FamilyName, Query: match, K: q.K, MinCount: q.MinCount}
	var err error
	switch form := q.Form(); form {
	case wire.RowForm:
		err = e.conditions(&plan, match, q.Row)
	case wire.ItemsForm:
		err = e.conditions(&plan, match, q.Items)
	case wire.TextForm:
		err = e.queries.Text(match, q.Text)
		if e.index.Schema().Kind == schema.Sequences {
			plan.K = q.Candidates
			if refusal := e.checkCertify(q); refusal != nil {
				return gpuexec.Plan{}, refusal
			}
			plan.Certify = q.Certify
			plan.Rescore = &verify.Nearest{Texts: e.index, NGram: e.index.Schema().NGram, Text: []rune(q.Text), K: q.K}
		}
	default:
		return gpuexec.Plan{}, wire.Errorf(wire.Unsupported, "index %s holds %s and cannot be asked with a %s yet",
			e.Name, e.index.Schema().Kind, form)
	}
	var mistake *column.QueryError
	switch {
	case errors.As(err, &mistake):
		return gpuexec.Plan{}, wire.Errorf(wire.BadRequest, "%s", mistake.Reason)
	case err != nil:
		return gpuexec.Plan{}, wire.Errorf(wire.Internal, "encoding the query: %v", err)
	}
	return plan, nil
}

// checkCertify refuses a query whose certificate may take too much work: in the end all texts are compared.
func (e *Translator) checkCertify(q *wire.Query) *wire.Error {
	if !q.Certify || e.certifyWork == 0 {
		return nil
	}
	symbols := int64(utf8.RuneCountInString(q.Text))
	if symbols <= e.certifySymbols {
		return nil
	}
	return wire.Errorf(wire.TooLarge, "certify may have to compare the text, of %d symbols, with all of the index, of %d bytes, which is more than "+
		"certify-limit (%d): ask with at most %d symbols or without certify, or have the limit raised", symbols, e.index.TextBytes(),
		e.certifyWork, e.certifySymbols)
}

// Rescored is what a structure of a column's own is asked, where hits are in another order than that of counts.
type Rescored interface {
	Rescore(k int) verify.Rescore
}

// conditions makes of a list of conditions a query of the lists, in match, or of the structure that a column of its own kind has.
func (e *Translator) conditions(plan *gpuexec.Plan, match *postings.MatchQuery, from []wire.Condition) error {
	c := e.converters.Get().(*converter)
	conds := c.convert(from)
	family, query, err := e.queries.Query(match, conds)
	if err == nil && family != plan.Family {
		plan.Family, plan.Query = family, query
		if by, ok := query.(Rescored); ok {
			plan.Rescore = by.Rescore(plan.K)
		}
	}
	if cap(c.values) <= maxConverted {
		clear(conds) // the message must not live on in the pool
		clear(c.values)
		e.converters.Put(c)
	}
	return err
}

// converter is memory for the conditions of one query in the index's words, used again for the next: queries may have
// hundreds, with a value or two each, of which only spans remain.
type converter struct {
	conds  []column.Condition
	values []column.Value
}

// maxConverted is for how many values memory is kept.
const maxConverted = 4096

func (c *converter) convert(from []wire.Condition) []column.Condition {
	c.conds, c.values = slices.Grow(c.conds[:0], len(from)), c.values[:0]
	values := 0
	for i := range from {
		values += len(from[i].In) + 3
	}
	c.values = slices.Grow(c.values, values) // nothing moves what conditions point to
	for i := range from {
		f := &from[i]
		c.conds = append(c.conds, column.Condition{Attr: f.Attr, Bucket: f.Bucket, Weight: f.Weight})
		to := &c.conds[i]
		if f.Other != nil {
			to.Other, to.Refusal = f.Other.Value, &column.QueryError{Reason: f.Other.Refusal.Message}
		}
		to.Value, to.Min, to.Max = c.optional(&f.Value), c.optional(&f.Min), c.optional(&f.Max)
		if f.In != nil {
			first := len(c.values)
			for j := range f.In {
				c.values = append(c.values, toValue(&f.In[j]))
			}
			to.In = c.values[first:len(c.values):len(c.values)]
		}
	}
	return c.conds
}

func (c *converter) optional(v *wire.Value) *column.Value {
	if v.Kind == wire.NoValue {
		return nil
	}
	c.values = append(c.values, toValue(v))
	return &c.values[len(c.values)-1]
}

func toValue(v *wire.Value) column.Value {
	switch v.Kind {
	case wire.NumberValue:
		return column.NumberValue(v.Number)
	case wire.StringValue:
		return column.StringValue(v.String)
	case wire.BoolValue:
		return column.BoolValue(v.Bool())
	}
	return column.Value{}
}

// payloadOf is the stored payload of an object. A sequence's text is part of it, although it is stored apart.
func (e *Translator) payloadOf(id uint32) []byte {
	stored := e.index.Payload(id)
	if e.textColumn == "" {
		return stored
	}
	payload := append([]byte(nil), '{')
	payload = append(appendQuoted(payload, e.textColumn), ':')
	payload = appendQuoted(payload, e.index.Text(id))
	if len(stored) > len("{}") {
		return append(append(payload, ','), stored[1:]...)
	}
	return append(payload, '}')
}

// appendQuoted appends a JSON string.
func appendQuoted(dst []byte, s string) []byte {
	quoted, _ := json.Marshal(s) // strings cannot fail
	return append(dst, quoted...)
}

// Hits makes what is shown of the hits of an engine's answer, in empty ones. It says whether they hold keys or payloads.
func (e *Translator) Hits(dst []wire.Hit, answer *gpuexec.Answer, payload bool) (held bool) {
	keyed := e.index.Schema().Key != ""
	for i := range dst {
		// Fields with pointers are empty and stay so where there is nothing to put: no write barriers, one per hit.
		from, to := &answer.Hits[i], &dst[i]
		to.ID, to.Count = from.ID, from.Count
		if keyed { // else the key is the id, which wire writes
			to.Key = e.index.Key(from.ID)
		}
		if to.HasDistance = answer.Scored; to.HasDistance {
			to.Distance = from.Score
		}
		if payload {
			to.Payload = e.payloadOf(from.ID)
		}
	}
	return keyed || payload
}

// PayloadSizes is how many bytes the payloads of hits have together, at least.
func (e *Translator) PayloadSizes(hits []gpuexec.Hit) int {
	size := 0
	for i := range hits {
		size += len(e.index.Payload(hits[i].ID))
		if e.textColumn != "" {
			size += len(e.index.Text(hits[i].ID))
		}
	}
	return size
}

// Assembled says that payloads are put together, in memory of their own.
func (e *Translator) Assembled() bool { return e.textColumn != "" }

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
