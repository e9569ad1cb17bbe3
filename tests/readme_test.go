package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/program"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
)

// What the README says is done as written, in an empty folder: its commands build the index, its queries are asked, and
// the answer is the one it shows.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var script, code strings.Builder // from the data to the build; all indented lines
	for line := range strings.Lines(string(text)) {
		if line, ok := strings.CutPrefix(line, "    "); ok {
			code.WriteString(line)
		}
	}
	before, _, ok := strings.Cut(code.String(), "geniemq serve ")
	_, before, begins := strings.Cut(before, "cat > people.csv")
	if !ok || !begins {
		t.Fatal("the README no longer begins its example with people.csv and ends it with geniemq serve")
	}
	script.WriteString("set -e\ncat > people.csv" + before)

	dir := t.TempDir()
	shell := exec.CommandContext(within(t), "bash", "-c", script.String())
	shell.Dir = dir
	shell.Env = append(os.Environ(), "PATH="+filepath.Dir(program.Path(t))+string(os.PathListSeparator)+os.Getenv("PATH"))
	if out, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, script.String(), out)
	}
	points := buildFile(t, t.TempDir(), "points.jsonl", "name: points\nkind: vectors", `{"vector":[1,2,3]}
{"vector":[0,0.5,3]}
`)
	cities := buildFile(t, t.TempDir(), "cities.jsonl", "name: cities\nkind: points", `{"point":[48.86,2.35]}`)
	cfg := config.Config{Indexes: append(buildAll(t, t.TempDir())[1:], config.IndexSource{Path: filepath.Join(dir, "people.gmq")},
		config.IndexSource{Path: points}, config.IndexSource{Path: cities})}
	r := start(t, cfg, service.Options{})

	// nats request genie.search.people '{...}', and under it the answer.
	asked := regexp.MustCompile(`(?m)^nats request (\S+) '(.*)'$`).FindStringSubmatch(code.String())
	shown := regexp.MustCompile(`"hits":\[.*\],"mc_k":\d+,"exact":\w+`).FindString(code.String())
	if asked == nil || shown == "" {
		t.Fatal("the README shows no request and answer")
	}
	reply, err := r.nc.Request(asked[1], []byte(asked[2]), patience)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(reply.Data), shown) {
		t.Errorf("%s\nis answered %s\nthe README shows %s", asked[2], reply.Data, shown)
	}

	// nats sub PATTERN gets the answers to all that is published under it.
	subscribed := regexp.MustCompile(`(?m)^nats sub '(\S+)' &$`).FindStringSubmatch(code.String())
	published := regexp.MustCompile(`(?m)^nats pub (\S+) -H (\S+?):(\S+) '(.*)'$`).FindAllStringSubmatch(code.String(), -1)
	if subscribed == nil || len(published) < 2 {
		t.Fatal("the README subscribes to nothing, or publishes nothing")
	}
	answers, err := r.nc.SubscribeSync(subscribed[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := r.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, p := range published {
		r.publish(strings.TrimPrefix(p[1], "genie.query."), p[4], p[2], p[3])
		m, err := answers.NextMsg(patience)
		if err != nil {
			t.Fatalf("the answer to %s is not on %s: %v", p[0], subscribed[1], err)
		}
		res := result(t, m.Data)
		if res.Err != nil || len(res.Hits) == 0 {
			t.Errorf("%s: %+v", p[0], res)
		}
		said = append(said, m.Subject+" "+res.ID)
	}
	if want := "genie.result.people order-17, genie.result.people.me q1"; strings.Join(said, ", ") != want {
		t.Errorf("the answers are %q, want %s", said, want)
	}

	// The table of query forms, each asked to the index of its kind.
	index := map[string]string{"rows": "people", "documents": "papers", "sequences": "words", "vectors": "points", "points": "cities"}
	forms := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| `(.*?)` \\|").FindAllStringSubmatch(string(text), -1)
	if len(forms) < 4 {
		t.Fatalf("the README shows %d forms of queries", len(forms))
	}
	for _, form := range forms {
		reply, err := r.nc.Request("genie.search."+index[form[1]], []byte(form[2]), patience)
		if err != nil {
			t.Fatal(err)
		}
		if res := result(t, reply.Data); res.Err != nil {
			t.Errorf("%s: %v", form[2], res.Err)
		}
	}
}
