package client

import (
	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/wire"
)

// compress compresses a message where its worker can read it, as far as is known.
func (c *Client) compress(msg *nats.Msg, index string) {
	if can, _ := c.accepts.Load(index); !c.opts.Compress || can != true {
		return
	}
	if packed, ok := wire.Compress(make([]byte, 0, wire.CompressRoom(len(msg.Data))), msg.Data); ok {
		msg.Data = packed
		msg.Header.Set(wire.HeaderContentType, c.codec.Compressed())
	}
}

// asks says in a message what its answer may be.
func (c *Client) asks(msg *nats.Msg, accept wire.Accept) {
	accept.S2 = c.opts.Compress
	if text := accept.String(); text != "" {
		msg.Header.Set(wire.HeaderAccept, text)
	}
}

// learn notes what the workers of an index can read, by an answer to a message. It says that the message is to be sent once more, as it is: it was
// compressed, and the worker that had it is older than those before and has refused it.
func (c *Client) learn(index string, msg *nats.Msg, answer nats.Header) (again bool) {
	if !c.opts.Compress || answer == nil {
		return false
	}
	can := wire.ParseAccept(answer.Get(wire.HeaderAccept)).S2
	if known, _ := c.accepts.Load(index); known != can {
		c.accepts.Store(index, can)
	}
	return !can && msg.Header.Get(wire.HeaderContentType) == c.codec.Compressed()
}
