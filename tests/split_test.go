package tests

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service/admin"
	"github.com/geniemq/geniemq/wire"
)

// A worker dies when it has stored the first part of an answer. The next one answers the rest, wherever it cuts: when queries
// have expired since, when the index is another version, and when it refuses the whole message. Every query has one result,
// and each result names the version that searched it.
func TestPartsOfTwoAttempts(t *testing.T) {
	ofProcesses(t)
	t.Parallel()
	const queries, rows = 100, 40
	schema := "name: big\nkind: rows\ncolumns:\n  - {name: name, type: category}\n  - {name: text, type: payload}\n"
	data := func(fill string) string {
		var b strings.Builder
		b.WriteString("name,text\n")
		for range rows {
			b.WriteString("same," + strings.Repeat(fill, 200) + "\n")
		}
		return b.String()
	}
	one := `{"k":40,"with_payload":true,"row":{"name":"same"}%s}`
	body := func(more string) string {
		return `{"queries":[` + strings.Repeat(fmt.Sprintf(one, more)+",", queries-1) + fmt.Sprintf(one, more) + `]}`
	}
	for name, test := range map[string]struct {
		more string   // of each query
		swap bool     // the second worker serves another version
		live bool     // it serves the first version when it starts, and is swapped before the message is delivered again
		args []string // of the second worker
		rest string   // what the second worker answers
	}{
		"again":                 {rest: "hits"},
		"expired":               {more: `,"timeout_ms":3000`, rest: string(wire.DeadlineExceeded)},
		"swapped":               {swap: true, rest: "hits"},
		"swapped while it runs": {swap: true, live: true, rest: "hits"},
		"refused":               {args: []string{"--max-queries", "50"}, rest: string(wire.TooLarge)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := startServer(t)
			_, js := connect(t, server.url)
			config := jetstream.StreamConfig{
				Name: "GENIE_RESULTS", Subjects: []string{"genie.result.>"}, Discard: jetstream.DiscardNew, Duplicates: 10 * time.Minute,
				MaxMsgSize: 300_000, MaxMsgs: 1,
			}
			results, err := js.CreateStream(within(t), config)
			if err != nil {
				t.Fatal(err)
			}
			serve := func(file string, more ...string) *process {
				worker := run(t, append([]string{"serve", "--index", file, "--nats", server.url, "--admin", "127.0.0.1:0", "--ack-wait", "3s"}, more...)...)
				worker.says("NATS")
				return worker
			}
			file := buildFile(t, t.TempDir(), "big.csv", schema, data("a"))
			worker := serve(file)
			start := time.Now()
			if _, err := js.PublishMsg(within(t), message("genie.query.big", body(test.more), "Nats-Msg-Id", "split")); err != nil {
				t.Fatal(err)
			}
			testkit.Eventually(t, func() error {
				if info, err := results.Info(within(t)); err != nil || info.State.Msgs != 1 {
					return fmt.Errorf("the first part is not stored: %v %+v", err, info.State)
				}
				return nil
			})
			var second *process
			if test.live {
				second = serve(file) // the message is the first one's
			}
			worker.signal(syscall.SIGKILL)
			worker.wait()
			if test.live {
				file = buildFile(t, t.TempDir(), "big.csv", schema, data("b"))
				if _, err := (admin.Swap{Index: "big", File: file}).Ask(within(t), strings.TrimPrefix(second.says("admin"), "http://"), ""); err != nil {
					t.Fatal(err)
				}
			}
			if test.more != "" {
				time.Sleep(time.Until(start.Add(3 * time.Second)))
			}
			config.MaxMsgs = -1
			if _, err := js.UpdateStream(within(t), config); err != nil {
				t.Fatal(err)
			}
			if test.swap && !test.live {
				file = buildFile(t, t.TempDir(), "big.csv", schema, data("b"))
			}
			if !test.live {
				serve(file, test.args...)
			}

			versions := make(map[string]bool)
			last := ""
			for next, part := 0, 1; next < queries; part++ {
				m := streamMessage(t, js, "GENIE_RESULTS", "genie.result.big", part)
				a, err := wire.DecodeAnswer(wire.JSON, m.Data)
				if err != nil {
					t.Fatal(err)
				}
				covered := wire.Range{First: next, Last: next + len(a.Results) - 1, Total: queries}
				if !a.Batch || a.First != next || m.Header.Get(wire.HeaderQueries) != covered.String() {
					t.Fatalf("part %d is from %d on, has %d results and headers %v; want %v", part, a.First, len(a.Results), m.Header, covered)
				}
				for i := range a.Results {
					res := &a.Results[i]
					versions[res.Version] = true
					switch {
					case res.Err != nil:
						last = string(res.Err.Code)
					case len(res.Hits) != rows:
						t.Errorf("query %d has %d hits", next+i, len(res.Hits))
					default:
						last = "hits"
					}
					// The first worker may have sent the second part before it was killed, and the stream takes it late.
					if first, rest := last == "hits", last == test.rest; part == 1 && !first || part == 2 && !first && !rest || part > 2 && !rest {
						t.Fatalf("query %d, of part %d, is answered with %s, want %s", next+i, part, last, test.rest)
					}
				}
				next += len(a.Results)
			}
			if last != test.rest {
				t.Errorf("the last part is answered with %s, want %s", last, test.rest)
			}
			if test.swap != (len(versions) == 2) {
				t.Errorf("versions %v", versions)
			}
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
		})
	}
}
