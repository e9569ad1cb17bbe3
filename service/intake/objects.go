package intake

import (
	"context"

	"github.com/geniemq/geniemq/service/fetch"
	"github.com/geniemq/geniemq/wire"
)

// large takes a message whose body lies in the object store: it goes on when that was fetched, and beside those who came after it.
func (s *Stored) large(o *storedMessage) {
	if o.badReply != nil { // whatever it asks; its object stays with its dead letter
		_, r := o.request()
		o.Refuse(r, o.badReply)
		return
	}
	s.Bodies.Fetch(&o.message.Stored, &s.BodyMemory, func(ctx context.Context, out fetch.Outcome) {
		o.body, o.wrong = out.Body, out.Wrong
		s.gate.RLock()
		defer s.gate.RUnlock()
		switch {
		case s.closed: // its pipeline and its file may be gone
			o.giveUp(0)
		case out.Body != nil:
			if !s.enter(ctx, o) {
				o.giveUp(0)
			}
		case out.Refusal != nil:
			_, r := o.request()
			o.Refuse(r, out.Refusal)
		default:
			o.giveUp(0)
		}
	})
}

// refuseObject says why a direct request is refused that names an object.
func refuseObject() *wire.Error {
	return wire.Errorf(wire.BadRequest, "%s: direct search does not read the object store: publish the query to the stream, or send its body in the request", wire.HeaderQueryObject)
}
