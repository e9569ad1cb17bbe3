package service

import (
	"encoding/json"
	"errors"

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
}

func newEncoder(name string, x *index.Index) (*encoder, error) {
	queries, err := encode.NewQueries(x)
	if err != nil {
		return nil, err
	}
	e := &encoder{name: name, index: x, queries: queries}
	if x.Schema().Kind == index.Sequences {
		for _, column := range x.Schema().Columns {
			if column.Type == index.TextColumn && !column.Store {
				e.textColumn = column.Name
			}
		}
	}
	return e, nil
}

// plan makes the plan of a query that wire has validated. The error is for the user.
func (e *encoder) plan(q *wire.Query) (gpuexec.Plan, *wire.Error) {
	match := gpuexec.MatchPlan{K: q.K, MinCount: q.MinCount}
	var err error
	switch form := q.Form(); form {
	case wire.RowForm:
		err = e.queries.Conditions(&match.Query, conditions(q.Row))
	case wire.ItemsForm:
		err = e.queries.Conditions(&match.Query, conditions(q.Items))
	case wire.TextForm:
		err = e.queries.Text(&match.Query, q.Text)
		if e.index.Schema().Kind == index.Sequences {
			match.K = q.Candidates
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

func conditions(from []wire.Condition) []encode.Condition {
	conds := make([]encode.Condition, len(from))
	for i := range from {
		c := &from[i]
		conds[i] = encode.Condition{
			Attr: c.Attr, Value: optional(c.Value), Min: optional(c.Min), Max: optional(c.Max),
			In: values(c.In), Bucket: c.Bucket, Weight: c.Weight,
		}
	}
	return conds
}

func optional(v wire.Value) *encode.Value {
	if v.IsZero() {
		return nil
	}
	value := toValue(v)
	return &value
}

func values(from []wire.Value) []encode.Value {
	if from == nil {
		return nil
	}
	to := make([]encode.Value, len(from))
	for i, v := range from {
		to[i] = toValue(v)
	}
	return to
}

func toValue(v wire.Value) encode.Value {
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
