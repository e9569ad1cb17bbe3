package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/geniemq/geniemq/gpuexec"
)

// resolve runs the whole way from arguments, environment and file to a Config.
func resolve(t *testing.T, args []string, env map[string]string, file string) (Config, error) {
	t.Helper()
	var cfg Config
	cfg.EnsureDefaults()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	cfg.Flags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	path := ""
	if file != "" {
		path = filepath.Join(t.TempDir(), "geniemq.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := Resolve(fs, func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}, path)
	return cfg, err
}

func TestConfigPrecedence(t *testing.T) {
	file := "admin: 1.1.1.1:1\nengine: cpu\nmax-pending: 11\ndrain-timeout: 11s\n"
	env := map[string]string{"GENIEMQ_ADMIN": "2.2.2.2:2", "GENIEMQ_ENGINE": "cuda", "GENIEMQ_MAX_PENDING": "22"}
	args := []string{"--admin", "3.3.3.3:3", "--engine", "auto"}
	cfg, err := resolve(t, args, env, file)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Admin != "3.3.3.3:3" || cfg.Engine != "auto" {
		t.Errorf("flags do not win over environment and file: admin %s, engine %s", cfg.Admin, cfg.Engine)
	}
	if cfg.MaxPending != 22 {
		t.Errorf("the environment does not win over the file: max-pending %d", cfg.MaxPending)
	}
	if cfg.DrainTimeout != 11*time.Second {
		t.Errorf("the file does not win over the default: drain-timeout %v", cfg.DrainTimeout)
	}
	if cfg.AckWait != 30*time.Second {
		t.Errorf("what nobody sets has its default: ack-wait %v", cfg.AckWait)
	}
}

// Every flag must be settable from all three sources, so that a new one cannot be forgotten.
func TestConfigEverySettingFromEverySource(t *testing.T) {
	values := map[string]string{
		"index": "a=b.gmq", "nats": "nats://x:1", "nats-creds": "c", "nats-token-file": "t", "nats-user": "u", "nats-password-file": "w", "nats-nkey-file": "k", "nats-ca": "p", "nats-cert": "q", "nats-key": "r", "nats-listen": "1.2.3.4:5",
		"data-dir": "d", "prefix": "p", "engine": "cpu", "engine-threads": "3", "devices": "0,2", "device-mode": "capacity", "gpu-memory": "3GiB", "batch-size": "4", "batch-linger": "5ms",
		"workers": "6", "max-pending": "7", "ack-wait": "8s", "direct-queue": "9", "drain-timeout": "10s", "no-sweep": "true",
		"reply-allow": "x.{index}.>", "direct-reply-allow": "y.>", "max-body": "2000", "max-queries": "12", "max-items": "13", "memory": "200MiB", "admin": "off", "pprof": "true", "http": "5.6.7.8:9",
		"log-level": "debug", "log-format": "json", "engine-timeout": "2s", "certify-limit": "14",
		"classes": "bulk", "class-weights": "bulk=2,people/bulk=3", "class-limits": "people/bulk=4", "bulk-slice": "3ms", "user-rate": "5", "user-burst": "6", "user-in-flight": "7",
		"trust-user-header": "true", "user-reply-allow": "x.{index}.{user}.>", "js-domain": "hub", "replicas": "3", "stream-bytes": "results=2GiB", "stream-age": "results=2h0m0s",
		"stream-messages": "users=100", "placement-cluster": "east", "placement-tags": "ssd,big", "nats-server-name": "a", "nats-cluster": "c",
		"nats-cluster-listen": "127.0.0.1:0", "nats-routes": "nats://b:6222", "nats-sync-always": "true",
		"context": "prod", "nats-listen-token-file": "lt", "nats-listen-cert": "lc", "nats-listen-key": "lk", "admin-token-file": "at",
		"slow-query": "3s", "watch": "true", "traces": "http://c:4318", "object-users": "ann,bob",
	}
	var defaults Config
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	defaults.Flags(fs)
	fs.VisitAll(func(f *pflag.Flag) {
		value, ok := values[f.Name]
		if !ok {
			t.Errorf("setting %s has no value in this test", f.Name)
			return
		}
		for source, from := range map[string]func() (Config, error){
			"flag": func() (Config, error) { return resolve(t, []string{"--" + f.Name + "=" + value}, nil, "") },
			"environment": func() (Config, error) {
				return resolve(t, nil, map[string]string{EnvName(f.Name): value}, "")
			},
			"file": func() (Config, error) { return resolve(t, nil, nil, f.Name+": "+value+"\n") },
		} {
			cfg, err := from()
			if err != nil {
				t.Errorf("%s from %s: %v", f.Name, source, err)
				continue
			}
			got := pflag.NewFlagSet("got", pflag.ContinueOnError)
			cfg.Flags(got)
			if now := strings.Trim(got.Lookup(f.Name).Value.String(), "[]"); now != value {
				t.Errorf("%s from %s is %q, want %q", f.Name, source, now, value)
			}
		}
	})
}

func TestConfigFile(t *testing.T) {
	cfg, err := resolve(t, nil, nil, `
# several indexes, as a mapping
index:
  adult: /srv/adult.gmq
  words: /srv/words.gmq
reply-allow: [_INBOX.>, app.>]
pprof: true
`)
	if err != nil {
		t.Fatal(err)
	}
	if want := "adult=/srv/adult.gmq,words=/srv/words.gmq"; (&indexesValue{indexes: &cfg.Indexes}).String() != want {
		t.Errorf("indexes are %v, want %s", cfg.Indexes, want)
	}
	if len(cfg.ReplyAllow) != 2 || cfg.ReplyAllow[1] != "app.>" || !cfg.Pprof {
		t.Errorf("the file was not read as a whole: %+v", cfg)
	}
	if err := cfg.Validate(); err != nil {
		t.Errorf("a sound configuration is refused: %v", err)
	}

	if _, err := resolve(t, nil, nil, ""); err != nil {
		t.Errorf("an empty file is refused: %v", err)
	}
	_, err = resolve(t, nil, map[string]string{"GENIEMQ_ACK_WAIT": "soon"}, "max-pending: many\nadmim: x\nadmin: 1.1.1.1:1\nadmin: 2.2.2.2:2\n")
	for _, part := range []string{"GENIEMQ_ACK_WAIT", ":1: max-pending", ":2: admim", ":4: admin: is given twice"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the fault of %q is not among those reported: %v", part, err)
		}
	}
}

// The bound of threads reaches the engine, whichever it is.
func TestEngineThreadsReachTheEngine(t *testing.T) {
	for _, engine := range []string{gpuexec.Auto, gpuexec.CPU, gpuexec.CUDA} {
		cfg := Config{Engine: engine, EngineThreads: 3}
		cfg.EnsureDefaults()
		opts, err := cfg.EngineOptions()
		if err != nil {
			t.Fatal(err)
		}
		if opts.CPU.Workers != 3 || opts.CUDA.Workers != 3 {
			t.Errorf("with engine %s, the CPU engine has %d threads and the CUDA engine %d, want 3", engine, opts.CPU.Workers, opts.CUDA.Workers)
		}
	}
}

func TestConfigValidateReportsEveryFault(t *testing.T) {
	cfg := Config{
		Indexes: []IndexSource{{Name: "a b", Path: "x"}, {Name: "c", Path: "x"}, {Name: "c", Path: "y"}},
		NATS:    "nonsense", NATSListen: "here", Prefix: "Genie.X", Engine: "gpu", MaxPending: -1, Workers: -1,
		AckWait: time.Millisecond, ReplyAllow: []string{"a..b"}, DirectReplyAllow: []string{"a.{index}"}, Admin: "9464", LogLevel: "loud", LogFormat: "xml",
	}
	cfg.EnsureDefaults()
	err := cfg.Validate()
	if err == nil {
		t.Fatal("nothing is wrong with it")
	}
	for _, setting := range []string{
		"index: \"a b\"", "index: \"c\" is given twice", "nats:", "nats-listen:", "prefix:", "engine:", "max-pending:", "workers:",
		"ack-wait:", "\nreply-allow:", "direct-reply-allow:", "admin:", "log-level:", "log-format:",
	} {
		if !strings.Contains(err.Error(), setting) {
			t.Errorf("no fault about %s in:\n%v", setting, err)
		}
	}
	cpu := Config{Indexes: []IndexSource{{Name: "c", Path: "x"}}, Engine: "cpu", Devices: "1"}
	cpu.EnsureDefaults()
	if err := cpu.Validate(); err == nil || !strings.Contains(err.Error(), "engine: cpu takes neither devices") {
		t.Errorf("devices for the CPU engine are accepted: %v", err)
	}
	var empty Config
	empty.EnsureDefaults()
	if err := empty.Validate(); err == nil || !strings.Contains(err.Error(), "index:") {
		t.Errorf("a service without an index is accepted: %v", err)
	}
}
