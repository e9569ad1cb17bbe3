package wire

import (
	"math"
	"time"
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

// DecodeResult decodes a body that holds one result.
func DecodeResult(ct ContentType, body []byte) (*Result, error) {
	a, err := DecodeAnswer(ct, body)
	switch {
	case err != nil:
		return nil, err
	case a.Batch:
		return nil, badRequest("decoding a result: the body answers a batch")
	}
	return &a.Results[0], nil
}

type resultDecoder struct {
	r    reader
	hits int // of the last result: the next one likely has as many
}

// fields calls read for each member of the next value, which must be an object. read returns false for a member that
// it does not know and has not touched.
func (d *resultDecoder) fields(read func(name string) (bool, *Error)) *Error {
	if err := d.enter(objectKind, "an object"); err != nil {
		return err
	}
	for d.r.more() {
		name, err := d.r.str()
		if err != nil {
			return err
		}
		known, err := read(name)
		if err != nil {
			return err.in("%s", clip(name))
		}
		if !known {
			skip(d.r)
		}
	}
	if failed := d.r.failed(); failed != nil {
		return failed
	}
	d.r.leave()
	return nil
}

func (d *resultDecoder) enter(k kind, name string) *Error {
	got := d.r.peek()
	if got == noKind {
		d.r.skipScalar() // fails with the reason
		if failed := d.r.failed(); failed != nil {
			return failed
		}
	}
	if got != k {
		return expected(name, got)
	}
	return d.r.enter()
}

func (d *resultDecoder) answer() (*Answer, *Error) {
	a := &Answer{}
	var single Result
	err := d.fields(func(name string) (known bool, err *Error) {
		switch name {
		case "first":
			a.Batch = true
			a.First, err = integer[int](d.r, 0, math.MaxInt32)
		case "results":
			a.Batch = true
			a.Results, err = d.results()
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
	return nil
}

func (d *resultDecoder) results() ([]Result, *Error) {
	if err := d.enter(arrayKind, "an array"); err != nil {
		return nil, err
	}
	results := []Result{}
	for d.r.more() {
		var r Result
		err := d.fields(func(name string) (bool, *Error) { return d.resultField(&r, name) })
		if err != nil {
			return nil, err.in("[%d]", len(results))
		}
		if err := r.check(); err != nil {
			return nil, err.in("[%d]", len(results))
		}
		results = append(results, r)
	}
	if failed := d.r.failed(); failed != nil {
		return nil, failed
	}
	d.r.leave()
	return results, nil
}

func (d *resultDecoder) resultField(r *Result, name string) (known bool, err *Error) {
	switch name {
	case "id":
		r.ID, err = d.r.str()
	case "index":
		r.Index, err = d.r.str()
	case "version":
		r.Version, err = d.r.str()
	case "hits":
		r.Hits, err = d.hitList()
	case "mc_k":
		r.MCK, err = integer[uint32](d.r, 0, math.MaxUint32)
	case "exact":
		r.Exact, err = d.r.boolean()
	case "took_us":
		err = d.took(&r.Took)
	case "error":
		r.Err, err = d.error()
	default:
		return false, nil
	}
	return true, err
}

func (d *resultDecoder) hitList() ([]Hit, *Error) {
	if err := d.enter(arrayKind, "an array"); err != nil {
		return nil, err
	}
	hits := make([]Hit, 0, min(d.hits, 256))
	for d.r.more() {
		hits = append(hits, Hit{})
		if err := d.hit(&hits[len(hits)-1]); err != nil {
			return nil, err.in("[%d]", len(hits)-1)
		}
	}
	if failed := d.r.failed(); failed != nil {
		return nil, failed
	}
	d.r.leave()
	d.hits = len(hits)
	return hits, nil
}

func (d *resultDecoder) hit(h *Hit) *Error {
	return d.fields(func(name string) (known bool, err *Error) {
		switch name {
		case "id":
			h.ID, err = integer[uint32](d.r, 0, math.MaxUint32)
		case "key":
			h.Key, err = d.r.str()
		case "count":
			h.Count, err = integer[uint32](d.r, 0, math.MaxUint32)
		case "similarity":
			var v float64
			v, err = d.finite(math.MaxFloat32)
			h.Similarity, h.HasSimilarity = float32(v), true
		case "distance":
			h.Distance, err = d.finite(math.MaxFloat64)
			h.HasDistance = true
		case "payload":
			h.Payload, err = d.r.json(nil)
		default:
			return false, nil
		}
		return true, err
	})
}

// finite reads a number of a size that can be kept, and written in JSON again.
func (d *resultDecoder) finite(most float64) (float64, *Error) {
	v, err := d.r.number()
	if err == nil && !(math.Abs(v) <= most) { // NaN too
		err = badRequest("%v is out of range", v)
	}
	return v, err
}

func (d *resultDecoder) took(t *Took) *Error {
	return d.fields(func(name string) (bool, *Error) {
		for _, p := range t.parts() {
			if p.name == name {
				us, err := d.finite(math.MaxInt64 / float64(2*time.Microsecond))
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
