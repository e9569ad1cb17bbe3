package tests

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
)

// The admin page tries queries of every form: hits that come as columns are shown as others are, and many queries in one message are sent as they are. Its
// script is run by node, beside a worker that answers.
func TestPageTriesAllForms(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("node"); err != nil && os.Getenv("CI") != "true" {
		t.Skip("there is no node to run the page's script")
	}
	r := start(t, config.Config{Admin: "127.0.0.1:0"}, service.Options{})
	testkit.Eventually(t, func() error { // the page asks a worker that serves
		_, err := r.nc.Request("genie.search.people", []byte(`{"row":{"age":30}}`), patience)
		return err
	})
	script := pageScript(t, r.srv.AdminURL())
	ask := func(query string) (hits [][]any) {
		t.Helper()
		var sent json.RawMessage
		byNode(t, script+"\nsaid(shown(input));", []byte(query), &sent)
		var answer json.RawMessage
		body, err := json.Marshal(map[string]any{"index": "people", "query": sent})
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.Post(r.srv.AdminURL()+"/query", "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode != http.StatusOK || bytes.Contains(answer, []byte(`"error"`)) {
			t.Fatalf("%s becomes %s, whose answer is %d %s, %v", query, sent, response.StatusCode, answer, err)
		}
		byNode(t, script+"\nsaid((input.results || [input]).map(r => hitsOf(r.hits)));", answer, &hits)
		return hits
	}
	list := ask(`{"row":{"age":35,"sex":"Female"},"k":3}`)
	if len(list) != 1 || len(list[0]) != 3 {
		t.Fatalf("the hits are %v", list)
	}
	if columns := ask(`{"row":{"age":35,"sex":"Female"},"k":3,"form":"columns"}`); !reflect.DeepEqual(columns, list) {
		t.Errorf("as columns the hits are\n%v, not\n%v", columns, list)
	}
	plain := ask(`{"queries":[{"row":{"age":30},"k":2},{"row":{"age":35},"k":2}]}`)
	if table := ask(`{"table":{"rows":2,"query":{"k":2},"row":[{"attrs":["age"],"value":{"u8":"HiM="}}]}}`); len(table) != 2 || !reflect.DeepEqual(table, plain) {
		t.Errorf("of a table the hits are\n%v, not\n%v", table, plain)
	}
}

// pageScript is the part of the page's script that makes queries and reads answers, and knows nothing of a browser.
func pageScript(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, script, begins := strings.Cut(string(page), "const shown = ")
	script, _, ends := strings.Cut(script, "\nfunction result(")
	if !begins || !ends {
		t.Fatal("the page's script has no shown or no result")
	}
	return "const shown = " + script
}

// byNode runs a script that says something of its input.
func byNode(t *testing.T, script string, input []byte, into any) {
	t.Helper()
	const around = `const input = JSON.parse(require("fs").readFileSync(0, "utf8")), said = v => process.stdout.write(JSON.stringify(v));` + "\n"
	cmd := exec.CommandContext(within(t), "node", "-e", around+script)
	var fault bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), &fault
	said, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(said, into)
	}
	if err != nil {
		t.Fatalf("node: %v %s", err, &fault)
	}
}
