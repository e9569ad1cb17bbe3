package tests

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/internal/testkit"
	"github.com/geniemq/geniemq/internal/testkit/program"
	"github.com/geniemq/geniemq/service"
	"github.com/geniemq/geniemq/service/admin"
	"github.com/geniemq/geniemq/service/config"
)

// An embedded server with a token and a certificate lets in its own worker and who has the token, speaks TLS with all of them, and takes a certificate
// that was renewed in its file.
func TestEmbeddedServerLetsIn(t *testing.T) {
	ofProcesses(t)
	t.Parallel()
	dir, command := t.TempDir(), program.Path(t)
	const token = "t0ken-of-the-server"
	tokenFile := writeFile(t, dir, "token", []byte(token+"\n"))
	ours := newAuthority(t, dir, "ours")
	names := func() *x509.Certificate {
		return &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	}
	cert, key := ours.issue("server", names())
	ca := filepath.Join(dir, "ours-ours.crt")
	srv, err := service.Start(t.Context(), withServer(t, config.Config{
		Indexes: []config.IndexSource{{Path: buildFile(t, dir, "people.csv", peopleSchema, peopleData)}}, Admin: config.Off,
		NATSListenTokenFile: tokenFile, NATSListenCert: cert, NATSListenKey: key,
	}), service.Options{Logger: testLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := srv.Shutdown(within(t)); err != nil {
			t.Error(err)
		}
	}()
	if !strings.HasPrefix(srv.NATSURL(), "tls://") || strings.Contains(srv.NATSURL(), token) {
		t.Errorf("the address is %s", srv.NATSURL())
	}
	at := strings.TrimPrefix(srv.NATSURL(), "tls://")
	query := func(flags ...string) (string, int) {
		cmd := exec.CommandContext(within(t), command, append(append([]string{"query", "--index", "people"}, flags...), `{"row":{"age":30}}`)...)
		text, _ := cmd.CombinedOutput()
		return string(text), cmd.ProcessState.ExitCode()
	}
	for _, way := range [][]string{nil, {"--direct"}} {
		out, code := query(append(way, "--nats", "tls://"+at, "--nats-ca", ca, "--nats-token-file", tokenFile)...)
		if code != 0 || !strings.Contains(out, `"key":"ann"`) {
			t.Errorf("%v: %d %s", way, code, out)
		}
	}
	for name, flags := range map[string][]string{
		"no token":         {"--nats", "tls://" + at, "--nats-ca", ca},
		"another token":    {"--nats", "tls://" + at, "--nats-ca", ca, "--nats-token-file", writeFile(t, dir, "other", []byte("other"))},
		"no authority":     {"--nats", "tls://" + at, "--nats-token-file", tokenFile},
		"a secret as file": {"--nats", "tls://" + at, "--nats-ca", ca, "--nats-token-file", token},
	} {
		if out, code := query(flags...); code == 0 || strings.Contains(out, token) {
			t.Errorf("with %s: %d %s", name, code, out)
		}
	}

	newCert, newKey := ours.issue("renewed", names())
	for from, to := range map[string]string{newCert: cert, newKey: key} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	shown := ""
	nc, err := nats.Connect("tls://"+at, nats.Token(token), nats.Secure(&tls.Config{InsecureSkipVerify: true, VerifyConnection: func(state tls.ConnectionState) error {
		shown = state.PeerCertificates[0].Subject.CommonName
		return nil
	}}))
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
	if shown != "renewed" {
		t.Errorf("the server shows the certificate %q", shown)
	}
}

// The admin server with a token: nothing but health without it, everything with it, by header or as a password; and swaps by the command.
func TestAdminToken(t *testing.T) {
	t.Parallel()
	dir, command := t.TempDir(), program.Path(t)
	file := writeFile(t, dir, "token", []byte("s3cret\n"))
	r := start(t, config.Config{Admin: "127.0.0.1:0", AdminTokenFile: file, Pprof: true,
		Indexes: []config.IndexSource{{Path: buildFile(t, dir, "people.csv", peopleSchema, peopleData)}}}, service.Options{})
	testkit.Eventually(t, r.ready)
	ask := func(path, token string, basic bool) int {
		request, err := http.NewRequestWithContext(within(t), http.MethodGet, r.srv.AdminURL()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if basic {
			request.SetBasicAuth("anybody", token)
		} else if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode
	}
	for _, path := range []string{"/", "/metrics", "/debug/pprof/", "/swap", "/nothing", "/healthz/"} {
		for _, wrong := range []int{ask(path, "", false), ask(path, "s3cre", false), ask(path, "", true), ask(path, "S3cret", true)} {
			if wrong != http.StatusUnauthorized {
				t.Errorf("%s without the token: %d", path, wrong)
			}
		}
	}
	for _, path := range []string{"/", "/metrics", "/debug/pprof/"} {
		if header, password := ask(path, "s3cret", false), ask(path, "s3cret", true); header != http.StatusOK || password != http.StatusOK {
			t.Errorf("%s with the token: %d, %d", path, header, password)
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if code := ask(path, "", false); code == http.StatusUnauthorized { // a busy machine is not always ready
			t.Errorf("%s: %d", path, code)
		}
	}
	writeFile(t, dir, "token", []byte("n3w\n"))
	if old, now := ask("/metrics", "s3cret", false), ask("/metrics", "n3w", false); old != http.StatusUnauthorized || now != http.StatusOK {
		t.Errorf("after the token was changed: %d with the old one, %d with the new one", old, now)
	}
	addr := strings.TrimPrefix(r.srv.AdminURL(), "http://")
	if _, err := (admin.Swap{Index: "people", File: filepath.Join(dir, "people.gmq")}).Ask(within(t), addr, ""); err == nil || !strings.Contains(err.Error(), "--admin-token-file") {
		t.Errorf("a swap without the token: %v", err)
	}
	swap := exec.CommandContext(within(t), command, "swap", "people", filepath.Join(dir, "people.gmq"), "--admin", addr, "--admin-token-file", file)
	if out, err := swap.CombinedOutput(); err != nil {
		t.Errorf("a swap with the token: %v\n%s", err, out)
	}
}

// A worker and those who ask take a context of the nats command: by its name, and by its file.
func TestNATSContext(t *testing.T) {
	ofProcesses(t)
	t.Parallel()
	server := startServer(t, `authorization { users: [ { user: "worker", password: "p4ssword" } ] }`)
	dir, home := t.TempDir(), t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, "nats", "context"), 0o700); err != nil {
		t.Fatal(err)
	}
	context := func(name string, of map[string]string) string {
		text, err := json.Marshal(of)
		if err != nil {
			t.Fatal(err)
		}
		return writeFile(t, filepath.Join(home, "nats", "context"), name+".json", text)
	}
	file := context("prod", map[string]string{"description": "production", "url": server.url, "user": "worker", "password": "p4ssword"})
	context("wrong", map[string]string{"url": server.url, "user": "worker", "password": "wr0ng"})
	env := []string{"XDG_CONFIG_HOME=" + home}
	worker := runWith(t, env, "serve", "--index", buildFile(t, dir, "people.csv", peopleSchema, peopleData), "--admin", "off", "--context", "prod")
	if at := worker.says("NATS"); at != server.url {
		t.Errorf("the worker is at %s, not %s", at, server.url)
	}
	query := func(name string, flags ...string) (string, error) {
		cmd := exec.CommandContext(within(t), program.Path(t), append([]string{"query", "--index", "people", "--context", name, `{"row":{"age":30}}`}, flags...)...)
		cmd.Env = append(os.Environ(), env...)
		text, err := cmd.CombinedOutput()
		return string(text), err
	}
	for _, name := range []string{"prod", file} {
		if out, err := query(name); err != nil || !strings.Contains(out, `"key":"ann"`) {
			t.Errorf("by %s: %v %s", name, err, out)
		}
	}
	for name, c := range map[string]struct {
		flags []string
		says  string
	}{
		"wrong":   {nil, "Authorization Violation"},
		"unknown": {nil, "unknown context"},
		"prod":    {[]string{"--nats", "nats://127.0.0.1:1"}, "leave out nats"},
	} {
		if out, err := query(name, c.flags...); err == nil || !strings.Contains(out, c.says) || strings.Contains(out, "p4ss") || strings.Contains(out, "wr0ng") {
			t.Errorf("%s: %v %s", name, err, out)
		}
	}
	if said := fmt.Sprint(worker.stderr.String()); strings.Contains(said, "p4ssword") {
		t.Error("the log shows the password")
	}
}

// Every command that asks a server takes a context, though it has a default address: from the command line and from the environment. One that serves a
// file itself goes by neither.
func TestNATSContextOfCommands(t *testing.T) {
	ofProcesses(t)
	t.Parallel()
	server := startServer(t, `authorization { users: [ { user: "worker", password: "p4ssword" } ] }`)
	dir := t.TempDir()
	context := func(name, password string) string {
		text, err := json.Marshal(map[string]string{"url": server.url, "user": "worker", "password": password})
		if err != nil {
			t.Fatal(err)
		}
		return writeFile(t, dir, name+".json", text)
	}
	right, wrong := context("right", "p4ssword"), context("wrong", "wr0ng")
	const named, rows = "name: people\nkey: id\ncolumns: [{name: age, type: number, edges: exact}, {name: name, type: text}]\n", "id,age,name\n1,30,ann miller\n2,35,anna miller\n"
	index, data := buildFile(t, dir, "people.csv", named, rows), writeFile(t, dir, "people.csv", []byte(rows))
	runWith(t, nil, "serve", "--index", index, "--admin", "off", "--context", right).says("NATS")
	for _, c := range []struct {
		environment bool
		args        []string
	}{
		{false, []string{"admin", "streams", "--context", right}},
		{true, []string{"admin", "streams"}},
		{false, []string{"push", index, "--context", right}},
		{true, []string{"push", buildFile(t, t.TempDir(), "people.csv", named, rows+"3,41,fay\n")}},
		{false, []string{"versions", "--context", right}},
		{true, []string{"versions"}},
		{false, []string{"rollback", "people", "--context", right}},
		{false, []string{"match", data, "--index", "people", "--context", right}},
		{true, []string{"match", data, "--index", "people"}},
		{true, []string{"dead", "list"}},
		{true, []string{"query", "--index", "people", `{"text":"ann"}`}},
	} {
		for _, good := range []bool{true, false} {
			cmd := exec.CommandContext(within(t), program.Path(t), c.args...)
			at := right
			if !good {
				at = wrong
			}
			if cmd.Env = os.Environ(); c.environment {
				cmd.Env = append(cmd.Env, config.EnvName("context")+"="+at)
			} else if !good {
				continue
			}
			if text, err := cmd.CombinedOutput(); (err == nil) != good || !good && !strings.Contains(string(text), "Authorization Violation") {
				t.Errorf("%v, good %v: %v %s", c.args, good, err, text)
			}
		}
	}
	for _, name := range []string{"context", "nats-creds"} { // another's server is no matter of a command that starts its own
		cmd := exec.CommandContext(within(t), program.Path(t), "match", data, "--index", "people="+index)
		cmd.Env = append(os.Environ(), config.EnvName(name)+"="+wrong)
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("match by itself beside %s: %v %s", config.EnvName(name), err, text)
		}
	}
}
