package service

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// asking is a message of somebody's, that asks for rows of 100 that testkit.RowsFile makes: of object i the column n is i, and c is i % 10.
type asking struct {
	number  int
	queries int
	codec   wire.ContentType
}

func (a asking) id(query int) string { return fmt.Sprintf("u%d.%d", a.number, query) }
func (a asking) n(query int) int     { return (a.number*7 + query*13) % 100 }
func (a asking) k(query int) int     { return 1 + (a.number+query)%40 }
func (a asking) trace() string       { return fmt.Sprintf("00-%032x-%016x-01", a.number+1, a.number+1) }
func (a asking) accept() string      { return []string{"", "s2", "s2, parts", "parts"}[a.number%4] }

func (a asking) message(subject string) *nats.Msg {
	queries := make([]wire.Query, a.queries)
	for i := range queries {
		queries[i] = wire.Query{ID: a.id(i), K: a.k(i), Row: []wire.Condition{
			{Attr: "n", Value: wire.Number(float64(a.n(i)))}, {Attr: "c", Value: wire.Number(float64(a.n(i) % 10))},
		}}
		queries[i].EnsureDefaults()
	}
	m := &nats.Msg{Subject: subject, Header: nats.Header{wire.HeaderContentType: {a.codec.String()}, wire.HeaderTraceParent: {a.trace()}}}
	if accept := a.accept(); accept != "" {
		m.Header.Set(wire.HeaderAccept, accept)
	}
	if a.queries == 1 {
		m.Data = wire.AppendQuery(nil, a.codec, &queries[0])
	} else {
		m.Data = wire.AppendQueries(nil, a.codec, queries)
	}
	return m
}

// check says what of an answer is not its own, and counts the queries that it answers.
func (a asking) check(header nats.Header, data []byte, answered map[string]int) error {
	id := ""
	if a.queries == 1 {
		id = a.id(0)
	}
	switch {
	case header.Get(wire.HeaderTraceParent) != a.trace(), header.Get(wire.HeaderQueryID) != id, (header.Get(wire.HeaderAccept) != "") != (a.accept() != ""),
		!strings.HasPrefix(header.Get(wire.HeaderContentType), a.codec.String()):
		return fmt.Errorf("an answer to %+v has the headers %v", a, header)
	}
	body, err := wire.DecodeBody(header.Get(wire.HeaderContentType), data)
	if err != nil {
		return fmt.Errorf("an answer to %+v: %w", a, err)
	}
	for i, r := range body.Results {
		query := i + body.First
		if r.ID != a.id(query) || r.Err != nil {
			return fmt.Errorf("result %d of %+v is %q, %v", query, a, r.ID, r.Err)
		}
		answered[r.ID]++
		var want []wire.Hit
		for count := uint32(2); count > 0; count-- { // both conditions, or that of c alone
			for object := range 100 {
				if n := a.n(query); object%10 == n%10 && (object == n) == (count == 2) && len(want) < a.k(query) {
					want = append(want, wire.Hit{ID: uint32(object), Count: count})
				}
			}
		}
		if len(r.Hits) != len(want) {
			return fmt.Errorf("%s has %d hits, want %d", r.ID, len(r.Hits), len(want))
		}
		for j, hit := range r.Hits {
			if hit.ID != want[j].ID || hit.Count != want[j].Count {
				return fmt.Errorf("hit %d of %s is object %d, counted %d, want %+v", j, r.ID, hit.ID, hit.Count, want[j])
			}
		}
	}
	return nil
}

// TestAnswersAreTheirOwn: bodies and headers of answers are memory that is used again, and every answer has what its own query asked for and nothing else, while
// publishing waits for a stream that is full and for a broker that is away, and direct queries come beside. Every stored query is answered once.
func TestAnswersAreTheirOwn(t *testing.T) {
	b := testkit.StartBroker(t, func(o *server.Options) { o.MaxPayload = 16 << 10 })
	_, nc, js := startService(t, config.Config{NATS: b.URL(), BatchSize: 16, Workers: 4}, Options{})
	rng := seeded.Rand(t)
	drawn := func(rng *rand.Rand, number int) asking {
		return asking{number, []int{1, 1, 1, 2, 9, 60, 90}[rng.IntN(7)], wire.ContentType(rng.IntN(2))}
	}
	stop := make(chan struct{})
	var direct sync.WaitGroup
	for i := range 4 {
		own := rand.New(rand.NewPCG(rng.Uint64(), 0))
		direct.Go(func() {
			for n := 1_000_000 * (i + 1); ; n++ {
				select {
				case <-stop:
					return
				case <-time.After(2 * time.Millisecond):
				}
				a := drawn(own, n)
				a.queries = min(a.queries, 9)
				m, err := nc.RequestMsg(a.message("genie.search.rows"), time.Second)
				if err != nil || m.Header.Get(wire.HeaderServiceErrorCode) != "" {
					continue // the broker is away
				}
				if err := a.check(m.Header, m.Data, map[string]int{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	asked := make([]asking, raced.Of(900, 300))
	of := make(map[uint64]int) // by sequence number
	roomForResults(t, js, 20)
	for i := range asked {
		asked[i] = drawn(rng, i)
		m := asked[i].message("genie.query.rows")
		m.Header.Set(wire.HeaderReply, replyOf(i))
		m.Header.Set(wire.HeaderMsgID, asked[i].id(0))
		testkit.Eventually(t, func() error {
			ack, err := js.PublishMsg(t.Context(), m)
			if err == nil {
				of[ack.Sequence] = i
			}
			return err
		})
		switch i % 150 {
		case 70:
			roomForResults(t, js, -1)
		case 110:
			roomForResults(t, js, int64(100+i))
		}
		if i%300 == 270 {
			b.Stop()
			time.Sleep(200 * time.Millisecond)
			b.Start(t)
		}
	}
	roomForResults(t, js, -1)
	nothingIsStored(t, js)
	close(stop)
	direct.Wait()
	answered := map[string]int{}
	for _, m := range storedResults(t, js) {
		var sequence uint64
		_, _ = fmt.Sscan(m.Header.Get(wire.HeaderQuerySeq), &sequence)
		i, ok := of[sequence]
		if !ok || m.Subject != replyOf(i) || !strings.HasPrefix(m.Header.Get(wire.HeaderMsgID), "rows."+asked[i].id(0)+".") {
			t.Errorf("an answer on %s to query %d has the headers %v", m.Subject, i, m.Header)
		} else if err := asked[i].check(m.Header, m.Data, answered); err != nil {
			t.Error(err)
		}
	}
	for _, a := range asked {
		for query := range a.queries {
			if n := answered[a.id(query)]; n != 1 {
				t.Errorf("query %s has %d answers", a.id(query), n)
			}
		}
	}
}

func replyOf(message int) string { return fmt.Sprintf("genie.result.rows.r%d", message%50) }

// roomForResults lets the stream of results have so many messages; -1: any number.
func roomForResults(t *testing.T, js jetstream.JetStream, messages int64) {
	t.Helper()
	testkit.Eventually(t, func() error {
		results, err := js.Stream(t.Context(), "GENIE_RESULTS")
		if err != nil {
			return err
		}
		c := results.CachedInfo().Config
		c.MaxMsgs = messages
		_, err = js.UpdateStream(t.Context(), c)
		return err
	})
}

// nothingIsStored waits until all queries are answered.
func nothingIsStored(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	testkit.Eventually(t, func() error {
		queries, err := js.Stream(t.Context(), "GENIE_QUERIES")
		if err == nil && queries.CachedInfo().State.Msgs > 0 {
			err = fmt.Errorf("%d messages wait", queries.CachedInfo().State.Msgs)
		}
		return err
	})
}

// storedResults are all messages of the stream of results.
func storedResults(t *testing.T, js jetstream.JetStream) (all []*jetstream.RawStreamMsg) {
	t.Helper()
	results, err := js.Stream(t.Context(), "GENIE_RESULTS")
	if err != nil {
		t.Fatal(err)
	}
	state := results.CachedInfo().State
	for seq := state.FirstSeq; seq <= state.LastSeq; seq++ {
		m, err := results.GetMsg(t.Context(), seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}
