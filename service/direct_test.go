package service

import (
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// Answers of all sizes, made at once in memory that is used again, are each what it is alone.
func TestDirectAnswersAtOnce(t *testing.T) {
	_, nc, _ := startService(t, config.Config{Indexes: []config.IndexSource{{Path: testkit.RowsFile(t, "rows", 2000)}}}, Options{})
	ask := func(i int) (*wire.Answer, error) {
		codec := []wire.ContentType{wire.JSON, wire.MessagePack}[i%2]
		queries := make([]wire.Query, 1+i%3*10)
		for j := range queries {
			queries[j] = wire.Query{ID: fmt.Sprint(i, " ", j), K: 1 + 7*i, Row: []wire.Condition{{Attr: "n", Min: wire.Number(float64(10 * i))}}}
		}
		msg := nats.NewMsg("genie.search.rows")
		msg.Header.Set(wire.HeaderContentType, codec.String())
		if msg.Data = wire.AppendQuery(nil, codec, &queries[0]); len(queries) > 1 {
			msg.Data = wire.AppendQueries(nil, codec, queries)
		}
		reply, err := nc.RequestMsg(msg, patience)
		if err != nil {
			return nil, err
		}
		a, err := wire.DecodeAnswer(codec, reply.Data)
		if err != nil {
			return nil, err
		}
		for j := range a.Results {
			a.Results[j].Took = wire.Took{}
		}
		return a, nil
	}
	want := make([]*wire.Answer, 60)
	for i := range want {
		var err error
		if want[i], err = ask(i); err != nil {
			t.Fatal(err)
		}
		if first := &want[i].Results[0]; first.Err != nil || first.ID != fmt.Sprint(i, " 0") || len(first.Hits) != 1+7*i {
			t.Fatalf("query %d is answered %+v", i, first)
		}
	}
	var askers sync.WaitGroup
	for asker := range 8 {
		askers.Go(func() {
			for n := range 2 * len(want) {
				i := (n*(2*asker+1) + asker) % len(want)
				if got, err := ask(i); err != nil || !reflect.DeepEqual(got, want[i]) {
					t.Errorf("at once with others query %d is answered %v %+v, not %+v", i, err, got, want[i])
					return
				}
			}
		})
	}
	askers.Wait()
}

// What the server had sent to a worker before it knew that the worker ends is answered: nobody else would.
func TestDirectAnswersAtTheEnd(t *testing.T) {
	broker := testkit.StartBroker(t)
	path := testkit.RowsFile(t, "rows", 100)
	const requests = 20_000 // more than the worker takes in while it is told to end
	for range 3 {
		s, nc, _ := startService(t, config.Config{NATS: broker.URL(), Indexes: []config.IndexSource{{Path: path}}}, Options{})
		testkit.Eventually(t, ready(s))
		inbox := nats.NewInbox()
		answers, err := nc.SubscribeSync(inbox)
		if err != nil {
			t.Fatal(err)
		}
		if err := answers.SetPendingLimits(-1, -1); err != nil {
			t.Fatal(err)
		}
		for range requests {
			if err := nc.PublishRequest("genie.search.rows", inbox, []byte(`{"k":1,"row":{"n":7}}`)); err != nil {
				t.Fatal(err)
			}
		}
		if err := nc.FlushTimeout(patience); err != nil { // the server has passed them on
			t.Fatal(err)
		}
		shutdown(t, s)
		for i := range requests {
			m, err := answers.NextMsg(patience)
			if err != nil {
				t.Fatalf("after %d answers: %v", i, err)
			}
			if code := m.Header.Get(wire.HeaderServiceErrorCode); code != "" {
				t.Fatalf("after %d answers: %s", i, m.Data)
			}
		}
	}
}
