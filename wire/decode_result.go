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
			err = d.value(fields.Answer.Find(name), &a.First, nil)
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
	if f == nil {
		return false, nil
	}
	switch f.Holds {
	case fields.HitList:
		err = d.hitsOf(r)
	case fields.JSON:
		r.Explain, err = d.r.json(nil)
	case fields.Nested:
		if name == "error" {
			r.Err, err = d.error()
		} else {
			err = d.took(&r.Took)
		}
	default:
		to, has := r.place(name)
		err = d.value(f, to, has)
	}
	return true, err
}

// place is where a result has a field of a simple type.
func (r *Result) place(name string) (to any, has *bool) {
	switch name {
	case "id":
		return &r.ID, nil
	case "index":
		return &r.Index, nil
	case "version":
		return &r.Version, nil
	case "first_hit":
		return &r.FirstHit, nil
	case "all_hits":
		return &r.AllHits, nil
	case "mc_k":
		return &r.MCK, nil
	case "exact":
		return &r.Exact, nil
	case "total":
		return &r.Total, &r.HasTotal
	case "in_range":
		return &r.InRange, &r.HasInRange
	case "method":
		return &r.Method, nil
	case "fraction":
		return &r.Fraction, nil
	case "expected_recall":
		return &r.ExpectedRecall, &r.HasExpectedRecall
	case "warnings":
		return &r.Warnings, nil
	}
	return nil, nil
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
		if f == nil {
			return false, nil
		}
		switch f.Holds {
		case fields.JSON:
			h.Payload, err = d.r.json(nil)
		case fields.Estimates:
			h.detail().Columns, err = d.columns()
		case fields.Texts:
			h.detail().Matched, err = d.strings()
		default:
			to, has := h.place(name)
			err = d.value(f, to, has)
		}
		return true, err
	})
}

// place is where a hit has a field of a simple type.
func (h *Hit) place(name string) (to any, has *bool) {
	switch name {
	case "id":
		return &h.ID, nil
	case "key":
		return &h.Key, nil
	case "count":
		return &h.Count, nil
	case "similarity":
		return &h.Similarity, &h.HasSimilarity
	case "distance":
		return &h.Distance, &h.HasDistance
	case "score":
		return &h.Score, &h.HasScore
	}
	return nil, nil
}

func (d *resultDecoder) took(t *Took) *Error {
	return d.fields(func(name string) (bool, *Error) {
		for _, p := range t.parts() {
			if p.name == name {
				var us uint64
				err := d.value(fields.Took.Find(name), &us, nil)
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
		var to *string
		switch name {
		case "code":
			to = (*string)(&e.Code)
		case "message":
			to = &e.Message
		default:
			return false, nil
		}
		return true, d.value(fields.Error.Find(name), to, nil)
	})
	return e, err
}
