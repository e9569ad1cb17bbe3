// Package fetch brings bodies of queries that are too large for a message into a worker, from the server's object store.
package fetch

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/geniemq/geniemq/bodystore"
	"github.com/geniemq/geniemq/consumer"
	"github.com/geniemq/geniemq/internal/bell"
	"github.com/geniemq/geniemq/service/memory"
	"github.com/geniemq/geniemq/wire"
)

// Options of a Fetcher.
type Options struct {
	// Limits bound a body, as those of messages. Default: those of wire.
	Limits wire.Limits
	// Memory is where the memory of bodies is taken from. Required.
	Memory *memory.Budget
	// Chunk is the most bytes that the server sends of an object at a time: its max_payload. Default 0: not known.
	Chunk func() int64
	// Patience is for how long an object that cannot be seen is looked for. Default 5 s.
	Patience time.Duration
	// Log is told what does not work. Default: nothing is.
	Log *slog.Logger
}

const (
	// atATime is how many bodies are fetched at a time.
	atATime = 4
	// patience is the default of Options.Patience. A stream of several replicas has what was confirmed as soon as it has a leader.
	patience = 5 * time.Second
	// chunkFactor is how many times its length a chunk takes while it is read: as the server sends it, in base64, and decoded.
	chunkFactor = 4
	// minPause and maxPause are between attempts, which double.
	minPause, maxPause = 100 * time.Millisecond, 2 * time.Second
	// removeWait bounds removing an object. What takes longer is left to the sweep.
	removeWait = 10 * time.Second
)

// Fetcher fetches the bodies that messages name, before anything else is done with these.
//
// # Who waits for what
//
// Each message has a goroutine here from the moment that the consumer hands it over until its body is there. So no message waits for another one's object, and
// none that has its body in itself waits for any. A few fetch at a time; others wait for a place, then for memory, and hold neither while they wait for an object to
// be seen. The consumer keeps messages alive meanwhile, and bounds how many there are.
//
// # Memory
//
// A body has its memory from before its first byte until its message is settled (Body.Release), from an account of its own (memory.Budget.Objects), together with the
// chunk that is read. So bodies never take more than that account, however many are asked for. Only where the account has no room for a chunk beside a body
// (chunks are as large as a message of the server can be) does the chunk come on top, for each of the few that are fetched at a time.
//
// # What can be wrong
//
// An object that cannot be seen is looked for again, for Patience: it may have been stored a moment ago, and its server may just follow another one. Then, and
// where size or digest differ, or the header cannot be read, the message is refused. Whatever else keeps an object from being read (a lost connection, a server that is
// restarted) is tried again for as long as it takes.
type Fetcher struct {
	bodies  *bodystore.Store
	opts    Options
	places  chan struct{}
	ctx     context.Context
	end     context.CancelFunc
	running sync.WaitGroup
}

// New makes a fetcher. Close ends it, and so does the end of ctx, but for waiting.
func New(ctx context.Context, bodies *bodystore.Store, opts Options) *Fetcher {
	opts.Limits.EnsureDefaults()
	if opts.Patience <= 0 {
		opts.Patience = patience
	}
	if opts.Chunk == nil {
		opts.Chunk = func() int64 { return 0 }
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	f := &Fetcher{bodies: bodies, opts: opts, places: make(chan struct{}, atATime)}
	f.ctx, f.end = context.WithCancel(ctx)
	return f
}

// Close has all who wait given back, and returns when there are none. Nothing is fetched any more.
func (f *Fetcher) Close() {
	f.end()
	f.running.Wait()
}

// Holder is one more that draws on the memory of bodies.
func (f *Fetcher) Holder() memory.Holder { return f.opts.Memory.Objects.Holder() }

// Needed says whether the body of a message is to be fetched.
func Needed(m *consumer.Stored) bool { return m.Header.Get(wire.HeaderQueryObject) != "" }

// Outcome is what came of a fetch: one of Body and Refusal, or neither when the fetcher was closed.
type Outcome struct {
	Body *Body
	// Refusal is what the message is answered. Wrong says that its object is there and is not what the message says: it is kept, with a dead letter.
	Refusal *wire.Error
	Wrong   bool
}

// Fetch fetches the body of a message and calls then from a goroutine of its own, once. ctx ends when the fetcher is closed. It does not block.
func (f *Fetcher) Fetch(m *consumer.Stored, holder *memory.Holder, then func(ctx context.Context, out Outcome)) {
	f.running.Go(func() { then(f.ctx, f.fetch(m, holder)) })
}

func (f *Fetcher) fetch(m *consumer.Stored, holder *memory.Holder) Outcome {
	stored, err := wire.ParseStoredBody(m.Header.Get(wire.HeaderQueryObject))
	if err == nil {
		_, err = wire.Subjects{}.ObjectBucket(m.User) // whose name can be that of no bucket
	}
	if err == nil {
		err = f.opts.Limits.CheckBody(int(stored.Size))
	}
	if err != nil {
		return Outcome{Refusal: wire.AsError(err)}
	}
	log := f.opts.Log.With("index", m.Index, "sequence", m.Sequence, "object", stored.Name)
	var missed time.Time
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		body, err := f.try(m.User, stored, holder)
		much := (*memory.TooMuch)(nil)
		switch {
		case err == nil:
			return Outcome{Body: body}
		case f.ctx.Err() != nil:
			return Outcome{}
		case errors.As(err, &much):
			return Outcome{Refusal: wire.Errorf(wire.TooLarge, "the query is too large: %v: split it (or give the worker more by --memory)", much)}
		case errors.Is(err, bodystore.ErrWrong):
			log.Error("the body of a query in the object store is not what the query says, giving it up", "error", err)
			return Outcome{Refusal: wire.Errorf(wire.BadRequest, "%v: it is with the dead letters; store the query anew", err), Wrong: true}
		case errors.Is(err, bodystore.ErrMissing), errors.Is(err, bodystore.ErrNoBucket):
			if missed.IsZero() {
				missed = time.Now()
			}
			if time.Since(missed) >= f.opts.Patience {
				return Outcome{Refusal: wire.Errorf(wire.ObjectMissing, "%v: store the query anew, and publish it again", err)}
			}
		default:
			log.Warn("the body of a query cannot be fetched, trying again", "error", err)
		}
		if !bell.Sleep(f.ctx, pause) {
			return Outcome{}
		}
	}
}

// try fetches a body once.
func (f *Fetcher) try(user string, stored wire.StoredBody, holder *memory.Holder) (*Body, error) {
	select {
	case f.places <- struct{}{}:
		defer func() { <-f.places }()
	case <-f.ctx.Done():
		return nil, context.Cause(f.ctx)
	}
	if limit := holder.Limit(); stored.Size > limit {
		return nil, &memory.TooMuch{Need: stored.Size, Limit: limit}
	}
	reserved := holder.Most(stored.Size + chunkFactor*f.opts.Chunk())
	if err := holder.Wait(f.ctx, reserved); err != nil {
		return nil, err
	}
	text, err := f.bodies.Fetch(f.ctx, user, stored, make([]byte, 0, stored.Size))
	if err != nil {
		holder.Give(reserved)
		return nil, err
	}
	holder.Give(reserved - stored.Size)
	return &Body{Bytes: text, fetcher: f, holder: holder, user: user, name: stored.Name, reserved: stored.Size}, nil
}

// Body is a body that was fetched. One that is nil is that of a message that has its body in itself, for which there is nothing to do.
type Body struct {
	Bytes []byte

	fetcher    *Fetcher
	holder     *memory.Holder
	user, name string
	reserved   int64
	released   sync.Once
}

// Release gives its memory back, once: when its message is settled, and its bytes are not used any more.
func (b *Body) Release() {
	if b != nil {
		b.released.Do(func() { b.holder.Give(b.reserved) })
	}
}

// Remove removes its object, when the server has confirmed that its message is gone. One that cannot be removed is left to the sweep.
func (b *Body) Remove() {
	if b == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), removeWait)
	defer cancel()
	if err := b.fetcher.bodies.Remove(ctx, b.user, b.name); err != nil {
		b.fetcher.opts.Log.Warn("the body of a query that is answered could not be removed from the object store; the sweep will do it", "object", b.name, "error", err)
	}
}
