package wire

import (
	"time"

	"github.com/geniemq/geniemq/wire/fields"
)

// maxResultDepth bounds the nesting of answers, which hold payloads of any shape.
const maxResultDepth = 1000

// DecodeAnswer decodes the body of an answer, or of one part of it. Fields it does not know are skipped. The error,
// which is an *[Error], says that the body is no answer; errors of queries are in the results.
//
// The body is not kept. Strings of the results share one copy of it.
func DecodeAnswer(ct ContentType, body []byte) (*Answer, error) {
	if len(body) == 0 {
		return nil, badRequest("the answer is empty")
	}
	d := resultDecoder{r: newReader(ct, body, maxResultDepth)}
	a, err := d.answer()
	if err == nil {
		d.r.finish()
		err = d.r.failed()
	}
	if err != nil {
		return nil, err.in("decoding an answer")
	}
	return a, nil
}

func (d *resultDecoder) answer() (*Answer, *Error) {
	a := &Answer{}
	var single Result
	err := d.fields(func(name string) (known bool, err *Error) {
		switch name {
		case "first":
			a.Batch = true
			a.First, err = integer[int](d.r, fields.Answer.Find(name))
		case "results":
			a.Batch = true
			a.Results, err = elements(d, []Result{}, d.result)
		default:
			return d.resultField(&single, name)
		}
		return true, err
	})
	if err != nil {
		return nil, err
	}
	if !a.Batch {
		if err := single.check(); err != nil {
			return nil, err
		}
		a.Results = []Result{single}
	}
	return a, nil
}

// check reports what is no result at all: other services' messages, which anybody may have sent to where results go, must not
// pass for results without hits.
func (r *Result) check() *Error {
	if r.Hits == nil && r.Err == nil {
		return badRequest("it is no result: it has neither hits nor an error")
	}
	if r.FirstHit+len(r.Hits) > r.AllHits && (r.AllHits > 0 || r.FirstHit > 0) {
		return badRequest("hits %d to %d of %d are no part of a result", r.FirstHit, r.FirstHit+len(r.Hits), r.AllHits)
	}
	return nil
}

func (d *resultDecoder) result(r *Result) *Error {
	if err := d.fields(func(name string) (bool, *Error) { return d.resultField(r, name) }); err != nil {
		return err
	}
	return r.check()
}

func (d *resultDecoder) resultField(r *Result, name string) (known bool, err *Error) {
	f := fields.Result.Find(name)
	switch name {
	case "id":
		r.ID, err = d.r.str()
	case "index":
		r.Index, err = d.r.str()
	case "version":
		r.Version, err = d.r.str()
	case "first_hit":
		r.FirstHit, err = integer[int](d.r, f)
	case "all_hits":
		r.AllHits, err = integer[int](d.r, f)
	case "hits":
		err = d.hitsOf(r)
	case "mc_k":
		r.MCK, err = integer[uint32](d.r, f)
	case "exact":
		r.Exact, err = d.r.boolean()
	case "total":
		r.Total, err = integer[uint64](d.r, f)
		r.HasTotal = true
	case "in_range":
		r.InRange, err = integer[uint64](d.r, f)
		r.HasInRange = true
	case "method":
		r.Method, err = d.r.str()
	case "fraction":
		r.Fraction, err = d.within(f)
	case "expected_recall":
		r.ExpectedRecall, err = d.within(f)
		r.HasExpectedRecall = true
	case "warnings":
		r.Warnings, err = d.strings()
	case "explain":
		r.Explain, err = d.r.json(nil)
	case "took_us":
		err = d.took(&r.Took)
	case "error":
		r.Err, err = d.error()
	default:
		return false, nil
	}
	return true, err
}

// hitsOf decodes the hits of a result, in whichever form they are.
func (d *resultDecoder) hitsOf(r *Result) (err *Error) {
	if d.r.peek() == objectKind {
		return d.columnHits(r)
	}
	r.HitsForm = HitsList
	r.Hits, err = elements(d, make([]Hit, 0, min(d.hits, 256)), d.hit)
	d.hits = len(r.Hits)
	return err
}

func (d *resultDecoder) hit(h *Hit) *Error {
	return d.fields(func(name string) (known bool, err *Error) {
		f := fields.Hit.Find(name)
		switch name {
		case "id":
			h.ID, err = integer[uint32](d.r, f)
		case "key":
			h.Key, err = d.r.str()
		case "count":
			h.Count, err = integer[uint32](d.r, f)
		case "similarity":
			var v float64
			v, err = d.within(f)
			h.Similarity, h.HasSimilarity = float32(v), true
		case "distance":
			h.Distance, err = d.within(f)
			h.HasDistance = true
		case "score":
			h.Score, err = d.within(f)
			h.HasScore = true
		case "matched":
			h.detail().Matched, err = d.strings()
		case "columns":
			h.detail().Columns, err = d.columns()
		case "payload":
			h.Payload, err = d.r.json(nil)
		default:
			return false, nil
		}
		return true, err
	})
}

func (d *resultDecoder) took(t *Took) *Error {
	return d.fields(func(name string) (bool, *Error) {
		for _, p := range t.parts() {
			if p.name == name {
				us, err := integer[uint64](d.r, fields.Took.Find(name))
				*p.d = time.Duration(us) * time.Microsecond
				return true, err
			}
		}
		return false, nil
	})
}

func (d *resultDecoder) error() (*Error, *Error) {
	e := &Error{}
	err := d.fields(func(name string) (known bool, err *Error) {
		switch name {
		case "code":
			var code string
			code, err = d.r.str()
			e.Code = Code(code)
		case "message":
			e.Message, err = d.r.str()
		default:
			return false, nil
		}
		return true, err
	})
	return e, err
}
