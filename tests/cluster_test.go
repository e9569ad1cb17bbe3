package tests

import (
	"bytes"
	"fmt"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/client"
	"github.com/geniemq/geniemq/internal/human"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/internal/testkit/cluster"
	"github.com/geniemq/geniemq/internal/testkit/program"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// On a cluster of three servers the streams have three replicas, if so set, and a server that is gone costs no query and no answer that was acknowledged:
// whichever leads what.
func TestReplicatedStreams(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t)
	r := start(t, config.Config{NATS: c.URL(), Streams: config.Streams{Replicas: 3}}, service.Options{})
	for _, stream := range []string{"GENIE_QUERIES", "GENIE_USERS", "GENIE_BULK", "GENIE_RESULTS", "GENIE_DEAD", "KV_genie-suspects"} {
		s, err := r.js.Stream(within(t), stream)
		if err != nil {
			t.Fatal(err)
		}
		if n := s.CachedInfo().Config.Replicas; n != 3 {
			t.Errorf("%s has %d replicas", stream, n)
		}
	}
	asker, err := client.New(r.nc, client.Options{User: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	defer asker.Close()
	query := client.Query{K: 1, Row: client.Conditions(client.Equal("age", 52))}
	const n = 40
	for i := range n {
		if i == n/2 {
			results, err := r.js.Stream(within(t), "GENIE_RESULTS")
			if err != nil {
				t.Fatal(err)
			}
			var gone int
			if _, err := fmt.Sscanf(results.CachedInfo().Cluster.Leader, "s%d", &gone); err != nil {
				t.Fatal(err)
			}
			c.Stop(gone - 1)
		}
		if _, err := asker.Publish(within(t), "people", query, client.PublishOptions{MsgID: fmt.Sprint("q", i)}); err != nil {
			t.Fatalf("query %d: %v", i, err)
		}
	}
	testkit.Eventually(t, func() error {
		stream, err := r.js.Stream(within(t), "GENIE_RESULTS")
		if err != nil {
			return err
		}
		info, err := stream.Info(within(t), jetstream.WithSubjectFilter("genie.result.people.bob.answers"))
		if err != nil {
			return err
		}
		if got := info.State.Subjects["genie.result.people.bob.answers"]; got != n {
			return fmt.Errorf("%d answers to %d queries", got, n)
		}
		return nil
	})
	testkit.Eventually(t, r.ready)
}

// geniemq admin streams shows what the settings would change of streams that exist, and changes that and nothing else.
func TestAdminStreams(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t)
	// An embedded server lets streams reserve what its disk has free, which may be little, and three share one disk here.
	small := map[string]human.Size{"queries": 64 << 20, "users": 64 << 20, "bulk": 64 << 20, "results": 64 << 20, "dead": 16 << 20, "objects": 64 << 20}
	r := start(t, config.Config{NATS: c.URL(), Streams: config.Streams{Bytes: small}}, service.Options{})
	run := func(args ...string) (int, string) {
		cmd := exec.CommandContext(within(t), program.Path(t), append([]string{"admin", "streams", "--nats", c.URL()}, args...)...)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		_ = cmd.Run()
		return cmd.ProcessState.ExitCode(), out.String()
	}
	admin := func(want int, args ...string) string {
		t.Helper()
		code, out := run(args...)
		if code != want {
			t.Fatalf("%v: exit code %d, want %d:\n%s", args, code, want, out)
		}
		return out
	}
	of := func(class wire.Class) jetstream.StreamConfig {
		t.Helper()
		s, err := r.js.Stream(within(t), wire.Subjects{}.Stream(class))
		if err != nil {
			t.Fatal(err)
		}
		return s.CachedInfo().Config
	}
	if out := admin(0); !strings.Contains(out, "GENIE_BULK") || strings.Contains(out, "--apply") {
		t.Errorf("without settings:\n%s", out)
	}
	before := of(wire.ClassUsers)
	if out := admin(1, "--replicas", "3", "--stream-messages", "users=77"); !strings.Contains(out, "stream GENIE_USERS: num_replicas is 1, --apply makes it 3") {
		t.Errorf("what is to change:\n%s", out)
	}
	if got := of(wire.ClassUsers); got.Replicas != 1 || got.MaxMsgsPerSubject != 10_000 {
		t.Errorf("looking changed it: %+v", got)
	}
	testkit.Eventually(t, func() error { // on a busy machine servers of a cluster take each other for offline now and then
		if code, out := run("--replicas", "3", "--stream-messages", "users=77", "--apply"); code != 0 {
			return fmt.Errorf("exit code %d:\n%s", code, out)
		}
		return nil
	})
	got := of(wire.ClassUsers)
	if got.Replicas != 3 || got.MaxMsgsPerSubject != 77 || of(wire.ClassBulk).Replicas != 3 {
		t.Errorf("after applying: %+v", got)
	}
	if got.MaxBytes != before.MaxBytes || got.MaxAge != before.MaxAge || strings.Join(got.Subjects, " ") != strings.Join(before.Subjects, " ") {
		t.Errorf("something else was changed: %+v", got)
	}
	if out := admin(0, "--replicas", "3"); strings.Contains(out, "--apply") {
		t.Errorf("after applying:\n%s", out)
	}
	admin(2, "--replicas", "2")
	admin(2, "--stream-bytes", "queues=1GiB")
	// A stream that moves may lose a publish, which the client repeats.
	asker, err := client.New(r.nc, client.Options{User: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	defer asker.Close()
	res, err := asker.Request(within(t), "people", client.Query{K: 1, Row: client.Conditions(client.Equal("age", 52))})
	if err != nil || keys(res) != "dan:1" {
		t.Errorf("%v %v", res, err)
	}
}

// Workers and clients at a leaf node use streams of another JetStream domain, which a setting names, or a context of the nats command.
func TestDomain(t *testing.T) {
	t.Parallel()
	hub := testkit.StartBroker(t, func(o *server.Options) {
		o.JetStreamDomain = "hub"
		o.LeafNode.Host, o.LeafNode.Port = "127.0.0.1", server.RANDOM_PORT
	})
	state, err := hub.Server().Varz(nil)
	if err != nil {
		t.Fatal(err)
	}
	to := &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", state.LeafNode.Port)}
	leaf := testkit.StartBroker(t, func(o *server.Options) {
		o.JetStreamDomain = "leaf"
		o.LeafNode.Remotes = []*server.RemoteLeafOpts{{URLs: []*url.URL{to}}}
	})
	testkit.Eventually(t, func() error {
		if n := hub.Server().NumLeafNodes(); n != 1 {
			return fmt.Errorf("%d leaf nodes", n)
		}
		return nil
	})
	by := writeFile(t, t.TempDir(), "hub.json", fmt.Appendf(nil, `{"url":%q,"jetstream_domain":"hub"}`, leaf.URL()))
	indexes := buildAll(t, t.TempDir())
	start(t, config.Config{NATSContext: by, Indexes: indexes[:1]}, service.Options{}) // the other one has people
	r := start(t, config.Config{NATS: leaf.URL(), Streams: config.Streams{Domain: "hub"}, Indexes: indexes[1:]}, service.Options{})
	_, atHub := connect(t, hub.URL())
	if _, err := atHub.Stream(within(t), "GENIE_QUERIES"); err != nil {
		t.Fatalf("the streams are not in the domain: %v", err)
	}
	js, err := jetstream.NewWithDomain(r.nc, "hub")
	if err != nil {
		t.Fatal(err)
	}
	asker := answersOver(t, r, js)

	// The worker asks the domain what room its result stream has.
	results, err := atHub.Stream(within(t), "GENIE_RESULTS")
	if err != nil {
		t.Fatal(err)
	}
	cfg := results.CachedInfo().Config
	full := cfg
	full.MaxBytes = 1
	if _, err := atHub.UpdateStream(within(t), full); err != nil {
		t.Fatal(err)
	}
	receipt, err := asker.Publish(within(t), "words", client.Query{Text: "word"}, client.PublishOptions{})
	if err != nil {
		t.Fatal(err)
	}
	turnsUnready(t, r, "results do not get out")
	if err := r.ready(); err != nil && strings.Contains(err.Error(), "no stream takes results") {
		t.Errorf("the stream of another domain is asked: %v", err)
	}
	if _, err := atHub.UpdateStream(within(t), cfg); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, func() error {
		queries, err := atHub.Stream(within(t), "GENIE_QUERIES")
		if err == nil && queries.CachedInfo().State.Msgs > 0 {
			err = fmt.Errorf("query %d is not answered", receipt.Sequence)
		}
		return err
	})
	testkit.Eventually(t, r.ready)

	// And so do commands.
	if _, err := atHub.Publish(within(t), "genie.query.nobody", []byte(danQuery)); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, func() error {
		out, err := exec.CommandContext(within(t), program.Path(t), "dead", "list", "--context", by).CombinedOutput()
		if err == nil && !strings.Contains(string(out), "unknown_index") {
			err = fmt.Errorf("dead letters of the domain: %s", out)
		}
		return err
	})
}

// answersOver asks a worker stored and direct queries of people, the stored ones over js, and returns the client.
func answersOver(t *testing.T, r *running, js jetstream.JetStream) *client.Client {
	t.Helper()
	asker, err := client.New(r.nc, client.Options{JetStream: js})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(asker.Close)
	query := client.Query{K: 1, Row: client.Conditions(client.Equal("age", 52))}
	if res, err := asker.Request(within(t), "people", query); err != nil || keys(res) != "dan:1" {
		t.Errorf("stored: %v %v", res, err)
	}
	if res, err := asker.Search(within(t), "people", query); err != nil || keys(res) != "dan:1" {
		t.Errorf("direct: %v %v", res, err)
	}
	testkit.Eventually(t, r.ready)
	return asker
}

// Workers and clients of an account that imports the JetStream API of another under a prefix, which a context of the nats command names, use the streams of
// that other one.
func TestAPIPrefix(t *testing.T) {
	ofProcesses(t)
	t.Parallel()
	server := startServer(t, `
		no_auth_user: worker
		accounts {
			streams {
				jetstream: enabled
				users: [ { user: "streams", password: "p" } ]
				exports: [
					{ service: "$JS.API.>", response: stream }
					{ service: "$KV.>" }
					{ service: "$JS.ACK.>" }
					{ service: "genie.>" }
				]
			}
			workers {
				users: [ { user: "worker", password: "p" } ]
				imports: [
					{ service: { account: streams, subject: "$JS.API.>" }, to: "their.API.>" }
					{ service: { account: streams, subject: "$KV.>" }, to: "their.API.$KV.>" }
					{ service: { account: streams, subject: "$JS.ACK.>" } }
					{ service: { account: streams, subject: "genie.query.>" } }
					{ service: { account: streams, subject: "genie.bulk.>" } }
					{ service: { account: streams, subject: "genie.result.>" } }
					{ service: { account: streams, subject: "genie.dead.>" } }
				]
			}
		}`)
	by := writeFile(t, t.TempDir(), "theirs.json", fmt.Appendf(nil, `{"url":%q,"user":"worker","password":"p","jetstream_api_prefix":"their.API"}`, server.url))
	r := start(t, config.Config{NATSContext: by, Indexes: buildAll(t, t.TempDir())}, service.Options{})
	_, theirs := connect(t, strings.Replace(server.url, "//", "//streams:p@", 1))
	if _, err := theirs.Stream(within(t), "GENIE_QUERIES"); err != nil {
		t.Fatalf("the streams are not in the other account: %v", err)
	}
	js, err := jetstream.NewWithAPIPrefix(r.nc, "their.API")
	if err != nil {
		t.Fatal(err)
	}
	answersOver(t, r, js)
}
