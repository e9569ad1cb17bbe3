package translate

import (
	"errors"
	"time"
	"unicode/utf8"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
	"github.com/geniemq/geniemq/index/distance"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/refusal"
	"github.com/geniemq/geniemq/index/verify"
	"github.com/geniemq/geniemq/wire"
)

// Plan makes the plan of a query that wire has validated, in the memory of to.Match, or sets to.Err, which is for the user.
func (e *Translator) Plan(to *Query, q *wire.Query) {
	to.Payload, to.Form, to.More = q.WithPayload, q.HitsForm, nil
	if to.Err = e.plan(to, q); to.Err != nil {
		to.Plan, to.More = gpuexec.Plan{}, nil
	}
}

// plan makes the plan of a query.
func (e *Translator) plan(to *Query, q *wire.Query) *wire.Error {
	to.Plan = gpuexec.Plan{Family: postings.FamilyName, Query: &to.Match, K: q.K, MinCount: q.MinCount}
	form := q.Form()
	if refusal := e.checkSequence(q); refusal != nil {
		return refusal
	}
	c := e.converters.Get()
	r := c.request(q)
	r.Quiet = !e.warns(q)
	to.Prepared.into(r)
	if e.textColumn != "" {
		r.Rescore = nil // they are, anyway
	}
	candidates, refusal := e.order(q, r)
	if refusal != nil {
		e.release(c)
		return refusal
	}
	made, err := e.queries.Plan(&to.Match, r)
	e.release(c)
	if fault := asError(err); fault != nil {
		return fault
	}
	if near, ok := made.Query.(*distance.Query); ok {
		return e.distant(to, q, near, &made)
	}
	if to.Match.Filter != nil && len(to.Match.Spans)+len(to.Match.Presences) > 0 {
		to.Match.Total = true // engines know it anyway, and it tells why there are no hits
	}
	switch {
	case made.Family != postings.FamilyName:
		to.Plan.Family, to.Plan.Query = made.Family, made.Query
		if by, ok := made.Query.(Rescored); ok {
			to.Plan.Rescore = by.Rescore(to.Plan.K)
		}
	case made.Rescore != nil:
		to.Plan.Rescore, to.Plan.K, to.Plan.Certify = made.Rescore, candidates, q.Certify
		if made.Measure.Overlap { // what has nothing in common is no hit
			to.Plan.MinCount = max(1, to.Plan.MinCount)
		}
		if refusal := e.checkCertifyScores(q, &made); refusal != nil {
			return refusal
		}
	case form == wire.TextForm:
		if to.Plan.Rescore = e.queries.Rescore(q.Text, q.K); to.Plan.Rescore != nil {
			if refusal := e.checkCertify(q); refusal != nil {
				return refusal
			}
			to.Plan.K, to.Plan.Certify = q.Candidates, q.Certify
		}
	}
	if made.Rescore != nil || len(made.Estimates) > 0 || len(made.Warnings) > 0 || q.Refined() {
		to.More = e.more(to, q, &made)
	}
	return nil
}

// byCount is the order of counts, for queries that do not want that of the schema.
const byCount = "count"

// order is that of the query's hits, or else that of the schema. It returns of how many objects of highest count.
func (e *Translator) order(q *wire.Query, r *index.Request) (candidates int, refusal *wire.Error) {
	if q.Rescore != nil && q.Rescore.By == byCount && e.textColumn == "" {
		if q.Rescore.Column != "" {
			return 0, wire.Errorf(wire.BadRequest, "rescore by count is of no column: leave rescore.column out")
		}
		r.Rescore = nil
		return q.Candidates, nil
	}
	if own := e.queries.Ordered(r, q.K); own > 0 && q.Candidates == wire.DefaultCandidates(q.K) { // which is what a query has that says nothing
		return max(own, q.K), nil
	}
	return q.Candidates, nil
}

// distant makes the plan of a search by distance.
func (e *Translator) distant(to *Query, q *wire.Query, near *distance.Query, made *index.Plan) *wire.Error {
	switch {
	case q.MinCount > 0 || q.Certify:
		return wire.Errorf(wire.BadRequest, "min_count and certify do not go with a search by distance, which counts nothing and says whether it is exact: leave them out")
	case q.Candidates != wire.DefaultCandidates(q.K):
		return wire.Errorf(wire.BadRequest, "candidates does not go with a search by distance: leave it out")
	case near.Column.Of == distance.Texts:
		if refusal := e.checkScan(near); refusal != nil {
			return refusal
		}
	}
	near.Explain = q.Explain
	to.Plan.Family, to.Plan.Query, to.Plan.K = made.Family, near, max(1, near.K)
	to.More = e.more(to, q, made)
	return nil
}

// checkScan refuses a search that may take too much work: in the end all texts are compared, by a tree, n-grams and permutations too, of which nobody knows before.
func (e *Translator) checkScan(near *distance.Query) *wire.Error {
	symbols, bytes := int64(utf8.RuneCountInString(near.Text)), near.Column.Bytes()
	if e.certifyWork == 0 || symbols*bytes <= e.certifyWork {
		return nil
	}
	return wire.Errorf(wire.TooLarge, "the text, of %d symbols, may have to be compared with all of column %s, of %d bytes, by whichever method, which is more than certify-limit (%d): "+
		"ask with a shorter text, or have the limit raised", symbols, near.Column.Name, bytes, e.certifyWork)
}

// asError is what the author of a query is told of its fault.
func asError(err error) *wire.Error {
	if err == nil {
		return nil // before what follows is allocated
	}
	if own := OwnFault(err); own != nil {
		return own
	}
	return wire.Errorf(wire.Internal, "encoding the query: %v", err)
}

// OwnFault is what the author of a query is told of a refusal; nil of any other error, which is no fault of theirs.
func OwnFault(err error) *wire.Error {
	var mistake *refusal.Error
	switch {
	case !errors.As(err, &mistake):
		return nil
	case mistake.Unsupported:
		return wire.Errorf(wire.Unsupported, "%s", mistake.Reason)
	}
	return wire.Errorf(wire.BadRequest, "%s", mistake.Reason)
}

// warns says whether the answer to a query may have warnings. Rows, documents and sequences that are asked as they always were are
// answered as they always were.
func (e *Translator) warns(q *wire.Query) bool {
	return e.index.Schema().Kind.Mixed() || q.Refined()
}

// checkSequence refuses what changes the order of sequences, which is that of their edit distances.
func (e *Translator) checkSequence(q *wire.Query) *wire.Error {
	if e.textColumn == "" {
		return nil
	}
	switch r := q.Rescore; {
	case len(q.Weights) > 0:
		return wire.Errorf(wire.BadRequest, "index %s holds sequences, which are in the order of their edit distances whatever counts: leave weights out", e.Name)
	case q.IDF == wire.Yes:
		return wire.Errorf(wire.BadRequest, "index %s holds sequences, which are in the order of their edit distances whatever their pieces weigh: leave idf out", e.Name)
	case r == nil:
		return nil
	case r.By != "edit":
		return wire.Errorf(wire.Unsupported, "index %s holds sequences, which are in the order of their edit distances (rescore.by edit) and of no "+
			"other measure", e.Name)
	case r.Column != "" && r.Column != e.textColumn:
		return wire.Errorf(wire.BadRequest, "rescore.column %.80q: the texts of index %s are column %q", r.Column, e.Name, e.textColumn)
	}
	return nil
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

// symbolsPerTick is how many symbols of a text times bytes of texts are compared in a nanosecond, about.
const symbolsPerTick = 12

// checkCertifyScores is checkCertify for measures of what objects hold: in the end all objects are compared.
func (e *Translator) checkCertifyScores(q *wire.Query, made *index.Plan) *wire.Error {
	if !q.Certify || e.certifyWork == 0 {
		return nil
	}
	work, most := made.Rescore.Work(int(e.index.Objects())), time.Duration(e.certifyWork/symbolsPerTick)
	if work <= most {
		return nil
	}
	return wire.Errorf(wire.TooLarge, "certify may have to compare what is asked by %s with all %d objects, which takes a core about %v, more than the %v of "+
		"certify-limit (%d): ask for less or without certify, or have the limit raised", made.Measure.Name, e.index.Objects(),
		work.Round(time.Millisecond), most.Round(time.Millisecond), e.certifyWork)
}

// Rescored is what a structure of a column's own is asked, where hits are in another order than that of counts.
type Rescored interface {
	Rescore(k int) verify.Rescore
}
