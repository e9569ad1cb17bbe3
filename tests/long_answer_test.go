package tests

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/client"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

const longAnswerSchema = "name: long\nkind: rows\nkey: id\ncolumns:\n  - {name: id, type: skip}\n  - {name: name, type: category}\n  - {name: text, type: payload}\n"

// longAnswerData has rows whose payloads are some 200 bytes of a letter.
func longAnswerData(rows int, fill string) string {
	var b strings.Builder
	b.WriteString("id,name,text\n")
	for i := range rows {
		fmt.Fprintf(&b, "row-%d,same,%s\n", i, strings.Repeat(fill, 200))
	}
	return b.String()
}

// One result that is too large for a message is joined by the client to what it would be in one, alone and in a batch, in all forms and both codecs,
// compressed or not. Who does not take parts is told too_large, and so is who asks directly.
func TestLongAnswer(t *testing.T) {
	t.Parallel()
	const rows = 5000 // some 1.2 MB
	server := startServer(t, "max_payload: 1048576")
	nc, js := connect(t, server.url)
	results, err := js.CreateStream(within(t), jetstream.StreamConfig{
		Name: "GENIE_RESULTS", Subjects: []string{"genie.result.>"}, Discard: jetstream.DiscardNew, Duplicates: 10 * time.Minute, MaxMsgSize: 300_000,
	})
	if err != nil {
		t.Fatal(err)
	}
	file := buildFile(t, t.TempDir(), "long.csv", longAnswerSchema, longAnswerData(rows, "a"))
	start(t, config.Config{NATS: server.url, Indexes: []config.IndexSource{{Path: file}}}, service.Options{})
	long := client.Query{K: rows, Row: []client.Condition{client.Equal("name", "same")}, WithPayload: true, Matched: true}
	short := long
	short.K = 2
	var want []client.Hit
	parts := 0
	for i := range 6 {
		c, err := client.New(nc, client.Options{JSON: i%2 == 0, Compress: i >= 3})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		long.HitsForm = wire.HitsForm(i % 3)
		one, err := c.Request(within(t), "long", long)
		if err != nil {
			t.Fatal(err)
		}
		many, err := c.RequestBatch(within(t), "long", []client.Query{short, long, short})
		if err != nil || many[1].Err != nil || len(many[0].Hits) != 2 || len(many[2].Hits) != 2 {
			t.Fatalf("%v, %+v", err, many)
		}
		for _, got := range []*client.Result{one, &many[1]} {
			if len(got.Hits) != rows || got.AllHits != 0 || got.Hits[rows-1].ID != rows-1 || len(got.Hits[rows-1].Payload) < 200 {
				t.Fatalf("form %d has %d hits", long.HitsForm, len(got.Hits))
			}
			for h := range got.Hits {
				if long.HitsForm == wire.HitsColumns {
					got.Hits[h].Key = fmt.Sprint("row-", h)
				}
			}
			if want == nil {
				want = got.Hits
			}
			if !reflect.DeepEqual(got.Hits, want) {
				t.Fatalf("form %d has other hits", long.HitsForm)
			}
		}
		info, err := results.Info(within(t))
		if err != nil {
			t.Fatal(err)
		}
		if n := int(info.State.Msgs) - parts; n < 10 {
			t.Errorf("two answers of more than 1 MB are %d messages of at most 300 kB", n)
		}
		parts = int(info.State.Msgs)
	}
	reply, err := nc.RequestMsg(message("genie.search.long", `{"k":5000,"with_payload":true,"row":{"name":"same"}}`, wire.HeaderAccept, "parts"), patience)
	if err != nil {
		t.Fatal(err)
	}
	if res := result(t, reply.Data); res.Err == nil || res.Err.Code != wire.TooLarge {
		t.Errorf("directly there are %d hits of %d, and %v", len(res.Hits), res.AllHits, res.Err)
	}
	if _, err := js.PublishMsg(within(t), message("genie.query.long", `{"k":5000,"with_payload":true,"row":{"name":"same"}}`)); err != nil {
		t.Fatal(err)
	}
	m := streamMessage(t, js, "GENIE_RESULTS", "genie.result.long", 1)
	if res := result(t, m.Data); res.Err == nil || res.Err.Code != wire.TooLarge || m.Header.Get(wire.HeaderHits) != "" {
		t.Errorf("who takes no parts has %v, %v", m.Header, res.Err)
	}
}

// A worker dies between two parts of one result. The next one goes on after what is stored where it searches the same version, and begins anew where not: the
// client has one whole result of one version in any case, and each part is there once.
func TestPartsOfAResultByTwoWorkers(t *testing.T) {
	ofProcesses(t)
	t.Parallel()
	const rows = 3000
	for name, test := range map[string]struct {
		swap    bool
		batch   bool
		timeout string // of the query: it is over when the second worker comes
	}{"again": {}, "swapped": {swap: true}, "in a batch": {batch: true}, "expired": {timeout: `,"timeout_ms":3000`}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startServer(t)
			_, js := connect(t, server.url)
			config := jetstream.StreamConfig{
				Name: "GENIE_RESULTS", Subjects: []string{"genie.result.>"}, Discard: jetstream.DiscardNew, Duplicates: 10 * time.Minute, MaxMsgSize: 300_000, MaxMsgs: 1,
			}
			results, err := js.CreateStream(within(t), config)
			if err != nil {
				t.Fatal(err)
			}
			serve := func(fill string) *process {
				file := buildFile(t, t.TempDir(), "long.csv", longAnswerSchema, longAnswerData(rows, fill))
				worker := run(t, "serve", "--index", file, "--nats", server.url, "--admin", "127.0.0.1:0", "--ack-wait", "3s")
				worker.says("NATS")
				return worker
			}
			worker := serve("a")
			start := time.Now()
			body := fmt.Sprintf(`{"id":"q","k":%d,"with_payload":true,"row":{"name":"same"}%s}`, rows, test.timeout)
			if test.batch {
				body = `{"queries":[` + body + `,{"k":1,"row":{"name":"same"}}]}`
			}
			if _, err := js.PublishMsg(within(t), message("genie.query.long", body, "Nats-Msg-Id", "long", wire.HeaderAccept, "parts")); err != nil {
				t.Fatal(err)
			}
			testkit.Eventually(t, func() error {
				if info, err := results.Info(within(t)); err != nil || info.State.Msgs != 1 {
					return fmt.Errorf("the first part is not stored: %v %+v", err, info.State)
				}
				return nil
			})
			worker.signal(syscall.SIGKILL)
			worker.wait()
			if test.timeout != "" {
				time.Sleep(time.Until(start.Add(3 * time.Second)))
			}
			config.MaxMsgs = -1
			if _, err := js.UpdateStream(within(t), config); err != nil {
				t.Fatal(err)
			}
			fill := "a"
			if test.swap {
				fill = "b"
			}
			serve(fill)
			testkit.Eventually(t, func() error {
				queries, err := js.Stream(within(t), "GENIE_QUERIES")
				if err != nil {
					return err
				}
				if n := queries.CachedInfo().State.Msgs; n != 0 {
					return fmt.Errorf("%d messages are left", n)
				}
				return nil
			})
			checkParts(t, results, rows, fill, test.swap, test.timeout != "")
		})
	}
}

// checkParts checks what is stored of the answer: the parts of a result follow each other and are there once, and what they say.
func checkParts(t *testing.T, results jetstream.Stream, rows int, fill string, swapped, expired bool) {
	t.Helper()
	info, err := results.Info(within(t))
	if err != nil {
		t.Fatal(err)
	}
	next, begun, versions := 0, 0, map[string]bool{}
	var fault *wire.Error
	for seq := info.State.FirstSeq; seq <= info.State.LastSeq; seq++ {
		m, err := results.GetMsg(context.Background(), seq)
		if err != nil {
			t.Fatal(err)
		}
		a, err := wire.DecodeAnswer(wire.JSON, m.Data)
		if err != nil {
			t.Fatal(err)
		}
		if a.First > 0 {
			continue // the other query of the batch
		}
		res := a.Results[0]
		if fault = res.Err; fault != nil {
			continue
		}
		hits, ok := wire.ParseRange(m.Header.Get(wire.HeaderHits))
		if !ok || hits.First != res.FirstHit || hits.Last+1 != res.FirstHit+len(res.Hits) || hits.Total != rows || res.AllHits != rows || m.Header.Get(wire.HeaderVersion) != res.Version {
			t.Fatalf("a part of %d hits from %d on has headers %v", len(res.Hits), res.FirstHit, m.Header)
		}
		if res.FirstHit == 0 {
			begun, next = begun+1, 0
		}
		versions[res.Version] = true
		if res.FirstHit != next {
			t.Fatalf("hits from %d on follow %d", res.FirstHit, next)
		}
		for i, h := range res.Hits {
			if int(h.ID) != next+i || begun > 1 && !strings.Contains(string(h.Payload), fill+fill) {
				t.Fatalf("hit %d is %d with %.30s", next+i, h.ID, h.Payload)
			}
		}
		next += len(res.Hits)
	}
	switch {
	case expired:
		if fault == nil || fault.Code != wire.DeadlineExceeded || begun != 1 {
			t.Errorf("begun %d times, ended by %v", begun, fault)
		}
	case next != rows || fault != nil || swapped != (begun == 2) || swapped != (len(versions) == 2):
		t.Errorf("%d hits of %d, begun %d times, by %d versions, %v", next, rows, begun, len(versions), fault)
	}
}
