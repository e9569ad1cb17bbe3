package main

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/geniemq/geniemq/internal/testkit/raced"
	"github.com/geniemq/geniemq/internal/testkit/seeded"
)

// randomSecret makes a secret of which no five characters are likely to be in any other text.
func randomSecret(random *rand.Rand) string {
	const letters = "ABCDEFGHJKLMNPQRSTVWXYZabcdefghjkmnpqrstvwxyz23456789"
	const special = "@/:%#?& ,\"'\\[]{}!$+=;^~|é"
	secret := make([]rune, 0, 20)
	for range 16 {
		if marks := []rune(special); random.IntN(8) == 0 {
			secret = append(secret, marks[random.IntN(len(marks))])
		}
		secret = append(secret, rune(letters[random.IntN(len(letters))]))
	}
	return string(secret)
}

// leak is a piece of a secret that is in a text, or "".
func leak(text, secret string) string {
	const piece = 5
	for i := 0; i+piece <= len(secret); i++ {
		if strings.Contains(text, secret[i:i+piece]) {
			return secret[i : i+piece]
		}
	}
	return ""
}

// Nothing that a command prints holds a secret of the settings, whether they are right or wrong or in the wrong place.
func TestNoSecretInOutput(t *testing.T) {
	raced.Skip(t, "it reads what commands print")
	random := seeded.Rand(t)
	dir := t.TempDir()
	schema := write(t, dir, "s.yaml", schemaText)
	data := write(t, dir, "d.csv", "id,age,sex\nann,30,F\n")
	index := filepath.Join(dir, "x.gmq")
	if got := command(t, "", nil, "build", "--schema", schema, "--input", data, "--output", index); got.code != 0 {
		t.Fatal(got.err)
	}
	const host = "127.0.0.1:1" // where nothing listens
	urls := []func(secret string) string{
		func(s string) string { return "nats://" + s + "@" + host },
		func(s string) string { return "nats://me:" + s + "@" + host },
		func(s string) string { return "nats://" + host + ",nats://me:" + s + "@" + host },
		func(s string) string { return "nats://me:" + s + "@" + host + "/?x#y" },
		func(s string) string { return "nats://me:" + s + "@ho st" },
		func(s string) string { return (&url.URL{Scheme: "nats", User: url.User(s), Host: host}).String() },
		func(s string) string {
			return (&url.URL{Scheme: "tls", User: url.UserPassword("me", s), Host: host}).String()
		},
		func(s string) string { return "bad scheme://" + s + "@" + host },
	}
	plain := len(urls)
	urls = append(urls, func(s string) string { return s + "@" + host }) // a URL for the setting nats alone
	serve := []string{"serve", "--index", index, "--admin", "off", "--log-level", "debug", "--nats-listen", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "data")}
	type attempt struct {
		env  map[string]string
		args []string
	}
	wrong := func(u string) []attempt { // in places that are for something else
		file := write(t, dir, "c.yaml", "ack-wait: "+fmt.Sprintf("%q", u)+"\n")
		key := write(t, dir, "k.yaml", fmt.Sprintf("%q", "nats "+u)+": 1\n")
		return []attempt{
			{nil, append(serve[:len(serve):len(serve)], u)},
			{nil, append(serve[:len(serve):len(serve)], "--workers", u)},
			{nil, append(serve[:len(serve):len(serve)], "--prefix", u)},
			{nil, append(serve[:len(serve):len(serve)], "--natz="+u)},
			{nil, append(serve[:len(serve):len(serve)], "--config", u)},
			{nil, append(serve[:len(serve):len(serve)], "--config", file)},
			{nil, append(serve[:len(serve):len(serve)], "--config", key)},
			{nil, append(serve[:len(serve):len(serve)], "--admin", u)},
			{nil, append(serve[:len(serve):len(serve)], "--index", u)},
			{nil, append(serve[:len(serve):len(serve)], "--log-level", u)},
			{nil, append(serve[:len(serve):len(serve)], "--gpu-memory", u)},
			{map[string]string{"GENIEMQ_WORKERS": u}, serve},
			{map[string]string{"GENIEMQ_REPLY_ALLOW": strings.ReplaceAll(u, ",", "") + "..x"}, serve},
			{map[string]string{"GENIEMQ_TIMEOUT": u}, []string{"query", "--index", "x", "{}"}},
			{nil, []string{"query", "--index", u, "{}"}},
			{nil, []string{"query", "--index", "x", "--file", u}},
			{nil, []string{"demo", u}},
			{nil, []string{"demo", "--nats-listen", u}},
			{nil, []string{"inspect", u}},
			{nil, []string{"build", "--schema", u, "--input", data, "--output", index}},
			{nil, []string{u}},
		}
	}
	for round := range 6 {
		for form := range urls {
			secret := randomSecret(random)
			u := urls[form](secret)
			file := write(t, dir, "nats.yaml", "nats: "+fmt.Sprintf("%q", u)+"\n")
			attempts := []attempt{
				{nil, append(serve[:len(serve):len(serve)], "--nats", u)},
				{nil, append(serve[:len(serve):len(serve)], "--config", file)},
				{map[string]string{"GENIEMQ_NATS": u}, serve},
				{nil, []string{"query", "--index", "x", "--nats", u, "{}"}},
				{map[string]string{"GENIEMQ_NATS": u}, []string{"query", "--index", "x", "{}"}},
				{nil, append(serve[:len(serve):len(serve)], "--nats", "nats://"+host, "--nats-token-file", secret)},
				{nil, append(serve[:len(serve):len(serve)], "--nats", "nats://"+host, "--nats-user", "me", "--nats-password-file", secret)},
				{nil, []string{"query", "--index", "x", "--nats-nkey-file", secret, "{}"}},
				{nil, []string{"query", "--index", "x", "--nats", u, "--nats-creds", "x.creds", "{}"}},
			}
			if round == 0 {
				attempts = append(attempts, attempt{nil, []string{"bench", "service", "--objects", "50", "--queries", "4", "--workload", "w3", "--nats", u}})
			}
			if form < plain {
				attempts = append(attempts, wrong(u)...)
			}
			for _, a := range attempts {
				got := command(t, "", a.env, a.args...)
				if got.code == exitDone {
					t.Fatalf("geniemq %q %v has succeeded", a.args, a.env)
				}
				if piece := leak(got.out+got.err, secret); piece != "" {
					t.Errorf("geniemq %q %v shows %q of %q:\n%s%s", a.args, a.env, piece, secret, got.out, got.err)
				}
			}
			got := command(t, "", nil, attempts[0].args...)
			if !strings.Contains(got.err, "warning: --nats holds a secret") || !strings.Contains(got.err, "nats") {
				t.Errorf("geniemq %q does not warn of a secret on the command line:\n%s", attempts[0].args, got.err)
			}
		}
	}
}
