package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/client"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
)

// What docs/security.md says to permit is enough: each row of its table is a user of a server that permits nothing else.
func TestPermissionsOfThePage(t *testing.T) {
	ofProcesses(t)
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| who | publish | subscribe |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	quoted := regexp.MustCompile("`([^`]+)`")
	subjects := func(cell string) string {
		var list []string
		for _, match := range quoted.FindAllStringSubmatch(cell, -1) {
			list = append(list, fmt.Sprintf("%q", strings.NewReplacer("<index>", "people", "<name>", "me").Replace(match[1])))
		}
		return "[" + strings.Join(list, ", ") + "]"
	}
	var users []string
	names := []string{"direct", "stored", "me", "client", "large", "largeme", "dead", "worker"}
	rows := strings.Split(strings.TrimSpace(table), "\n")[1:]
	if len(rows) != len(names) {
		t.Fatalf("the page has %d rows, this test knows %d", len(rows), len(names))
	}
	publish := make(map[string]string)
	for i, row := range rows {
		publish[names[i]] = strings.Split(row, "|")[2]
	}
	publish["client"] += publish["large"] // which are rights besides others
	publish["me"] += publish["largeme"]
	for i, row := range rows {
		cells := strings.Split(row, "|")
		users = append(users, fmt.Sprintf("{ user: %s, password: x, permissions: { publish: { allow: %s }, subscribe: { allow: %s } } }",
			names[i], subjects(publish[names[i]]), subjects(cells[3])))
	}
	server := smallServer(t, "authorization { users: [\n"+strings.Join(users, "\n")+"\n] }")
	as := func(name string) string { return strings.Replace(server.url, "//", "//"+name+":x@", 1) }
	dial := func(name string) *nats.Conn {
		nc, err := nats.Connect(as(name), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { t.Errorf("%s: %v", name, err) }))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	logs := &output{}
	srv, err := service.Start(t.Context(), config.Config{Indexes: buildAll(t, t.TempDir()), NATS: as("worker"), Admin: config.Off, ObjectUsers: []string{"me"}},
		service.Options{Logger: textLogger(logs)})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Shutdown(t.Context())

	reply, err := dial("direct").Request("genie.search.people", []byte(`{"row":{"age":30}}`), patience)
	if err != nil || keys(result(t, reply.Data)) != "ann:1" {
		t.Errorf("asking directly: %v", err)
	}
	p := run(t, "dead", "list", "--nats", as("dead"))
	if code := p.wait(); code != 0 {
		t.Errorf("listing dead letters: exit code %d\n%s", code, p.stderr)
	}
	stored := dial("stored")
	for _, subject := range []string{"genie.result.people.me.1", stored.NewInbox()} {
		sub, err := stored.SubscribeSync(subject)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stored.RequestMsg(message("genie.query.people", `{"row":{"age":30}}`, "Genie-Reply", subject), patience); err != nil {
			t.Fatal(err)
		}
		if m, err := sub.NextMsg(patience); err != nil || keys(result(t, m.Data)) != "ann:1" {
			t.Errorf("asking through the stream, for an answer on %s: %v", subject, err)
		}
	}
	for _, class := range []client.Class{client.ClassQuery, client.ClassBulk} {
		own, err := client.New(dial("me"), client.Options{User: "me", Class: class, JSON: true})
		if err != nil {
			t.Fatal(err)
		}
		defer own.Close()
		query := client.Query{K: 1, Row: client.Conditions(client.Equal("age", 30))}
		if res, err := own.Search(within(t), "people", query); err != nil || keys(res) != "ann:1" {
			t.Errorf("a user's search: %v %v", res, err)
		}
		receipt, err := own.Publish(within(t), "people", query, client.PublishOptions{})
		if err != nil {
			t.Fatalf("a user's %s: %v", class, err)
		}
		_, js := connect(t, as("worker"))
		answer := streamMessage(t, js, "GENIE_RESULTS", "genie.result.people.me.answers", 1)
		if got := keys(result(t, answer.Data)); class == client.ClassQuery && (receipt.Stream != "GENIE_USERS" || got != "ann:1") {
			t.Errorf("a user's query in %s is answered %s", receipt.Stream, got)
		}
	}
	asker, err := client.New(dial("client"), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer asker.Close()
	if res, err := asker.Request(within(t), "people", client.Query{Row: client.Conditions(client.Equal("age", 30))}); err != nil || keys(res) != "ann:1" {
		t.Errorf("the client: %v %v", res, err)
	}
	large, want := manyAges(seeded.Rand(t), 3*smallPayload)
	results, err := asker.RequestBatch(within(t), "people", large)
	if err != nil {
		t.Fatalf("the client, with queries that are too large for a message: %v", err)
	}
	answeredAs(t, "the client", results, want)
	own, err := client.New(dial("me"), client.Options{User: "me"})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	if _, err := own.PublishBatch(within(t), "people", large, client.PublishOptions{Reply: "genie.result.people.me.large"}); err != nil {
		t.Fatalf("a user, with queries that are too large for a message: %v", err)
	}
	_, js := connect(t, as("worker"))
	answeredAs(t, "a user", storedResults(t, js, "genie.result.people.me.large", len(want)), want)
	testkit.Eventually(t, func() error {
		if s := srv.Status(); !s.Ready {
			return fmt.Errorf("%v", s.NotReady)
		}
		return nil
	})
	if text := logs.String(); strings.Contains(strings.ToLower(text), "permissions violation") {
		t.Errorf("the worker lacks permissions:\n%s", text)
	}
}
