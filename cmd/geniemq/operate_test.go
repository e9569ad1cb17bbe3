package main

import (
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
)

// TestOperate: a query whose reply subject is not allowed becomes a dead letter of a real worker; it is listed, shown, and replayed to a worker that
// allows the subject, which answers it once, under the id that it had. top and the page tell what the worker does meanwhile.
func TestOperate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "people.gmq")
	if got := command(t, "", nil, "build", "--schema", write(t, dir, "s.yaml", schemaText), "--input", write(t, dir, "1.csv", "id,age,sex\nann,30,Female\nbob,35,Male\n"), "--output", path); got.code != 0 {
		t.Fatal(got.err)
	}
	start := func(allow ...string) *service.Service {
		srv, err := service.Start(t.Context(), config.Config{
			Indexes: []config.IndexSource{{Path: path}}, NATSListen: "127.0.0.1:0", DataDir: filepath.Join(dir, "data"), Admin: "127.0.0.1:0", ReplyAllow: allow,
		}, service.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return srv
	}
	srv := start()
	env := func() map[string]string { return map[string]string{"GENIEMQ_NATS": srv.NATSURL()} }
	js := testkit.JetStream(t, srv.NATSURL())
	if _, err := js.PublishMsg(t.Context(), &nats.Msg{Subject: "genie.query.people", Data: []byte(`{"row":{"sex":"Female"}}`),
		Header: nats.Header{"Nats-Msg-Id": {"order-17"}, "Genie-Reply": {"app.answers"}}}); err != nil {
		t.Fatal(err)
	}
	var list outcome
	testkit.Until(t, "the letter is there", func() bool {
		list = command(t, "", env(), "dead", "list")
		return list.out != ""
	})
	if !strings.Contains(list.out, `"reason":"bad_reply"`) || !strings.Contains(list.out, `"id":"order-17"`) {
		t.Errorf("list: %+v", list)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"dead", "list", "--json=false"}, exitDone, "bad_reply"},
		{[]string{"dead", "list", "--json=false", "--index", "other"}, exitDone, "no dead letters"},
		{[]string{"dead", "show", "1"}, exitDone, `"body":"{\"row\":{\"sex\":\"Female\"}}"`},
		{[]string{"dead", "show", "1", "--json=false"}, exitDone, `{"row":{"sex":"Female"}}`},
		{[]string{"dead", "show", "9"}, exitFailed, "no such dead letter: 9"},
		{[]string{"dead", "show", "x"}, exitUsage, "no sequence"},
		{[]string{"dead", "replay"}, exitUsage, "which letters?"},
		{[]string{"dead", "drop", "1", "--all"}, exitUsage, "which letters?"},
		{[]string{"dead", "drop", "1", "--index", "people"}, exitUsage, "go with --all"},
		{[]string{"dead", "drop", "--all", "--reason", "worker_lost"}, exitDone, ""},
		{[]string{"dead", "list", "--prefix", "other"}, exitFailed, "OTHER_DEAD is not there"},
		{[]string{"top", "--once", "--json=false", "--admin", strings.TrimPrefix(srv.AdminURL(), "http://")}, exitDone, "people"},
		{[]string{"top", "--admin", "off"}, exitUsage, "--admin is off"},
		{[]string{"top", "--admin", "127.0.0.1:1"}, exitFailed, "asking the worker at 127.0.0.1:1"},
		{[]string{"version"}, exitDone, "geniemq version "},
	} {
		if got := command(t, "", env(), c.args...); got.code != c.code || !strings.Contains(got.out+got.err, c.says) {
			t.Errorf("%v: %+v, want %d and %q", c.args, got, c.code, c.says)
		}
	}
	response, err := http.Post(srv.AdminURL()+"/query", "application/json", strings.NewReader(`{"index":"people","query":{"row":{"age":30},"explain":true}}`))
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Hits    []struct{ Key string }
		Explain json.RawMessage
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.Body.Close() != nil || len(answer.Hits) != 1 || answer.Hits[0].Key != "ann" || answer.Explain == nil {
		t.Errorf("by the page: %s, %+v, %v", response.Status, answer, err)
	}

	if err := srv.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv = start("app.>", "genie.result.people")
	t.Cleanup(func() { srv.Shutdown(context.Background()) })
	nc := testkit.Connect(t, srv.NATSURL())
	answers, err := nc.SubscribeSync("app.answers")
	if err != nil || nc.Flush() != nil {
		t.Fatal(err)
	}
	if got := command(t, "", env(), "dead", "replay", "--all", "--json=false"); got.code != exitDone || !strings.Contains(got.out, "letter 1 is message 2 of genie.query.people, id replay.") {
		t.Fatalf("replay: %+v", got)
	}
	msg, err := answers.NextMsgWithContext(t.Context())
	if err != nil || !strings.Contains(string(msg.Data), `"id":"order-17"`) || !strings.Contains(string(msg.Data), `"key":"ann"`) || !strings.HasPrefix(msg.Header.Get("Nats-Msg-Id"), "people.replay.") {
		t.Errorf("answered %+v, %v", msg, err)
	}
	if got := command(t, "", env(), "dead", "list"); got.code != exitDone || got.out != "" {
		t.Errorf("after the replay: %+v", got)
	}
}

// TestAddAndRemove: indexes come to a running worker and go by commands, which say what came of it.
func TestAddAndRemove(t *testing.T) {
	people, cities := testkit.RowsFile(t, "people", 10), testkit.RowsFile(t, "cities", 20)
	srv, err := service.Start(t.Context(), config.Config{
		Indexes: []config.IndexSource{{Path: people}}, NATSListen: "127.0.0.1:0", DataDir: t.TempDir(), Admin: "127.0.0.1:0",
	}, service.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Shutdown(context.Background()) })
	env := map[string]string{"GENIEMQ_ADMIN": strings.TrimPrefix(srv.AdminURL(), "http://")}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"add", cities}, exitDone, "cities: version "},
		{[]string{"add", cities}, exitFailed, "an index cities is served already"},
		{[]string{"add", "towns", cities}, exitDone, "towns: version "},
		{[]string{"add", "a.b", cities}, exitUsage, "cannot be an index"},
		{[]string{"add", "other", cities + ".none"}, exitFailed, "no such file"},
		{[]string{"swap", "towns", cities}, exitDone, "towns: version "},
		{[]string{"remove", "cities"}, exitDone, "answers no longer; stored queries wait"},
		{[]string{"remove", "cities"}, exitFailed, "does not serve it"},
		{[]string{"remove", "towns", "--admin", "off"}, exitUsage, "--admin is off"},
		{[]string{"remove"}, exitUsage, "arg"},
		{[]string{"add"}, exitUsage, "arg"},
	} {
		if got := command(t, "", env, c.args...); got.code != c.code || !strings.Contains(got.out+got.err, c.says) {
			t.Errorf("%v: %+v, want %d and %q", c.args, got, c.code, c.says)
		}
	}
	var names []string
	for _, x := range srv.Status().Indexes {
		names = append(names, x.Name)
	}
	if got := strings.Join(names, " "); got != "people towns" {
		t.Errorf("%s are served", got)
	}
}
