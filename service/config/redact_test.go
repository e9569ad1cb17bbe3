package config

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// The forms in which a secret reaches texts: settings, which are lists of servers, and errors and log lines, which quote them.
var (
	serverForms = []func(secret string) string{
		func(s string) string { return "nats://" + s + "@host:4222" },
		func(s string) string { return "nats://user:" + s + "@host:4222" },
		func(s string) string { return "tls://" + s + ":word@[::1]:4222/" },
		func(s string) string { return "nats://a:4222, nats://" + s + "@b:4222" },
		func(s string) string { return "nats://" + s + "@a,nats://user:" + s + "@b" },
		func(s string) string { return "nats://" + s + "@a:1,b:2" },
		func(s string) string { return s + "@host:4222" },
		func(s string) string { return "a:4222,user:" + s + "@b:4222" },
		func(s string) string { return "nats://user:" + s + "@host/path?token=1#x" },
		func(s string) string { return "nats://user:" + s + "@ho st" },
		func(s string) string { return (&url.URL{Scheme: "nats", User: url.User(s), Host: "host"}).String() },
		func(s string) string {
			return (&url.URL{Scheme: "wss", User: url.UserPassword("user", s), Host: "host:1"}).String()
		},
	}
	textForms = []func(servers string) string{
		func(s string) string { return s },
		func(s string) string { return fmt.Sprintf("parse %q: net/url: invalid character in host name", s) },
		func(s string) string { return fmt.Sprintf("invalid argument %q for \"--workers\" flag\nand more", s) },
		func(s string) string {
			text, _ := json.Marshal(map[string]string{"error": "dialling " + s, "msg": "NATS"})
			return string(text)
		},
		func(s string) string { return "url=" + s + " error:" + s },
	}
)

// What is shown does not depend on the secret, whatever it is, so that nothing of it is shown.
func FuzzRedact(f *testing.F) {
	for _, secret := range []string{"s3cr3t", "p@ss", "a/b", "a:b", "50%", "x y", "q?r#s", "\"quoted\"", "a,b", "host", "@", "://", "1234", "é\x80", "{[<", "\\"} {
		f.Add(secret)
	}
	another := regexp.MustCompile("[\\s,;\"'`=(<\\[\\\\]*[A-Za-z][A-Za-z0-9+.-]*://") // begins what may be a server of its own
	const other = "an0ther"
	var wantServers []string
	var wantTexts [][]string
	for _, form := range serverForms {
		wantServers = append(wantServers, RedactServers(form(other)))
		var texts []string
		for _, text := range textForms {
			texts = append(texts, Redact(text(form(other))))
		}
		wantTexts = append(wantTexts, texts)
	}
	f.Fuzz(func(t *testing.T, secret string) {
		if secret == "" || another.MatchString(secret) || strings.ContainsAny(secret, "\n\r") {
			t.Skip("no secret that stays within its URL")
		}
		for i, form := range serverForms {
			if i == 7 && strings.HasPrefix(secret, "//") {
				continue // "user:" becomes a scheme
			}
			got, want := RedactServers(form(secret)), wantServers[i]
			if got != want {
				t.Errorf("servers %d: %q is shown as %q, with another secret as %q", i, form(secret), got, want)
			}
			if again := RedactServers(got); again != got {
				t.Errorf("servers %d: %q is shown as %q the second time", i, got, again)
			}
			if i == 6 || i == 7 {
				continue // without a scheme it is known for what it is by its place alone
			}
			for j, text := range textForms {
				got, want := Redact(text(form(secret))), wantTexts[i][j]
				if got != want {
					t.Errorf("text %d of servers %d: %q is shown as %q, with another secret as %q", j, i, text(form(secret)), got, want)
				}
			}
		}
	})
}

// What is no secret is shown.
func TestRedactLeavesTheRest(t *testing.T) {
	for in, want := range map[string]string{
		"":                                      "",
		"nats://127.0.0.1:4222":                 "nats://127.0.0.1:4222",
		"nats://a:4222,nats://b:4222":           "nats://a:4222,nats://b:4222",
		"a:4222, b:4222":                        "a:4222,b:4222",
		"nats://me:p@ss@a:4222,nats://t@b:4222": "nats://xxxxx@a:4222,nats://xxxxx@b:4222",
		"wss://[fe80::1%eth0]:443/":             "wss://[fe80::1%eth0]:443/",
		"nats://user:password":                  "nats://xxxxx", // without its @host
	} {
		if got := RedactServers(in); got != want {
			t.Errorf("servers %q are shown as %q, want %q", in, got, want)
		}
	}
	const seed = "SUAOTBNEUZDFIAJBSNGAN3DUK5VLDHIJ2FY2C5IFW4SYUNRUR5ZGS4H3CY"
	for in, want := range map[string]string{
		"mail ann@example.com to column e@x":              "mail ann@example.com to column e@x",
		"NATS   nats://127.0.0.1:4222":                    "NATS   nats://127.0.0.1:4222",
		"open " + seed + ": no such file":                 "open xxxxx: no such file",
		"Bearer eyJhbGciOiJFZDI1NTE5In0.eyJzdWIi.c2ln ok": "Bearer xxxxx ok",
	} {
		if got := Redact(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
}

// Servers that the NATS client would understand in another way, or whose errors it would quote, are refused, without a word of them.
func TestServersAreChecked(t *testing.T) {
	for servers, good := range map[string]bool{
		"nats://127.0.0.1:4222":             true,
		"localhost:4222":                    true,
		"nats://a:4222, tls://t@b:4222":     true,
		"nats://me:pa%40ss%2F%3A%25@host":   true,
		"tok@host":                          true,
		"nats://tok@a,b:4222":               true,
		"nonsense":                          false,
		"nats://":                           false,
		"nats://me:sec/ret@host":            false,
		"nats://sec#ret@host":               false,
		"nats://sec?ret@host":               false,
		"nats://me:sec ret@host":            false,
		"nats://me:sec%ret@host":            false,
		"nats://me:sec,ret@host":            false,
		"nats://sec,ret@host":               false,
		"nats://me:secret":                  false,
		"nats://a:4222,nats://me:sec/ret@b": false,
	} {
		err := CheckServers(servers)
		if (err == nil) != good {
			t.Errorf("%s: %v", servers, err)
		}
		if err != nil && (strings.Contains(err.Error(), "sec") || strings.Contains(err.Error(), "ret@")) {
			t.Errorf("%s: %v", servers, err)
		}
	}
}
