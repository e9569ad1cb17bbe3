package tests

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/internal/testkit/program"
)

// The pair of a user's nkey, made for this test, and another user's public key.
const (
	nkeySeed   = "SUAMDW37XRXMZ7Q7BTJYFDSCGHMHSRXHHPMYEMWQRTVXEKTUMGXK6G5WWU"
	nkeyPublic = "UABBABDOJYSURCPHNDD76CK7Z5GBAY3P3A6TO275BG4QN6JC7I47YABX"
	nkeyOther  = "UBIHMM5SKWUWI7KJNLMKNDFFUA6CCGFXYRPEF3E5XDDHPTHXWSL4VICW"
)

// A worker and those who ask show the secret nowhere by which a server lets them in: not on their outputs with the log at
// debug, not on the admin page, its metrics and profiles, neither while they work nor when the server goes away, comes back
// and lets them in no more. And each way to give the secret works.
func TestSecretsStayUnseen(t *testing.T) {
	ofProcesses(t)
	t.Parallel()
	const token, password = "tok3n-Zq7vW", "p4ss-Xk9rT"
	dir := t.TempDir()
	file := func(name, text string) string { return writeFile(t, dir, name, []byte(text)) }
	tokenFile, passwordFile, seedFile := file("token", token+"\n"), file("password", password+"\n"), file("seed", nkeySeed+"\n")
	index := buildFile(t, dir, "people.csv", peopleSchema, peopleData)
	const (
		byToken = `authorization { token: "` + token + `" }`
		byUser  = `authorization { users: [ { user: "worker", password: "` + password + `" } ] }`
		byNKey  = `authorization { users: [ { nkey: ` + nkeyPublic + ` } ] }`
	)
	for _, c := range []struct {
		name, server string
		secret       string
		flags        []string // %s is host and port
		env          []string
	}{
		{"token in the URL", byToken, token, []string{"--nats", "nats://" + token + "@%s"}, nil},
		{"token in a list", byToken, token, []string{"--nats", "nats://" + token + "@127.0.0.1:1,nats://" + token + "@%s"}, nil},
		{"token in the environment", byToken, token, nil, []string{"GENIEMQ_NATS=nats://" + token + "@%s"}},
		{"token in a file", byToken, token, []string{"--nats", "nats://%s", "--nats-token-file", tokenFile}, nil},
		{"password in the URL", byUser, password, []string{"--nats", "nats://worker:" + password + "@%s"}, nil},
		{"password in a file", byUser, password, []string{"--nats", "nats://%s", "--nats-user", "worker", "--nats-password-file", passwordFile}, nil},
		{"seed in a file", byNKey, nkeySeed, []string{"--nats", "nats://%s", "--nats-nkey-file", seedFile}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := startServer(t, c.server)
			at := fmt.Sprintf("127.0.0.1:%d", server.port)
			var env []string
			for _, variable := range c.env {
				env = append(env, strings.ReplaceAll(variable, "%s", at))
			}
			var flags []string
			for _, flag := range c.flags {
				flags = append(flags, strings.ReplaceAll(flag, "%s", at))
			}
			unseen := func(what, text string) {
				t.Helper()
				if strings.Contains(text, c.secret) {
					t.Errorf("%s shows the secret:\n%s", what, text)
				}
			}
			worker := runWith(t, env, append([]string{"serve", "--index", index, "--admin", "127.0.0.1:0", "--pprof", "--log-level", "debug"}, flags...)...)
			admin := worker.says("admin")
			if shown := worker.says("NATS"); shown != "nats://"+at {
				t.Errorf("the server is shown as %s", shown)
			}
			pages := func() {
				for _, page := range []string{"/", "/metrics", "/healthz", "/readyz", "/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2"} {
					reply, err := http.Get(admin + page)
					if err != nil {
						t.Fatal(err)
					}
					text, err := io.ReadAll(reply.Body)
					reply.Body.Close()
					if err != nil || len(text) == 0 {
						t.Fatalf("%s: %v", page, err)
					}
					unseen(page, string(text))
				}
			}
			ask := func(more ...string) (out string, code int) {
				query := exec.CommandContext(within(t), program.Path(t), append(append([]string{"query", "--index", "people"}, flags...), more...)...)
				query.Env = append(os.Environ(), env...)
				text, _ := query.CombinedOutput()
				unseen("query", string(text))
				return string(text), query.ProcessState.ExitCode()
			}
			pages()
			for _, way := range [][]string{{`{"row":{"age":30}}`}, {"--direct", `{"row":{"age":30}}`}} {
				if out, code := ask(way...); code != 0 || !strings.Contains(out, `"key":"ann"`) {
					t.Errorf("query %v ends with %d: %s", way, code, out)
				}
			}
			if c.env == nil && strings.HasSuffix(c.name, "file") {
				if commandLine, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", worker.cmd.Process.Pid)); err == nil { // Linux
					unseen("the list of processes", string(commandLine))
				}
				if strings.Contains(worker.stderr.String(), "warning:") {
					t.Errorf("a file is warned of:\n%s", worker.stderr)
				}
			} else if warned := strings.Contains(worker.stderr.String(), "warning: --nats holds a secret"); warned != (c.env == nil) {
				t.Errorf("warned of a secret on the command line: %v", warned)
			}

			// The server goes away, and comes back with another secret.
			server.kill()
			testkit.Eventually(t, func() error {
				if strings.Contains(worker.stderr.String(), "connection to NATS lost") {
					return nil
				}
				return fmt.Errorf("the worker says\n%s", worker.stderr)
			})
			pages()
			if out, code := ask("{}"); code != 1 || !strings.Contains(out, "is a nats-server listening there?") {
				t.Errorf("query without a server ends with %d: %s", code, out)
			}
			conf, err := os.ReadFile(server.conf)
			if err != nil {
				t.Fatal(err)
			}
			other := bytes.ReplaceAll(bytes.ReplaceAll(conf, []byte(token), []byte("other")), []byte(password), []byte("other"))
			other = bytes.ReplaceAll(other, []byte(nkeyPublic), []byte(nkeyOther))
			if err := os.WriteFile(server.conf, other, 0o600); err != nil {
				t.Fatal(err)
			}
			server.start()
			if out, code := ask("{}"); code != 1 || !strings.Contains(out, "nats-token-file") {
				t.Errorf("query with the wrong secret ends with %d: %s", code, out)
			}
			testkit.Eventually(t, func() error {
				if strings.Contains(strings.ToLower(worker.stderr.String()), "authorization violation") {
					return nil
				}
				return fmt.Errorf("the worker says\n%s", worker.stderr)
			})
			pages()
			refused := exec.CommandContext(within(t), program.Path(t), append([]string{"serve", "--index", index, "--admin", "off"}, flags...)...)
			refused.Env = append(os.Environ(), env...)
			out, err := refused.CombinedOutput()
			if err == nil {
				t.Error("a worker starts with the wrong secret")
			}
			unseen("serve", string(out))

			// And with the one that is in the files again.
			server.kill()
			if err := os.WriteFile(server.conf, conf, 0o600); err != nil {
				t.Fatal(err)
			}
			server.start()
			if out, code := ask(`{"row":{"age":30}}`); code != 0 || !strings.Contains(out, `"key":"ann"`) {
				t.Errorf("query ends with %d: %s", code, out)
			}
			unseen("the worker", worker.stderr.String())
		})
	}
}

// A secret in a file that changes is the one that is used when the connection is made anew, however late it changes.
func TestSecretFileChanges(t *testing.T) {
	ofProcesses(t)
	t.Parallel()
	dir := t.TempDir()
	tokenFile := filepath.Join(dir, "token")
	write := func(token string) {
		if err := os.WriteFile(tokenFile, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	server := startServer(t, `authorization { token: "first" }`)
	worker := run(t, "serve", "--index", buildFile(t, dir, "people.csv", peopleSchema, peopleData), "--admin", "off",
		"--nats", server.url, "--nats-token-file", tokenFile)
	worker.says("NATS")
	server.kill()
	conf, err := os.ReadFile(server.conf)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(server.conf, bytes.ReplaceAll(conf, []byte("first"), []byte("second")), 0o600); err != nil {
		t.Fatal(err)
	}
	server.start()
	testkit.Eventually(t, func() error {
		if n := strings.Count(strings.ToLower(worker.stderr.String()), "authorization violation"); n < 12 { // by three connections
			return fmt.Errorf("refused %d times; the worker says\n%s", n, worker.stderr)
		}
		return nil
	})
	write("second")
	nc, _ := connect(t, strings.Replace(server.url, "//", "//second@", 1))
	r := &running{t: t, nc: nc}
	testkit.Eventually(t, func() error { _, err := nc.Request("genie.search.people", []byte("{}"), patience); return err })
	r.works()
}
