package pipeline

import (
	"fmt"

	"github.com/geniemq/geniemq/wire"
)

// body is that of a message, as it came. One that is compressed is decompressed for as long as it is decoded: what its plain form takes is known
// before, since it says so itself, and is waited for like all else that decoding takes.
type body struct {
	sent       []byte
	size       int // when it is plain
	compressed bool
	plain      []byte // while it is open, if it is compressed
}

// bodyOf sets the codec of a request, which errors are answered in, and looks at what its body says of itself. The error is a *wire.Error.
func (p *Pipeline) bodyOf(r *Request, sent []byte) (b body, err error) {
	b = body{sent: sent, size: len(sent)}
	if r.codec, b.compressed, err = wire.ParseBodyType(r.ContentType); err != nil {
		return b, err
	}
	if err := wire.CheckProtocol(r.Protocol); err != nil {
		return b, err
	}
	if b.compressed {
		b.size, err = p.options.Limits.PlainSize(sent)
	}
	return b, err
}

// room is how many bytes it takes to open it.
func (b *body) room() int64 {
	if !b.compressed {
		return 0
	}
	return int64(b.size)
}

// open returns the plain body, which is there until close.
func (b *body) open(m *pools) ([]byte, error) {
	if !b.compressed {
		return b.sent, nil
	}
	memory := m.bodies.Make(b.size)
	plain, err := wire.Decompress(memory, b.sent)
	if err == nil && len(plain) != b.size {
		err = fmt.Errorf("a body of %d bytes said that it has %d", len(plain), b.size)
	}
	if err != nil {
		m.bodies.Keep(memory)
		return nil, err
	}
	b.plain = plain
	return plain, nil
}

func (b *body) close(m *pools) {
	if b.plain != nil {
		m.bodies.Keep(b.plain)
		b.plain = nil
	}
}

// Compressed is an answer's body in memory of its own, which Sent takes back; nil where its asker cannot read that or it saves nothing.
func (r *Request) Compressed(plain []byte) []byte {
	room := wire.CompressRoom(len(plain))
	if !r.Accept.S2 || room == 0 {
		return nil
	}
	memory := r.Memory(room)
	compressed, ok := wire.Compress(memory, plain)
	if !ok {
		r.Sent(memory)
		return nil
	}
	return compressed
}
