package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/geniemq/geniemq/cmd/geniemq/inspect"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/config"
	"github.com/geniemq/geniemq/wire"
)

// outcome is what a command did.
type outcome struct {
	code     int
	out, err string
}

// command runs the command line in this process.
func command(t testing.TB, stdin string, env map[string]string, args ...string) outcome {
	t.Helper()
	var out, err bytes.Buffer
	c := newCLI(strings.NewReader(stdin), &out, &err, func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	})
	code := c.run(t.Context(), args)
	return outcome{code, out.String(), err.String()}
}

func write(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	schemaText = "name: people\nkind: rows\nkey: id\ncolumns: [{name: age, type: number, edges: exact, invalid: error}, {name: sex, type: category}]\n"
	laxText    = "name: people\nkind: rows\nkey: id\ncolumns: [{name: age, type: number, edges: exact}, {name: sex, type: category}]\n"
)

func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	schema := write(t, dir, "s.yaml", schemaText)
	lax := write(t, dir, "lax.yaml", laxText)
	bad := write(t, dir, "bad.yaml", "name: a b\nkind: rows\n")
	data := write(t, dir, "d.csv", "id,age,sex\nann,30,F\nbob,old,M\n")
	empty := write(t, dir, "empty.csv", "id,age,sex\n")
	sliced := write(t, dir, "sliced.yaml", "name: people\nkind: rows\ncolumns:\n- {name: id, type: category, split: o, layout: sliced}\n")
	out := filepath.Join(dir, "x.gmq")
	config := write(t, dir, "c.yaml", "admim: x\n")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{}, exitDone, ""},
		{[]string{"--help"}, exitDone, ""},
		{[]string{"--version"}, exitDone, ""},
		{[]string{"surf"}, exitUsage, `unknown command "surf"`},
		{[]string{"demo", "--twice"}, exitUsage, "unknown flag: --twice"},
		{[]string{"demo", "now"}, exitUsage, "now"},
		{[]string{"build"}, exitUsage, "no input"},
		{[]string{"build", "-"}, exitUsage, "add --schema"},
		{[]string{"build", "--output", out, dir + "/none.csv"}, exitFailed, "none.csv"},
		{[]string{"build", "--schema", lax, "--output", out, data}, exitDone, "invalid: column age: line 3: \"old\" is not"},
		{[]string{"build", "--schema", lax, "--output", out, "--max-bad", "10%", data}, exitFailed, "column \"age\": 1 of 2 cells cannot be used"},
		{[]string{"build", "--schema", lax, "--output", out, "--max-bad", "50%", data}, exitDone, "of these invalid"},
		{[]string{"build", "--schema", lax, "--output", out, "--max-bad", "half", data}, exitUsage, "--max-bad"},
		{[]string{"build", "--schema", lax, "--output", out, "--report", "xml", data}, exitUsage, "--report"},
		{[]string{"build", "--schema", lax, "--output", out, "--skip-lines", "-1", data}, exitUsage, "skipped"},
		{[]string{"init"}, exitUsage, "1 arg"},
		{[]string{"init", dir + "/none.csv"}, exitFailed, "none.csv"},
		{[]string{"init", "--separator", ";;", data}, exitUsage, "one character"},
		{[]string{"init", data}, exitDone, ""},
		{[]string{"build", "--schema", bad, "--input", data, "--output", out}, exitFailed, "name"},
		{[]string{"build", "--schema", schema, "--input", data, "--output", out}, exitFailed, "line 3: column age: \"old\" is not"},
		{[]string{"build", "--schema", schema, "--input", data, "--output", out, "--separator", "ab"}, exitUsage, "one character"},
		{[]string{"build", "--schema", schema, "--input", dir + "/none.csv", "--output", out}, exitFailed, "none.csv"},
		{[]string{"build", "--schema", schema, "--input", data, "--output", out, "--format", "xml"}, exitUsage, `unknown format "xml"`},
		{[]string{"build", "--schema", schema, "--input", data, "--output", out, "--engine", "gpu"}, exitUsage, `--engine "gpu" is unknown: use one of cpu, cuda, auto`},
		{[]string{"build", "--schema", schema, "--input", data, "--output", out, "--encoding", "utf-17"}, exitUsage, `unknown encoding "utf-17"`},
		{[]string{"build", "--schema", schema, "--input", data, "--output", out, "--separator", "\""}, exitUsage, "cannot separate"},
		{[]string{"build", "--schema", schema, "--input", data, "--input", "x.dat", "--output", out}, exitUsage, "x.dat: cannot tell the format"},
		{[]string{"build", "--schema", schema, "--input", "-", "--output", out}, exitUsage, "add --format"},
		{[]string{"build", "--schema", schema, "--input", "-", "--input", "-", "--format", "csv", "--output", out}, exitUsage, "once"},
		{[]string{"build", "--schema", schema, "--input", data, "--output", dir + "/none/x.gmq"}, exitFailed, "--output " + dir + "/none/x.gmq"}, // not line 3
		{[]string{"build", "--schema", schema, "--input", data, "--output", dir}, exitFailed, "is a directory"},
		{[]string{"build", "--schema", schema, "--input", data, "--output", out, "--separator", ";"}, exitFailed, "add --separator ','"},
		{[]string{"build", "--schema", schema, "--input", empty, "--output", dir + "/empty.gmq"}, exitDone, "warning: the input has no records"},
		{[]string{"build", "--schema", sliced, "--input", data, "--output", out, "--skip-bad"}, exitFailed, "d.csv: line 3: attribute \"id\" has 2 values in one object, layout sliced"},
		{[]string{"demo", "--nats-listen", "nonsense"}, exitUsage, "nats-listen"},
		{[]string{"demo", "--admin", "nonsense"}, exitUsage, "admin"},
		{[]string{"build", "--schema", schema, "--input", data, "--output", out, "--skip-bad"}, exitDone, "records skipped: 1"},
		{[]string{"inspect"}, exitUsage, "1 arg"},
		{[]string{"inspect", data}, exitFailed, "not a geniemq index"},
		{[]string{"inspect", "--verify", out}, exitDone, ""},
		{[]string{"serve"}, exitUsage, "index: no index to serve"},
		{[]string{"serve", "--index", "a b=x", "--engine", "gpu"}, exitUsage, `engine: "gpu" is none of auto, cpu, cuda`},
		{[]string{"serve", "--config", config}, exitUsage, "c.yaml:1: admim: is no setting"},
		{[]string{"serve", "--config", dir + "/none.yaml"}, exitUsage, "none.yaml"},
		{[]string{"serve", "--config", config, "--engine", "gpu"}, exitUsage, `engine: "gpu" is none`}, // beside the unknown key
		{[]string{"serve", "--index", "people", "--admin", "off"}, exitFailed, "--index people=people.gmq"},
		{[]string{"serve", "--index", "=" + out}, exitUsage, "has no name"},
		{[]string{"serve", "--index", out, "--admin", taken.Addr().String()}, exitFailed, "choose another address with --admin"},
		{[]string{"serve", "--index", out, "--nats", "nats://127.0.0.1:1", "--admin", "off"}, exitFailed, "is a nats-server listening there?"},
		{[]string{"query"}, exitUsage, "which index?"},
		{[]string{"query", "--index", "x", "--file", "f", "{}"}, exitUsage, "not both"},
		{[]string{"query", "a b", "{}"}, exitUsage, `"a b" cannot be an index`},
		{[]string{"query", "{}"}, exitUsage, "which index?"},
		{[]string{"query", "x", "y", "--k", "-1"}, exitUsage, "--k takes numbers"},
		{[]string{"query", "x", "y", "--json", "--csv"}, exitUsage, "exclude each other"},
		{[]string{"query", "--index", "x", "--nats", "nats://127.0.0.1:1", "{}"}, exitFailed, "is a nats-server listening there?"},
		{[]string{"query", "--index", "x", "--nats", "nats://me:secret@127.0.0.1:1", "{}"}, exitFailed, "nats://xxxxx@127.0.0.1:1"},
		{[]string{"query", "--index", "x", "--file", dir + "/none.jsonl"}, exitFailed, "none.jsonl"},
		{[]string{"query", "--index", "x", "--prefix", "a b", "{}"}, exitUsage, `--prefix: subject prefix "a b"`},
		{[]string{"query", "--index", "x", "--timeout", "0", "{}"}, exitUsage, "--timeout 0s is no time"},
		{[]string{"query", "--index", "x", "--timeout", "-1s", "{}"}, exitUsage, "--timeout -1s is no time"},
		{[]string{"bench", "engine", "--checks", "-1"}, exitUsage, "--checks, --callers and --baseline must not be negative"},
		{[]string{"bench", "engine", "--runs", "-1"}, exitUsage, "must not be negative"},
		{[]string{"bench", "engine", "--callers", "-1"}, exitUsage, "must not be negative"},
		{[]string{"bench", "engine", "--baseline", "-1"}, exitUsage, "must not be negative"},
		{[]string{"bench", "engine", "--objects", "4294967296"}, exitUsage, "--objects is at most 4294967295"},
		{[]string{"bench", "scale", "--axis", "n", "--points", "1,4294967296"}, exitUsage, "--points of axis n are at most 4294967295"},
		{[]string{"bench", "scale", "--axis", "density", "--workload", "w2"}, exitUsage, "use --workload w1 or w4 or w4x100"},
		{[]string{"bench", "scale", "--axis", "density", "--workload", "w3"}, exitUsage, "the items of w3 are no ranges"},
		{[]string{"bench", "scale", "--axis", "density", "--reach", "3"}, exitUsage, "--reach does not go with --axis density"},
		{[]string{"bench", "scale", "--axis", "n", "--objects", "3"}, exitUsage, "--objects does not go with --axis n"},
		{[]string{"bench", "scale", "--axis", "q", "--queries", "3"}, exitUsage, "--queries does not go with --axis q"},
		{[]string{"bench", "scale", "--axis", "k", "--k", "3"}, exitUsage, "--k does not go with --axis k"},
		{[]string{"bench", "engine", "--workload", "w3", "--reach", "3"}, exitUsage, "--reach: the items of w3 are no ranges"},
		{[]string{"bench", "scale", "--checks", "-1"}, exitUsage, "--runs and --checks must not be negative"},
		{[]string{"bench", "scale", "--runs", "-1"}, exitUsage, "must not be negative"},
		{[]string{"bench", "service", "--round", "-1"}, exitUsage, "must not be negative"},
		{[]string{"bench", "service", "--rounds", "-1"}, exitUsage, "must not be negative"},
		{[]string{"bench", "service", "--round-time", "-1s"}, exitUsage, "must not be negative"},
		{[]string{"bench", "service", "--window", "-1"}, exitUsage, "must not be negative"},
		{[]string{"bench", "service", "--load", "-1"}, exitUsage, "must not be negative"},
		{[]string{"bench", "service", "--load-time", "-1s"}, exitUsage, "must not be negative"},
	} {
		got := command(t, "", nil, c.args...)
		if got.code != c.code || !strings.Contains(got.err, c.says) {
			t.Errorf("geniemq %s: exit code %d, want %d; it said:\n%s", strings.Join(c.args, " "), got.code, c.code, got.err)
		}
		if (got.code == exitUsage) != strings.Contains(got.err, "--help' for usage") {
			t.Errorf("geniemq %s: exit code %d and said:\n%s", strings.Join(c.args, " "), got.code, got.err)
		}
	}
}

// Help teaches: every command has an example, every flag that an example uses exists, and no flag has two defaults.
func TestHelp(t *testing.T) {
	c := newCLI(nil, nil, nil, nil)
	flags := regexp.MustCompile(`--[a-z][a-z-]*`)
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Name() == "help" || cmd.Name() == "completion" {
			return
		}
		if cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for line := range strings.SplitSeq(cmd.LocalFlags().FlagUsages(), "\n") {
			if strings.Count(line, "(default") > 1 {
				t.Errorf("%s has a flag with two defaults: %s", cmd.CommandPath(), line)
			}
		}
		for line := range strings.SplitSeq(cmd.Example+"\n"+cmd.Long, "\n") {
			_, after, found := strings.Cut(line, "geniemq ")
			if !found {
				continue
			}
			after, _, _ = strings.Cut(after, "|")
			target, _, err := c.root().Find(strings.Fields(after)[:1])
			if err != nil {
				continue
			}
			if target.HasSubCommands() && len(strings.Fields(after)) > 1 {
				target, _, _ = c.root().Find(strings.Fields(after)[:2])
			}
			for _, name := range flags.FindAllString(after, -1) {
				if name != "--help" && target.Flags().Lookup(name[2:]) == nil {
					t.Errorf("the help of %s mentions %s, which %s has not", cmd.CommandPath(), name, target.CommandPath())
				}
			}
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(c.root())
}

// build, serve and query, through the library's command line, in JSON because nothing is a terminal.
func TestBuildInspectQuery(t *testing.T) {
	dir := t.TempDir()
	schema := write(t, dir, "s.yaml", schemaText)
	one := write(t, dir, "1.csv", "id,age,sex\nann,30,Female\nbob,35,Male\n")
	two := write(t, dir, "2.jsonl", `{"id":"cyd","age":35,"sex":"Female"}`+"\n")
	path := filepath.Join(dir, "people.gmq")
	if got := command(t, "", map[string]string{"GENIEMQ_OUTPUT": path}, "build", "--schema", schema, "--input", one, "--input", two); got.code != 0 ||
		!strings.Contains(got.err, "3 objects, 6 postings") || got.out != "" {
		t.Fatalf("build: %+v", got)
	}
	piped := filepath.Join(dir, "piped.gmq")
	if got := command(t, "id,age,sex\nann,30,Female\nbob,35,Male\n", nil, "build", "--schema", schema, "--format", "csv",
		"--input", "-", "--output", piped); got.code != 0 || !strings.Contains(got.err, "2 objects, 4 postings") {
		t.Errorf("build from the standard input: %+v", got)
	}
	if got := command(t, "id,age,sex\nann,x,Female\n", nil, "build", "--schema", schema, "--format", "csv",
		"--input", "-", "--output", piped); got.code != exitFailed || !strings.Contains(got.err, "standard input: line 2: column age") {
		t.Errorf("a fault in the standard input: %+v", got)
	}

	got := command(t, "", nil, "inspect", "--verify", path)
	var report inspect.Report
	if err := json.Unmarshal([]byte(got.out), &report); err != nil {
		t.Fatalf("inspect: %v in %s", err, got.out)
	}
	if report.Objects != 3 || report.Postings != 6 || report.Verified == nil || !*report.Verified || report.Attributes[1].MaxList != 2 || report.Attributes[1].LongestList != "Female" {
		t.Errorf("inspect: %+v", report)
	}
	if forms := report.GPUMemory; len(forms) < 2 || forms[0] != (inspect.Form{Form: plan.FormTables, Bytes: forms[0].Bytes, Needed: true}) || forms[0].Bytes <= 0 {
		t.Errorf("on a GPU: %+v", forms)
	}
	if table := command(t, "", nil, "inspect", "--json=false", path); !strings.Contains(table.out, "Female") || !strings.Contains(table.out, "bits/posting") || !strings.Contains(table.out, "on a GPU") ||
		!strings.Contains(table.out, "3 in 1 tile\n") {
		t.Errorf("inspect: %s", table.out)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-70] ^= 1
	damaged := write(t, dir, "damaged.gmq", string(data))
	if got := command(t, "", nil, "inspect", "--verify", damaged); got.code != exitFailed || !strings.Contains(got.err, "damaged") {
		t.Errorf("inspect of a damaged file: %+v", got)
	}

	srv, err := service.Start(t.Context(), config.Config{
		Indexes: []config.IndexSource{{Path: path}}, NATSListen: "127.0.0.1:0", DataDir: filepath.Join(dir, "data"), Admin: config.Off,
	}, service.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Shutdown(context.Background())
	env := map[string]string{"GENIEMQ_NATS": srv.NATSURL(), "GENIEMQ_INDEX": "adult=/for/serve.gmq"}
	lines := `{"id":"1","row":{"sex":"Female"},"k":1}
{"id":"2","row":{"seks":1}}

{"id":"3","bad":1}
{"queries":[{"id":"4","row":{"age":30}},{"id":"5","k":-1,"row":{"age":1}},{"id":"6","row":{"age":35}}]}
`
	file := write(t, dir, "q.jsonl", lines)
	want := []string{
		`{"id":"1","index":"people","version":"V","hits":[{"id":0,"key":"ann","count":1}],"mc_k":1,"exact":true,"took_us":T}`,
		`{"id":"2","index":"people","version":"V","error":{"code":"bad_request","message":"attribute \"seks\" is not in index people (it has age, sex)"}}`,
		`{"id":"3","index":"people","error":{"code":"bad_request","message":"unknown field \"bad\""}}`,
		`{"id":"4","index":"people","version":"V","hits":[{"id":0,"key":"ann","count":1}],"mc_k":0,"exact":true,"took_us":T}`,
		`{"id":"5","index":"people","error":{"code":"bad_request","message":"k: must be an integer between 1 and 65536, not -1"}}`,
		`{"id":"6","index":"people","version":"V","hits":[{"id":1,"key":"bob","count":1},{"id":2,"key":"cyd","count":1}],"mc_k":0,"exact":true,"took_us":T}`,
	}
	times := regexp.MustCompile(`"took_us":\{[^}]*\}`)
	for name, run := range map[string]func() outcome{
		"file":   func() outcome { return command(t, "", env, "query", "--index", "people", "--file", file) },
		"stdin":  func() outcome { return command(t, lines, env, "query", "--index", "people") },
		"direct": func() outcome { return command(t, lines, env, "query", "--index", "people", "--direct", "--file", "-") },
		"arguments": func() outcome {
			return command(t, "", env, append([]string{"query", "--index", "people"}, strings.Split(strings.ReplaceAll(strings.TrimSpace(lines), "\n\n", "\n"), "\n")...)...)
		},
	} {
		got := run()
		out := times.ReplaceAllString(strings.ReplaceAll(got.out, report.Version, "V"), `"took_us":T`)
		// A refusal by the client does not know the version that the service would have named.
		out = strings.ReplaceAll(out, `"id":"2","index":"people","error"`, `"id":"2","index":"people","version":"V","error"`)
		if got.code != exitDone || out != strings.Join(want, "\n")+"\n" {
			t.Errorf("%s: exit code %d, said %s\n got:\n%s\nwant:\n%s", name, got.code, got.err, out, strings.Join(want, "\n"))
		}
	}
	table := command(t, "", env, "query", "--index", "people", "--json=false", `{"id":"1","row":{"sex":"Female"},"k":1}`)
	if table.code != 0 || !strings.HasPrefix(table.out, "1 on people: 1 hit, exact, ") || !strings.HasSuffix(table.out, "\n  key  count\n  ann      1\n\n") {
		t.Errorf("table: %+v", table)
	}
	rows := command(t, "", env, "query", "people", "--csv", `{"row":{"sex":"Male","age":{"max":32}},"k":2}`, `{"row":{"seks":1}}`, `{"row":{"sex":"Female"},"k":1}`)
	if want := `query,id,rank,key,object,count,distance,score,similarity,conditions,met,matched
1,,1,ann,0,1,,,,2,1,age
1,,2,bob,1,1,,,,2,1,sex
3,,1,ann,0,1,,,,1,1,sex
`; rows.code != 0 || rows.out != want || !strings.Contains(rows.err, "query 2: bad_request") {
		t.Errorf("CSV: %+v, want %s", rows, want)
	}
	// No answer is another matter than an error as answer, but every query has its line.
	lines = `{"id":"1","row":{"age":1}}
{"queries":[{"id":"2","k":0},{"id":"3","row":{"age":1}}]}
{nonsense
`
	for how, c := range map[string]struct {
		args []string
		code wire.Code
		says string
	}{
		"stored":   {[]string{"--timeout", "100ms"}, wire.DeadlineExceeded, "no answer within --timeout 100ms; is a worker serving index nobody?"},
		"directly": {[]string{"--direct"}, wire.UnknownIndex, "no worker serves"},
	} {
		got := command(t, lines, env, append([]string{"query", "--index", "nobody"}, c.args...)...)
		if got.code != exitFailed || !strings.Contains(got.err, c.says) || !strings.Contains(got.err, "queries have no answer; the first: query 1") {
			t.Errorf("%s: exit code %d, said %s", how, got.code, got.err)
		}
		var codes []wire.Code
		var ids string
		for line := range strings.Lines(got.out) {
			r, err := testkit.DecodeResult(wire.JSON, []byte(line))
			if err != nil || r.Err == nil || r.Index != "nobody" {
				t.Fatalf("%s: %v in %s", how, err, got.out)
			}
			codes, ids = append(codes, r.Err.Code), ids+r.ID
		}
		if want := []wire.Code{c.code, wire.BadRequest, c.code, wire.BadRequest}; !slices.Equal(codes, want) || ids != "123" {
			t.Errorf("%s: %v of queries %s, want %v", how, codes, ids, want)
		}
	}
	// Whoever waits is told so.
	says, saying := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	asking.Go(func() {
		newCLI(nil, io.Discard, saying, func(name string) (string, bool) { v, ok := env[name]; return v, ok }).run(ctx, []string{"query", "nobody", "text"})
		saying.Close()
	})
	said, err := bufio.NewReader(says).ReadString('\n')
	const unanswered = "no answer for 3s, waiting up to --timeout 30s; is a worker serving index nobody?\n"
	if err != nil || said != unanswered {
		t.Errorf("said %q, %v, want %q", said, err, unanswered)
	}
	cancel()
	_, _ = io.Copy(io.Discard, says)
	asking.Wait()
	// Whoever writes the first query late is not told that it has no answer.
	var late bytes.Buffer
	answers := make(chan chan answered)
	asking.Go(func() {
		time.Sleep(quiet + 100*time.Millisecond)
		soon := make(chan answered)
		answers <- soon
		time.Sleep(50 * time.Millisecond)
		soon <- answered{queries: make([]wire.Query, 1), results: make([]wire.Result, 1)}
		close(answers)
	})
	if err := newCLI(nil, io.Discard, &late, nil).printAnswers(t.Context(), queryOptions{json: true}, answers); err != nil || late.Len() > 0 {
		t.Errorf("an answer soon after: %v, said %q", err, late.String())
	}
	asking.Wait()
	// Ctrl-C is one message, whether queries are under way or the next is waited for.
	reader, writer := io.Pipe()
	defer writer.Close()
	for name, in := range map[string]io.Reader{"under way": strings.NewReader(strings.Repeat(lines, 20)), "waiting": reader} {
		var out, errs bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		interrupt := time.AfterFunc(200*time.Millisecond, cancel)
		code := newCLI(in, &out, &errs, func(name string) (string, bool) { v, ok := env[name]; return v, ok }).
			run(ctx, []string{"query", "--index", "nobody"})
		interrupt.Stop()
		cancel()
		if said := strings.TrimPrefix(errs.String(), unanswered); code != exitFailed || said != "geniemq: interrupted after 0 answers\n" { // a busy machine may have come to say the other
			t.Errorf("Ctrl-C %s: exit code %d, said %s", name, code, said)
		}
	}
	missing := filepath.Join(dir, "none.creds")
	for _, name := range []string{"creds", "ca"} {
		got := command(t, "", env, "query", "--index", "people", "--nats-"+name, missing, `{"row":{"age":1}}`)
		if got.code != exitFailed || !strings.Contains(got.err, missing) || strings.Contains(got.err, "is the server running") {
			t.Errorf("--nats-%s: %+v", name, got)
		}
	}
	if got := command(t, "", env, "query", "--index", "nobody", "--direct", `{"row":{"age":1}}`); got.code != exitFailed || !strings.Contains(got.err, "no worker serves") {
		t.Errorf("an index nobody serves, directly: %+v", got)
	}
	if got := command(t, "", env, "query", "--index", "nobody", "--timeout", "100ms", `{"row":{"age":1}}`); got.code != exitFailed || !strings.Contains(got.err, "query 1") {
		t.Errorf("an index nobody serves: %+v", got)
	}
}

// The demo runs the main job with nothing but what is in the binary, and leaves nothing behind.
func TestDemo(t *testing.T) {
	raced.Skip(t, "hundreds of thousands of words, served as in tests of the service")
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	got := command(t, "", map[string]string{"GENIEMQ_NATS_LISTEN": "127.0.0.1:0", "GENIEMQ_ADMIN": "off"}, "demo", "--once")
	if got.code != exitDone {
		t.Fatalf("%+v", got)
	}
	for _, part := range []string{
		"engine: c", "indexed 663473 English words", "indexed 118 chemical elements", "definitely", "separate", "Oxygen (3), Fluorine (3), Neon (3)",
		"Mercury (4)", "Silver (3), Gold (3), Copper (2)",
	} {
		if !strings.Contains(got.out, part) {
			t.Errorf("the demo does not show %q:\n%s", part, got.out)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("the demo leaves %v", left)
	}
}

var update = flag.Bool("update", false, "write docs/configuration.md anew")

// The page about the settings says what the program does.
func TestConfigurationPage(t *testing.T) {
	const path = "../../docs/configuration.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- settings: go test ./cmd/geniemq -run ConfigurationPage -update -->\n", "<!-- end of settings -->"
	head, rest, found := strings.Cut(string(page), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has not the marks around the table", path)
	}
	var table strings.Builder
	table.WriteString("| flag and key of the file | environment | default | what it is |\n| --- | --- | --- | --- |\n")
	newCLI(nil, nil, nil, nil).serveCommand().Flags().VisitAll(func(f *pflag.Flag) {
		value := f.DefValue
		switch f.Name {
		case "config": // is no key of the file it names
			return
		case "workers": // depends on the machine
			value = "the cores"
		case "data-dir": // on the user
			value = "~/.local/share/geniemq"
		}
		if value == "" || value == "[]" || value == "0" || value == "false" {
			value = ""
		} else {
			value = "`" + value + "`"
		}
		_, usage := pflag.UnquoteUsage(f)
		fmt.Fprintf(&table, "| `%s` | `%s` | %s | %s |\n", f.Name, config.EnvName(f.Name), value, usage)
	})
	want := head + begin + table.String() + end + tail
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if string(page) != want {
		t.Errorf("%s is not what the program does; run this test with -update", path)
	}
}

// The demo leaves the usual ports to serve and query, whose defaults they are, so that both can be tried side by side.
func TestDemoLeavesUsualPorts(t *testing.T) {
	flags := newCLI(nil, nil, nil, nil).demoCommand().Flags()
	for _, name := range []string{"nats-listen", "admin"} {
		if f := flags.Lookup(name); f.DefValue != "127.0.0.1:0" {
			t.Errorf("--%s is %s", name, f.DefValue)
		}
	}
}
