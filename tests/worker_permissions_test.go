package tests

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
)

// workerPermissions is what docs/configuration.md lists.
const workerPermissions = `
  publish = {allow: [
    "$JS.API.STREAM.INFO.GENIE_QUERIES", "$JS.API.STREAM.INFO.GENIE_RESULTS", "$JS.API.STREAM.INFO.GENIE_DEAD",
    "$JS.API.CONSUMER.INFO.GENIE_QUERIES.geniemq-people", "$JS.API.CONSUMER.MSG.NEXT.GENIE_QUERIES.geniemq-people",
    "$JS.ACK.GENIE_QUERIES.geniemq-people.>",
    "genie.result.>", "genie.dead.>", "_INBOX.>"
  ]}
  subscribe = {allow: ["genie.search.people", "$SRV.>", "_INBOX.>"]}`

// classPermissions is the list with what is for classes.
var classPermissions = strings.NewReplacer(`"genie.result.>",`, `
    "$JS.API.STREAM.INFO.GENIE_USERS", "$JS.API.CONSUMER.INFO.GENIE_USERS.geniemq-people", "$JS.API.CONSUMER.MSG.NEXT.GENIE_USERS.geniemq-people",
    "$JS.ACK.GENIE_USERS.geniemq-people.>",
    "$JS.API.STREAM.INFO.GENIE_BULK", "$JS.API.CONSUMER.INFO.GENIE_BULK.geniemq-people", "$JS.API.CONSUMER.MSG.NEXT.GENIE_BULK.geniemq-people",
    "$JS.ACK.GENIE_BULK.geniemq-people.>",
    "genie.result.>",`, `"genie.search.people",`, `"genie.search.people", "genie.search.people.*",`).Replace(workerPermissions)

// restricted starts a server with a user root, who may do anything, and a user worker.
func restricted(t testing.TB, permissions string, more ...string) (_ *external, root, worker string) {
	t.Helper()
	server := startServer(t, append(more, `
authorization { users = [
  {user: root, password: secret}
  {user: worker, password: secret, permissions: {`+permissions+`}}
]}`)...)
	address := strings.TrimPrefix(server.url, "nats://")
	return server, "nats://root:secret@" + address, "nats://worker:secret@" + address
}

// A worker whose streams and durable exist needs few permissions, and none to change anything.
func TestFewPermissions(t *testing.T) {
	t.Parallel()
	indexes := []config.IndexSource{{Path: buildFile(t, t.TempDir(), "people.csv", peopleSchema, peopleData)}}
	for _, c := range []struct {
		permissions string
		classes     bool
	}{{workerPermissions, false}, {classPermissions, true}} {
		_, root, worker := restricted(t, c.permissions)
		makeStreams(t, root, indexes)
		r := start(t, config.Config{NATS: worker, Indexes: indexes}, service.Options{})
		r.nc, r.js = connect(t, root)
		r.publish("people", `{"row":{"age":52}}`)
		if got := keys(result(t, r.stored("genie.result.people", 1).Data)); got != "dan:1" {
			t.Errorf("got %s", got)
		}
		if c.classes {
			for _, subject := range []string{"genie.query.people.bob", "genie.bulk.people"} {
				if _, err := r.js.PublishMsg(within(t), message(subject, danQuery, "Genie-Reply", "genie.result.people.bob.1")); err != nil {
					t.Fatal(err)
				}
			}
			r.stored("genie.result.people.bob.1", 2)
			if _, err := r.nc.Request("genie.search.people.bob", []byte(danQuery), patience); err != nil {
				t.Errorf("a user's search: %v", err)
			}
		}
		r.settled()
		r.works()
		testkit.Eventually(t, r.ready)
	}
}

// makeStreams lets a worker that may do anything make streams and durables, and ends it.
func makeStreams(t testing.TB, url string, indexes []config.IndexSource) {
	t.Helper()
	s, err := service.Start(t.Context(), config.Config{NATS: url, Indexes: indexes, Admin: config.Off}, service.Options{})
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, func() error {
		if reasons := s.Status().NotReady; len(reasons) > 0 {
			return errors.New(strings.Join(reasons, "; "))
		}
		return nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
}

// What a worker needs and may not do ends its start with the subject to allow; and not after the half minute that the server is
// given for what it does do.
func TestMissingPermissions(t *testing.T) {
	t.Parallel()
	indexes := []config.IndexSource{{Path: buildFile(t, t.TempDir(), "people.csv", peopleSchema, peopleData)}}
	for _, c := range []struct {
		deny  string
		exist bool // the streams do
		store int  // bytes that the server has for streams; 0: what the disk has
		names string
	}{
		{deny: "$JS.API.STREAM.INFO.>", exist: true, names: "$JS.API.STREAM.INFO.GENIE_QUERIES"},
		{deny: "$JS.API.STREAM.CREATE.>", names: "$JS.API.STREAM.CREATE.GENIE_QUERIES"},
		// Streams are made smaller where the server has not room enough.
		{deny: "$JS.API.STREAM.UPDATE.>", store: 300_000_000, names: "$JS.API.STREAM.UPDATE.GENIE_QUERIES"},
		{deny: "$JS.API.CONSUMER.INFO.>", exist: true, names: "$JS.API.CONSUMER.INFO.GENIE_"},
		{deny: "$JS.API.CONSUMER.CREATE.>", names: "$JS.API.CONSUMER.CREATE.GENIE_"},
		{deny: "$JS.API.CONSUMER.MSG.NEXT.>", exist: true, names: "$JS.API.CONSUMER.MSG.NEXT.GENIE_"},
	} {
		t.Run(c.deny, func(t *testing.T) {
			t.Parallel()
			var more []string
			if c.store > 0 {
				more = append(more, fmt.Sprintf("jetstream { store_dir: %q, max_file_store: %d }", t.TempDir(), c.store))
			}
			_, root, worker := restricted(t, `publish = {deny: ["`+c.deny+`"]}`, more...)
			if c.exist {
				makeStreams(t, root, indexes)
			}
			begin := time.Now()
			s, err := service.Start(t.Context(), config.Config{NATS: worker, Indexes: indexes, Admin: config.Off}, service.Options{})
			if err == nil { // it was too fast for the server's word, which shows in its readiness then
				testkit.Eventually(t, func() error {
					if err = errors.New(strings.Join(s.Status().NotReady, "\n")); !strings.Contains(err.Error(), c.names) {
						return err
					}
					return nil
				})
				defer s.Shutdown(within(t))
			}
			if took := time.Since(begin); !strings.Contains(err.Error(), c.names) || took > promptly {
				t.Errorf("after %v: %v", took, err)
			}
		})
	}
}

// A worker that may not acknowledge answers the same queries again and again. It says so.
func TestMayNotAcknowledge(t *testing.T) {
	t.Parallel()
	indexes := []config.IndexSource{{Path: buildFile(t, t.TempDir(), "people.csv", peopleSchema, peopleData)}}
	_, _, worker := restricted(t, `publish = {deny: ["$JS.ACK.>"]}`)
	r := start(t, config.Config{NATS: worker, Indexes: indexes}, service.Options{})
	testkit.Eventually(t, r.ready)
	r.publish("people", `{"row":{"age":52}}`)
	testkit.Eventually(t, func() error { return unready(r, "$JS.ACK.GENIE_QUERIES.geniemq-people.") })
}

// logLines collects the lines of a log.
type logLines struct {
	mu   sync.Mutex
	text []string
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, string(p))
	return len(p), nil
}

func (l *logLines) count(word string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.text {
		if strings.Contains(line, word) {
			n++
		}
	}
	return n
}

// Messages that cause errors, as many as anybody likes, do not fill the log.
func TestErrorsOfMessagesInTheLog(t *testing.T) {
	t.Parallel()
	log := &logLines{}
	r := start(t, config.Config{}, service.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.srv.NATSURL(), "nats://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const messages = 2000
	header := "NATS/1.0\r\nno colon\r\n\r\n"
	w := bufio.NewWriter(conn)
	fmt.Fprintf(w, "CONNECT {\"headers\":true,\"verbose\":false}\r\n")
	for range messages {
		fmt.Fprintf(w, "HPUB genie.search.people reply %d %d\r\n%s{}\r\n", len(header), len(header)+2, header)
	}
	fmt.Fprintf(w, "PING\r\n")
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	for scanner := bufio.NewScanner(conn); scanner.Scan() && scanner.Text() != "PONG"; {
	}
	testkit.Eventually(t, func() error {
		if log.count("could not decode headers") == 0 {
			return errors.New("the log says nothing")
		}
		return nil
	})
	r.works() // which is behind them
	if n := log.count("could not decode headers"); n > 20 {
		t.Errorf("%d lines for %d malformed messages", n, messages)
	}
}
