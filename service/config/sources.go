package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// HTTPTokenEnv is the environment variable of [Config.HTTPToken], which is a secret and so no setting that a command line could have.
const HTTPTokenEnv = EnvPrefix + "HTTP_TOKEN"

// EnvPrefix starts the environment variable of a setting: drain-timeout is GENIEMQ_DRAIN_TIMEOUT.
const EnvPrefix = "GENIEMQ_"

// Flags adds one flag for every setting of c to fs. The flag set is the one registry of settings: the
// environment and the file reach c through the same flags (Resolve), so that names, parsing and help
// cannot differ. The values c has now are the defaults, so call EnsureDefaults first.
func (c *Config) Flags(fs *pflag.FlagSet) {
	fs.Var(&indexesValue{indexes: &c.Indexes}, "index", "index to serve, `name=file`, or name=nats: for the one that 'geniemq push' keeps in the server; repeat for more")
	fs.BoolVar(&c.Watch, "watch", c.Watch, "serve a new file of an index as soon as it has the old one's name, without SIGHUP")
	c.NATSFlags(fs)
	c.embeddedFlags(fs)
	c.Server.flags(fs)
	fs.StringVar(&c.DataDir, "data-dir", c.DataDir, "`folder` of the embedded server's streams, and of indexes that are fetched from a server")
	fs.StringVar(&c.Prefix, "prefix", c.Prefix, "first `token` of all subjects and streams")
	c.Streams.Flags(fs)
	c.EngineFlags(fs)
	fs.DurationVar(&c.EngineTimeout, "engine-timeout", c.EngineTimeout, "most time of a core that comparing texts for one query may take")
	fs.IntVar(&c.CertifyLimit, "certify-limit", c.CertifyLimit, "most work that a query with certify may ask for: symbols of its text times bytes of all texts of the index")
	fs.IntVar(&c.BatchSize, "batch-size", c.BatchSize, "most queries in a batch (default: what the engine can hold)")
	fs.DurationVar(&c.BatchLinger, "batch-linger", c.BatchLinger, "how long a batch may wait for more queries although the engine is free")
	fs.IntVar(&c.Workers, "workers", c.Workers, "goroutines per index that decode queries, and as many that encode answers")
	fs.IntVar(&c.MaxPending, "max-pending", c.MaxPending, "most messages per index that are pulled and not yet answered")
	fs.DurationVar(&c.AckWait, "ack-wait", c.AckWait, "time after which the server delivers an unanswered message again")
	fs.IntVar(&c.DirectQueue, "direct-queue", c.DirectQueue, "most queries per index that wait for direct search")
	fs.DurationVar(&c.DrainTimeout, "drain-timeout", c.DrainTimeout, "most time that a graceful shutdown may take")
	c.Fairness.flags(fs)
	fs.BoolVar(&c.NoSweep, "no-sweep", c.NoSweep, "do not answer messages for indexes that nobody serves; leave them in the stream")
	fs.StringSliceVar(&c.ReplyAllow, "reply-allow", c.ReplyAllow, "subject `patterns` to which answers of stored queries may go; {index} stands for the query's index (default: _INBOX.>, <prefix>.result.{index} and <prefix>.result.{index}.>)")
	fs.StringSliceVar(&c.DirectReplyAllow, "direct-reply-allow", c.DirectReplyAllow, "subject `patterns` to which answers of direct search may go; requests with others are dropped (default: _INBOX.>, and what servers make of it: _R_.> and _GR_.*.*._INBOX.>)")
	fs.IntVar(&c.MaxBody, "max-body", c.MaxBody, "most `bytes` of one message, or of its body in the object store")
	fs.StringSliceVar(&c.ObjectUsers, "object-users", c.ObjectUsers, "`users` who get a bucket each for queries that are too large for a message (default: none)")
	fs.IntVar(&c.MaxQueries, "max-queries", c.MaxQueries, "most queries in one message")
	fs.IntVar(&c.MaxItems, "max-items", c.MaxItems, "most items in one query")
	fs.Var(&c.Memory, "memory", "`memory` for what is in flight, of all indexes together: messages, answers, what the CPU engine counts in")
	fs.StringVar(&c.Admin, "admin", c.Admin, "`address` of the admin page, metrics and health checks, or off")
	c.AdminTokenFlag(fs)
	fs.BoolVar(&c.Pprof, "pprof", c.Pprof, "serve /debug/pprof on the admin address")
	fs.DurationVar(&c.SlowQuery, "slow-query", c.SlowQuery, "log messages that take at least this long, with the reason (default: none)")
	fs.StringVar(&c.Traces, "traces", c.Traces, "`URL` of an OpenTelemetry collector (OTLP over HTTP, like http://127.0.0.1:4318) for spans of messages with a traceparent")
	fs.StringVar(&c.HTTP, "http", c.HTTP, "`address` of the HTTP door, or off; who comes through it shows the token in GENIEMQ_HTTP_TOKEN")
	fs.StringVar(&c.LogLevel, "log-level", c.LogLevel, "debug, info, warn or error")
	fs.StringVar(&c.LogFormat, "log-format", c.LogFormat, "text or json")
}

// Resolve sets the flags of fs that the command line left alone: from the environment first, then from
// the YAML file at path unless that is empty. Only the settings in names take part, all of fs when there
// are none. It reports every fault at once; an unknown key of the file is one.
func Resolve(fs *pflag.FlagSet, lookupEnv func(string) (string, bool), path string, names ...string) error {
	taken := func(f *pflag.Flag) bool {
		if len(names) > 0 {
			return slices.Contains(names, f.Name)
		}
		return f.Name != "config" && f.Name != "help"
	}
	var faults []error
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Changed || !taken(f) {
			return
		}
		variable := EnvName(f.Name)
		if value, ok := lookupEnv(variable); ok {
			if err := fs.Set(f.Name, value); err != nil {
				faults = append(faults, fmt.Errorf("environment variable %s: %w", variable, err)) // which quotes the value
			}
		}
	})
	if path != "" {
		if err := resolveFile(fs, path, taken); err != nil {
			faults = append(faults, err)
		}
	}
	return WithoutSecrets(errors.Join(faults...))
}

// EnvName is the environment variable of a setting.
func EnvName(setting string) string {
	return EnvPrefix + strings.ToUpper(strings.ReplaceAll(setting, "-", "_"))
}

func resolveFile(fs *pflag.FlagSet, path string, taken func(*pflag.Flag) bool) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	var root yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&root); errors.Is(err, io.EOF) {
		return nil // an empty file sets nothing
	} else if err != nil {
		return fmt.Errorf("configuration %s: %w", path, err)
	}
	settings := root.Content[0]
	if settings.Kind != yaml.MappingNode {
		return fmt.Errorf("configuration %s:%d: expected lines like `admin: 127.0.0.1:9464`", path, settings.Line)
	}
	var faults []error
	seen := make(map[string]bool)
	for i := 0; i < len(settings.Content); i += 2 {
		key, value := settings.Content[i], settings.Content[i+1]
		fault := func(err error) {
			faults = append(faults, fmt.Errorf("configuration %s:%d: %s: %w", path, key.Line, key.Value, err))
		}
		f := fs.Lookup(key.Value)
		switch {
		case f == nil || !taken(f):
			fault(errors.New("is no setting; `geniemq serve --help` lists them"))
			continue
		case seen[f.Name]:
			fault(errors.New("is given twice"))
			continue
		}
		seen[f.Name] = true
		if f.Changed { // by the command line or the environment
			continue
		}
		values, err := settingValues(value)
		if err != nil {
			fault(err)
			continue
		}
		for _, v := range values {
			if err := fs.Set(f.Name, v); err != nil {
				fault(err)
			}
		}
	}
	return errors.Join(faults...)
}

// settingValues is what a YAML value would be on the command line: one text for a scalar, one per element of a list,
// and name=value per entry of a mapping.
func settingValues(node *yaml.Node) ([]string, error) {
	var values []string
	var fault error
	add := func(before string, n *yaml.Node) {
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			fault = cmp.Or(fault, fmt.Errorf("line %d: expected a single value", n.Line))
		}
		values = append(values, before+n.Value)
	}
	switch node.Kind {
	case yaml.SequenceNode:
		for _, element := range node.Content {
			add("", element)
		}
	case yaml.MappingNode:
		for i := 0; i < len(node.Content); i += 2 {
			add(node.Content[i].Value+"=", node.Content[i+1])
		}
	default:
		add("", node)
	}
	return values, fault
}

// indexesValue makes a list of IndexSource a flag. A comma separates the indexes of one value.
type indexesValue struct {
	indexes *[]IndexSource
	changed bool
}

func (v *indexesValue) Set(s string) error {
	if strings.Contains(s, "://") { // before it is cut into pieces, which errors would quote without seeing a secret in them
		return errors.New("is a URL: an index is a file, write name=file, like adult=adult.gmq")
	}
	var sources []IndexSource
	for _, part := range splitList(s) {
		source := ParseIndexSource(part)
		if source.Path == "" {
			return fmt.Errorf("%q has no file: write name=file, like adult=adult.gmq", part)
		}
		if strings.HasPrefix(part, "=") {
			return fmt.Errorf("%q has no name: write name=file, or the file alone for the name that is in it", part)
		}
		sources = append(sources, source)
	}
	if !v.changed {
		*v.indexes, v.changed = nil, true
	}
	*v.indexes = append(*v.indexes, sources...)
	return nil
}

func (v *indexesValue) Type() string { return "name=file" }

func (v *indexesValue) String() string {
	if v.indexes == nil {
		return ""
	}
	parts := make([]string, len(*v.indexes))
	for i, source := range *v.indexes {
		parts[i] = source.String()
	}
	return strings.Join(parts, ",")
}
