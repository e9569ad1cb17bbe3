package client_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/wire"
)

// dictionary is what the index "words" holds: a text is answered by the words nearest to it.
var dictionary = []string{"believe", "receive", "recipe", "relieve", "retrieve"}

// standIn stands in for geniemq where a test needs to hold answers back, to look at queries, or an answer that geniemq
// would not give: it answers stored and direct queries to the index "words" by the rules of the protocol.
type standIn struct {
	nc    *nats.Conn
	js    jetstream.JetStream
	stops []func()

	maxBody  atomic.Int64         // of an answer's messages; larger ones are split
	answered atomic.Int64         // stored messages
	hold     chan struct{}        // if not nil, answers to stored queries wait until it is closed
	direct   func(*nats.Msg) bool // if not nil and true, it has answered a direct query
	mu       sync.Mutex
	queries  []wire.Query // all that were seen
}

const testIndex = "words"

func startStandIn(url string, hold chan struct{}) (*standIn, error) {
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	s := &standIn{nc: nc, js: js, hold: hold}
	s.maxBody.Store(1 << 19)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	var names wire.Subjects
	for _, config := range []jetstream.StreamConfig{
		{Name: names.QueryStream(), Subjects: []string{names.Queries()}, Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew},
		{Name: names.ResultStream(), Subjects: []string{names.Results()}, Discard: jetstream.DiscardNew, Duplicates: 10 * time.Minute},
	} {
		if _, err := js.CreateOrUpdateStream(ctx, config); err != nil {
			return nil, err
		}
	}
	consumer, err := js.CreateOrUpdateConsumer(ctx, names.QueryStream(), jetstream.ConsumerConfig{
		Durable: names.Durable(testIndex), FilterSubject: names.Query(testIndex), AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Second,
	})
	if err != nil {
		return nil, err
	}
	delivery, err := consumer.Consume(s.stored)
	if err != nil {
		return nil, err
	}
	if _, err := nc.Subscribe(names.Search(testIndex), s.search); err != nil {
		return nil, err
	}
	s.stops = append(s.stops, func() { delivery.Stop(); <-delivery.Closed() }, nc.Close)
	return s, nc.Flush()
}

func (s *standIn) stop() {
	for _, stop := range s.stops {
		stop()
	}
}

func (s *standIn) stored(msg jetstream.Msg) {
	if s.hold != nil {
		<-s.hold
	}
	meta, err := msg.Metadata()
	if err != nil {
		return
	}
	ct, answer := s.answer(msg.Headers(), msg.Data())
	reply := msg.Headers().Get(wire.HeaderReply)
	if reply == "" {
		reply = wire.Subjects{}.Result(testIndex)
	}
	results := wire.Results{Batch: answer.Batch, Total: len(answer.Results), At: func(i, _ int) *wire.Result { return &answer.Results[i] }}
	for i, first := 0, 0; first < results.Total; i++ {
		part := wire.AppendPart(nil, ct, results, wire.Position{Query: first}, int(s.maxBody.Load()))
		first += part.Count
		out := nats.NewMsg(reply)
		out.Data = part.Body
		out.Header.Set(wire.HeaderContentType, ct.String())
		out.Header.Set(wire.HeaderQuerySeq, strconv.FormatUint(meta.Sequence.Stream, 10))
		out.Header.Set(wire.HeaderMsgID, fmt.Sprintf("%s.%s.%d", testIndex, msg.Headers().Get(wire.HeaderMsgID), i))
		if !answer.Batch {
			out.Header.Set(wire.HeaderQueryID, answer.Results[0].ID)
		}
		if answer.Batch {
			queries := wire.Range{First: part.First, Last: part.First + part.Count - 1, Total: len(answer.Results)}
			out.Header.Set(wire.HeaderQueries, queries.String())
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_, err := s.js.PublishMsg(ctx, out)
		cancel()
		if err != nil {
			return // it is delivered again
		}
	}
	s.answered.Add(1)
	_ = msg.Ack()
}

func (s *standIn) search(msg *nats.Msg) {
	if s.direct != nil && s.direct(msg) {
		return
	}
	ct, answer := s.answer(msg.Header, msg.Data)
	out := nats.NewMsg(msg.Reply)
	out.Data = wire.AppendAnswer(nil, ct, answer)
	out.Header.Set(wire.HeaderContentType, ct.String())
	if err := answer.Results[0].Err; err != nil && !answer.Batch {
		out.Header.Set(wire.HeaderServiceError, err.Message)
		out.Header.Set(wire.HeaderServiceErrorCode, string(err.Code))
	}
	_ = msg.RespondMsg(out)
}

func (s *standIn) answer(header nats.Header, body []byte) (wire.ContentType, *wire.Answer) {
	ct, err := wire.ParseContentType(header.Get(wire.HeaderContentType))
	if err != nil {
		return ct, &wire.Answer{Results: []wire.Result{{Err: err.(*wire.Error)}}}
	}
	m, err := wire.DecodeMessage(ct, body, wire.Limits{})
	if err != nil {
		return ct, &wire.Answer{Results: []wire.Result{{Err: err.(*wire.Error)}}}
	}
	a := &wire.Answer{Batch: m.Batch}
	for _, q := range m.Queries {
		s.mu.Lock()
		s.queries = append(s.queries, q.Query)
		s.mu.Unlock()
		r := wire.Result{ID: q.Query.ID, Index: testIndex, Version: "0123456789abcdef", Err: q.Err}
		switch {
		case q.Err != nil:
		case q.Query.Form() != wire.TextForm:
			r.Err = wire.Errorf(wire.Unsupported, "index %s holds sequences: ask with text", testIndex)
		default:
			r.Hits, r.Exact = nearest(q.Query.Text, q.Query.K), true
		}
		a.Results = append(a.Results, r)
	}
	return ct, a
}

func (s *standIn) seen() []wire.Query {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.queries)
}

func nearest(text string, k int) []wire.Hit {
	hits := []wire.Hit{}
	for i, word := range dictionary {
		hits = append(hits, wire.Hit{ID: uint32(i), Key: word, Count: 1, HasDistance: true, Distance: float64(distance(text, word))})
	}
	slices.SortStableFunc(hits, func(a, b wire.Hit) int { return int(a.Distance - b.Distance) })
	return hits[:min(k, len(hits))]
}

func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left, diagonal := i+1, row[0]
		row[0] = left
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j+1], left)
			}
			diagonal, left, row[j+1] = row[j+1], cost, cost
		}
	}
	return row[len(b)]
}

// proxy stands between a client and the broker, to cut the client off while the others go on.
type proxy struct {
	target   string
	address  string
	mu       sync.Mutex
	listener net.Listener
	open     map[net.Conn]struct{}
	copies   sync.WaitGroup
}

func startProxy(target string) (*proxy, error) {
	p := &proxy{target: target, address: "127.0.0.1:0", open: map[net.Conn]struct{}{}}
	return p, p.restore()
}

func (p *proxy) url() string { return "nats://" + p.address }

// restore lets connections through, at the same address as before.
func (p *proxy) restore() error {
	l, err := net.Listen("tcp", p.address)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listener, p.address = l, l.Addr().String()
	p.copies.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", p.target)
			if err != nil {
				from.Close()
				continue
			}
			for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
				p.mu.Lock()
				p.open[pair[0]] = struct{}{}
				p.mu.Unlock()
				p.copies.Go(func() {
					_, _ = io.Copy(pair[0], pair[1])
					pair[0].Close()
					pair[1].Close()
				})
			}
		}
	})
	return nil
}

// cut closes all connections and lets none through.
func (p *proxy) cut() {
	p.mu.Lock()
	p.listener.Close()
	for c := range p.open {
		c.Close()
		delete(p.open, c)
	}
	p.mu.Unlock()
	p.copies.Wait()
}
