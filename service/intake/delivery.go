package intake

import (
	"time"

	"github.com/geniemq/geniemq/producer"
	"github.com/geniemq/geniemq/service/identity"
	"github.com/geniemq/geniemq/service/metrics"
	"github.com/geniemq/geniemq/service/observe"
	"github.com/geniemq/geniemq/service/pipeline"
	"github.com/geniemq/geniemq/service/storedanswers"
	"github.com/geniemq/geniemq/service/translate"
	"github.com/geniemq/geniemq/wire"
)

// delivery is the answer to a stored message on its way out: in one message, or in parts where it does not fit one.
//
// # Parts
//
// A part is encoded when the one before it is confirmed. So an answer holds the memory of one message, whatever it has, and
// what the stream has of it is always a prefix. The id of a part ends in the number of its first query, counted from 1.
//
// # A message that is answered a second time
//
// The first attempt may have ended at any point, and the second need not cut where the first did: queries may have
// expired since, the index may be another version, the limit of a message another one. So when the stream says that it has
// the id of a part already, the delivery reads what is there and goes on after its last query. Every query is in
// exactly one part, whichever attempt stored it, and each result names the version that searched it.
//
// A result that is too large for a message comes in parts of its hits, where its asker takes that. What an earlier attempt has stored of one is gone on
// with if that attempt searched the same version, and so had the same hits. Else the result begins anew, under another id: what is
// there is no answer yet, and nobody joins parts of two versions.
//
// # Ids that were used before
//
// Ids of answers derive from ids of queries, and users choose these. The query stream refuses an id that it has seen within two
// minutes, the result stream within ten: in between, a new query may have an old one's id, by mistake or not. Then what the
// stream has is not this answer: it went to another subject or answers another message. The delivery takes another id,
// which holds a hash of the message, and is the same for every attempt.
//
// The same message twice, to the same subject, is answered once all the same: who was not told that a message had arrived
// publishes it again, and a query stream whose server was killed has forgotten the id of what is answered and gone.
//
// A delivery has one owner at a time: whoever encodes, then the producer until it confirms.
type delivery struct {
	origin  *storedMessage
	request *pipeline.Request
	then    func()             // when all of it is confirmed
	out     *producer.Producer // nil before the first part

	reason *wire.Error // the message is refused as a whole

	asked   identity.Asked
	id      string // of the answer, without the part
	salt    int    // how many ids before this one were taken by other answers
	results wire.Results
	made    *translate.Answer // where results come from; nil once they are encoded
	next    wire.Position     // from where on nothing is known to be out

	// parts tells a lone run, which sends all parts itself, of each that is confirmed; closed when no more are to be sent. Nil
	// for other messages, and with the last part.
	parts chan struct{}

	part     wire.Part // on its way
	header   *headers  // its
	packed   []byte    // its body as it is sent, if that is compressed
	tooLarge int       // results that did not fit and went out as errors
	encoded  time.Time
}

// deliver sends the answer to a request, or the reason why it has none, and calls then when all of it is confirmed. It blocks
// while the producer has no room.
func (o *storedMessage) deliver(r *pipeline.Request, reason *wire.Error, then func()) {
	s := o.intake
	d := &delivery{origin: o, request: r, reason: reason, then: then, id: o.resultID(),
		asked: identity.Ask(s.Stream, &o.message.Stored)}
	d.made = r.Answer(reason, int(s.MaxResult()))
	d.results = d.made.Results
	if o.alone.Running() {
		d.parts = make(chan struct{}, 1)
	}
	parts := d.parts
	for last := d.send(); !last && parts != nil; last = d.send() {
		more := false
		o.alone.Wait(func() { _, more = <-parts })
		if !more {
			return
		}
	}
}

// send encodes the next part and publishes it, and says whether it is the last.
func (d *delivery) send() (last bool) {
	s, m := d.origin.intake, d.origin.message
	header := s.headers.Get()
	d.header = header
	header.beginResult(m.Header, d.asked, d.request.Codec(), d.request.OnlyID(d.reason))
	widest := wire.Position{Query: d.results.Total - 1}
	room := int(s.MaxResult()) - wire.PartHeaderSize - wire.HeaderSize(header.Header)
	if d.results.Parts {
		widest.Hit = wire.MaxK
		room -= wire.HitsHeaderSize
	}
	room -= identity.PartSize(d.id, widest)

	most := max(room, 0)
	rough := min(most, len(d.part.Body)) // where this is what is left of a part that was encoded before
	if d.made != nil {
		rough = d.made.RoughSize(d.next, most)
	}
	d.request.Sharing(func() {
		d.part = wire.AppendPart(d.request.Memory(rough), d.request.Codec(), d.results, d.next, room)
		d.packed = d.request.Compressed(d.part.Body)
	})
	body := d.part.Body
	if d.packed != nil {
		body = d.packed
		header.set(wire.HeaderContentType, d.request.Codec().Compressed())
	}
	d.tooLarge += d.part.TooLarge
	if last = d.part.Next().Query == d.results.Total; last {
		d.parts = nil
	}
	if last && d.made != nil && d.reason == nil {
		d.tooLarge += d.made.TooLarge
		d.made.Encoded()
		d.made = nil
	}
	if d.results.Batch {
		header.set(wire.HeaderQueries, wire.Range{First: d.next.Query, Last: d.next.Query + d.part.Count - 1, Total: d.results.Total}.String())
	}
	if hits := d.part.Hits; hits.Total > 0 {
		header.set(wire.HeaderHits, hits.String())
		header.set(wire.HeaderVersion, d.request.Version())
	}
	if !d.request.Sound() {
		d.drop()
		d.origin.Abandon(d.request)
		return true
	}
	if d.out == nil {
		d.out = s.Publishers.next(len(body))
	}
	d.encoded = time.Now()
	out := producer.Outgoing{Subject: d.origin.reply, MsgID: identity.Part(d.id, d.next), Header: header.Header, Body: body}
	d.origin.alone.Wait(func() { d.out.Publish(d.request.Aborted(), out, d.confirmed) })
	return last
}

// confirmed is called by the producer, whose time it must not take.
func (d *delivery) confirmed(how producer.Confirmation, err error) {
	switch {
	case err != nil:
		d.drop()
		d.origin.unpublished(d.request, err)
	case how.Duplicate:
		d.origin.intake.settling.Go(func() { d.duplicate(how.Sequence) })
	default:
		d.goOn(d.part.Next())
	}
}

// goOn sends the part that begins at a position, or ends the delivery when there is none.
func (d *delivery) goOn(next wire.Position) {
	if next.Query < d.results.Total {
		d.sent()
		d.next = next
		if d.parts != nil {
			d.parts <- struct{}{}
		} else {
			d.origin.intake.settling.Go(func() { d.request.Reading(func() { d.send() }) })
		}
		return
	}
	d.drop()
	m := d.origin.message
	d.origin.intake.Observe.Answered(observe.Answered{Way: metrics.Stored, Request: d.request, Reason: d.reason, TooLarge: d.tooLarge, Encoded: d.encoded,
		TraceParent: m.Header.Get(wire.HeaderTraceParent), Sequence: m.Sequence})
	d.request.Done()
	d.origin.alone.Then(d.then)
}

// sent gives the memory of a part back.
func (d *delivery) sent() {
	d.request.Sent(d.part.Body)
	if d.header != nil {
		d.header.forget()
		d.origin.intake.headers.Put(d.header)
		d.header = nil
	}
	if d.packed != nil {
		d.request.Sent(d.packed)
		d.packed = nil
	}
}

// drop gives the memory of the delivery back.
func (d *delivery) drop() {
	if d.parts != nil {
		close(d.parts)
		d.parts = nil
	}
	d.sent()
	d.part.Body = nil
	if d.made != nil {
		d.made.Encoded()
		d.made = nil
	}
}

// duplicate finds out what the stream has in place of the part, and goes on with what it has not.
func (d *delivery) duplicate(sequence uint64) {
	o := d.origin
	has, whose, err := o.intake.Answers.Look(d.request.Aborted(), sequence, o.reply, d.asked)
	total := max(d.results.Total, d.request.Len(), has.Queries.Total)
	next := has.Next()
	switch {
	case err != nil: // the process ends
		d.drop()
		o.Abandon(d.request)
	case whose == storedanswers.Unknown:
		d.goOn(d.part.Next())
	case whose == storedanswers.Another || has.Queries.First != d.next.Query || has.Some() && (has.Hits.First != d.next.Hit || has.Version != d.request.Version()):
		d.salt++
		d.id = identity.Salted(o.resultID(), o.reply, d.asked, d.salt)
		d.again(d.next)
	case next.Query >= total || has.Queries.Total == 1 && !has.Some(): // an answer to the message as a whole, or to the last of its queries
		d.goOn(wire.Position{Query: max(d.results.Total, next.Query)})
	case d.reason != nil:
		// This attempt refuses as a whole what an earlier one had begun to answer: the rest is told one by one.
		refusal := wire.Result{Index: d.request.Index(), Version: d.request.Version(), Err: d.reason}
		d.results = wire.Results{Batch: has.Batch, Total: total, At: func(int, int) *wire.Result { return &refusal }}
		d.goOn(next)
	default:
		d.again(next)
	}
}

// again encodes what is left from a position on for the second time. Where the results are gone, they are read from the part.
func (d *delivery) again(next wire.Position) {
	if end := d.part.Next(); d.made == nil && d.reason == nil && (next.Query < end.Query || next.Query == end.Query && next.Hit < end.Hit) {
		part, err := wire.DecodeAnswer(d.request.Codec(), d.part.Body)
		if err != nil || len(part.Results) != d.part.Count {
			d.drop()
			d.origin.unpublished(d.request, err)
			return
		}
		first := d.next.Query
		d.results.At = func(i, from int) *wire.Result { return part.Results[i-first].From(from) }
	}
	d.goOn(next)
}
