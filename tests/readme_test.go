package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/service"
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
	shell.Env = append(os.Environ(), "PATH="+filepath.Dir(geniemq(t))+string(os.PathListSeparator)+os.Getenv("PATH"))
	if out, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, script.String(), out)
	}
	cfg := service.Config{Indexes: append(buildAll(t, t.TempDir())[1:], service.IndexSource{Path: filepath.Join(dir, "people.gmq")})}
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

	published := regexp.MustCompile(`(?m)^nats pub (\S+) -H Genie-Reply:(\S+) '(.*)'$`).FindStringSubmatch(code.String())
	if published == nil {
		t.Fatal("the README publishes nothing")
	}
	r.publish(strings.TrimPrefix(published[1], "genie.query."), published[3], "Genie-Reply", published[2])
	if res := result(t, r.stored(published[2], 1).Data); res.Err != nil || len(res.Hits) == 0 {
		t.Errorf("%s: %+v", published[3], res)
	}

	// The table of query forms, each asked to the index of its kind.
	index := map[string]string{"rows": "people", "documents": "papers", "sequences": "words"}
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
