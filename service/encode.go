package service

import (
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/encode"
	"github.com/geniemq/geniemq/wire"
)

// encoder is where the protocol meets the index: it turns a wire.Query into a plan for one index and the engine's
// answer into a wire.Result. Nothing else knows both sides. It is safe for concurrent use.
type encoder struct {
	name    string // of the index, as its users know it
	index   *index.Index
	queries *encode.Queries
	// textColumn is the column whose text a sequence's payload holds, "" where payloads are complete as stored.
	textColumn string
	// longestKey and longestPayload are bytes of what is shown of an object.
	longestKey, longestPayload int64
	// A text with certify may have so many symbols; more than certifyWork in all would have to be compared.
	certifySymbols, certifyWork int64
	converters                  sync.Pool // of *converter
}

func newEncoder(name string, x *index.Index) (*encoder, error) {
	queries, err := encode.NewQueries(x)
	if err != nil {
		return nil, err
	}
	e := &encoder{name: name, index: x, queries: queries}
	key, payload, text := x.Longest()
	e.longestKey, e.longestPayload = int64(key), int64(payload)
	e.converters.New = func() any { return new(converter) }
	if x.Schema().Kind == index.Sequences {
		for _, column := range x.Schema().Columns {
			if column.Type == index.TextColumn && !column.Store {
				e.textColumn = column.Name
				e.longestPayload += quoteFactor * int64(text+len(column.Name)+4)
			}
		}
	}
	return e, nil
}

// quoteFactor is how many times longer a string may become in JSON.
const quoteFactor = 6

// plan makes the plan of a query that wire has validated, in memory for its items and spans. The error is for the user.
func (e *encoder) plan(items []index.Item, spans []index.Span, q *wire.Query) (gpuexec.Plan, *wire.Error) {
	match := gpuexec.MatchPlan{K: q.K, MinCount: q.MinCount, Query: index.Query{Items: items, Spans: spans}}
	var err error
	switch form := q.Form(); form {
	case wire.RowForm:
		err = e.conditions(&match.Query, q.Row)
	case wire.ItemsForm:
		err = e.conditions(&match.Query, q.Items)
	case wire.TextForm:
		err = e.queries.Text(&match.Query, q.Text)
		if e.index.Schema().Kind == index.Sequences {
			match.K = q.Candidates
			if refusal := e.checkCertify(q); refusal != nil {
				return gpuexec.Plan{}, refusal
			}
			match.Verify = &gpuexec.SequencePlan{Text: []rune(q.Text), K: q.K, Certify: q.Certify}
		}
	default:
		return gpuexec.Plan{}, wire.Errorf(wire.Unsupported, "index %s holds %s and cannot be asked with a %s yet",
			e.name, e.index.Schema().Kind, form)
	}
	var mistake *encode.QueryError
	switch {
	case errors.As(err, &mistake):
		return gpuexec.Plan{}, wire.Errorf(wire.BadRequest, "%s", mistake.Reason)
	case err != nil:
		return gpuexec.Plan{}, wire.Errorf(wire.Internal, "encoding the query: %v", err)
	}
	return gpuexec.Plan{Kind: gpuexec.PlanMatch, Match: match}, nil
}

// limitCertify bounds the symbols of a text times the bytes of all texts.
func (e *encoder) limitCertify(limit int64) {
	e.certifyWork, e.certifySymbols = limit, limit/max(1, e.index.TextBytes())
}

// checkCertify refuses a query whose certificate may take too much work: in the end all texts are compared.
func (e *encoder) checkCertify(q *wire.Query) *wire.Error {
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

// conditions makes dst the query for a list of conditions.
func (e *encoder) conditions(dst *index.Query, from []wire.Condition) error {
	c := e.converters.Get().(*converter)
	conds := c.convert(from)
	err := e.queries.Conditions(dst, conds)
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
	conds  []encode.Condition
	values []encode.Value
}

// maxConverted is for how many values memory is kept.
const maxConverted = 4096

func (c *converter) convert(from []wire.Condition) []encode.Condition {
	c.conds, c.values = slices.Grow(c.conds[:0], len(from)), c.values[:0]
	values := 0
	for i := range from {
		values += len(from[i].In) + 3
	}
	c.values = slices.Grow(c.values, values) // nothing moves what conditions point to
	for i := range from {
		f := &from[i]
		c.conds = append(c.conds, encode.Condition{Attr: f.Attr, Bucket: f.Bucket, Weight: f.Weight})
		to := &c.conds[i]
		if f.Other != nil {
			to.Other, to.Refusal = f.Other.Value, f.Other.Refusal.Message
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

func (c *converter) optional(v *wire.Value) *encode.Value {
	if v.Kind == wire.NoValue {
		return nil
	}
	c.values = append(c.values, toValue(v))
	return &c.values[len(c.values)-1]
}

func toValue(v *wire.Value) encode.Value {
	switch v.Kind {
	case wire.NumberValue:
		return encode.NumberValue(v.Number)
	case wire.StringValue:
		return encode.StringValue(v.String)
	case wire.BoolValue:
		return encode.BoolValue(v.Bool())
	}
	return encode.Value{}
}

// payloadOf is the stored payload of an object. A sequence's text is part of it, although it is stored apart.
func (e *encoder) payloadOf(id uint32) []byte {
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
