// Package config is what a worker can be told: its settings with their defaults, where they come from, what is wrong with
// them, and how secrets among them are read and kept out of texts.
package config

import (
	"cmp"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/internal/human"
	"github.com/geniemq/geniemq/wire"
)

// Off is the value of Config.Admin that turns the admin server off.
const Off = "off"

// Config is everything `geniemq serve` can be told. Its settings have one name each, used as a flag
// (--drain-timeout), as an environment variable (GENIEMQ_DRAIN_TIMEOUT) and as a key of the YAML file
// (drain-timeout); see Flags and Resolve. A zero field means its default, which EnsureDefaults fills in.
type Config struct {
	// Indexes are the indexes to serve. At least one.
	Indexes []IndexSource
	// Watch has a file that is renamed over that of an index, or written in its place, served as soon as it is whole. Default false: that takes SIGHUP.
	Watch bool

	// NATS is the server to use, a comma-separated list for a cluster. Default: none, which starts an
	// embedded nats-server with JetStream.
	NATS string
	// NATSContext names a context of the nats command, a file ~/.config/nats/context/NAME.json, or the absolute path of such a file: the servers, and what
	// lets in there. It takes the place of NATS and all the rest below but NATSListen. Default: none.
	NATSContext string
	// NATSCreds is a credentials file (JWT and seed) for the server. Default: none.
	NATSCreds string
	// NATSTokenFile is a file with the token for the server. Default: none.
	NATSTokenFile string
	// NATSUser and NATSPasswordFile are the user's name at the server, and a file with the password. Default: none.
	NATSUser, NATSPasswordFile string
	// NATSNKeyFile is a file with the seed of the user's nkey. Default: none.
	NATSNKeyFile string
	// NATSCA is a PEM file with the authorities that sign the server's certificate. Default: those of the system.
	NATSCA string
	// NATSCert and NATSKey are PEM files with the certificate that is shown to a server that asks for one, and its key. Default: none.
	NATSCert, NATSKey string
	// NATSListen is where the embedded server listens; port 0 takes a free one. Default 127.0.0.1:4222.
	NATSListen string
	// NATSListenTokenFile is a file with the token that the embedded server asks for. Default: none, it lets everybody in who
	// reaches its address.
	NATSListenTokenFile string
	// NATSListenCert and NATSListenKey are PEM files with the embedded server's certificate and its key: with them it speaks TLS alone. Default: none.
	NATSListenCert, NATSListenKey string
	// DataDir is where the embedded server keeps its streams, and the worker the indexes that it fetches from a server. Default: [DataFolder].
	DataDir string
	// Prefix starts every subject, stream and durable name. Default genie.
	Prefix string

	// Engine is auto, cpu or cuda. Default auto: the GPU when there is one.
	Engine string
	// EngineThreads bounds the cores of this host that the engine uses: those of the CPU engine, or those that prepare
	// the CUDA engine's batches and compare texts for it. Default: all.
	EngineThreads int

	// Devices are the CUDA devices to use: ordinals like 0,1, or all. Default: the first one alone.
	Devices string
	// DeviceMode says how several devices share the work. With replica each has the whole index and takes batches of
	// its own, for throughput. With capacity each has a part of the index and all work on each batch, for larger indexes
	// and lower latency. Default replica.
	DeviceMode string
	// GPUMemory is the memory in bytes that the CUDA engine may use per device, for indexes and batches together.
	// An index that does not fit is streamed. Default: nine tenths of what is free.
	GPUMemory human.Size

	// EngineTimeout bounds how long one core may compare the texts of one query. A query that takes longer is answered with
	// the error `deadline_exceeded`. Default 1m.
	EngineTimeout time.Duration
	// CertifyLimit bounds what a query with certify may have to compare: the symbols of its text times the bytes of all texts
	// of the index. Default 100,000,000,000, which takes one core about ten seconds.
	CertifyLimit int

	// BatchSize bounds the queries per batch. Default: the engine's capacity.
	BatchSize int
	// BatchLinger is how long a batch that is not full may wait although an executor is free. Default 0: a
	// free executor takes what is there. That gives the lowest latency, and full batches under load.
	BatchLinger time.Duration
	// Workers is the number of goroutines per index that decode queries, and the number of those that encode answers.
	// Default: the cores. Where messages have large queries, decoding is most of the work outside the engine.
	Workers int
	// MaxPending bounds the messages per index that are pulled and not yet acknowledged, by all workers together
	// (MaxAckPending of the durable). Default 8192. It should be at least four batches.
	MaxPending int
	// AckWait is how long the server waits for a sign of life before it gives a message to another worker. Default 30s.
	AckWait time.Duration
	// DirectQueue bounds the queries per index that wait for direct search. Those beyond are answered
	// `overloaded`. Default 65536.
	DirectQueue int
	// DrainTimeout bounds the graceful shutdown. Default 20s.
	DrainTimeout time.Duration
	// NoSweep leaves messages for indexes that nobody serves where they are. Default false: they are
	// answered `unknown_index` and copied to the dead letters.
	NoSweep bool

	// ReplyAllow are patterns of the subjects to which a stored query may ask its answer to be sent; {index} in them is the
	// name of the query's index. Default _INBOX.>, <prefix>.result.{index} and <prefix>.result.{index}.>.
	ReplyAllow []string
	// DirectReplyAllow are patterns of the reply subjects that direct search answers on. Requests with another one are
	// dropped and counted. Default: _INBOX.>, and what servers make of it between accounts (_R_.>) and between clusters
	// (_GR_.*.*._INBOX.>).
	DirectReplyAllow []string
	// MaxBody, MaxQueries and MaxItems bound one message. Defaults: 8 MiB, which is also the most, 65536
	// queries, 65536 items per query.
	MaxBody, MaxQueries, MaxItems int

	// ObjectUsers are users who get a bucket each for queries that are too large for a message: <PREFIX>_OBJECTS_<user>. The bucket of those who are no users is always made.
	// Default: none.
	ObjectUsers []string

	// Fairness is what classes and users may have.
	Fairness Fairness
	// Streams are what streams are made with.
	Streams Streams
	// Server makes the embedded server one of several.
	Server Server

	// Memory bounds what is in flight, in bytes: messages, plans, hits, answers and the CPU engine's candidates, of all
	// indexes together. Stored messages wait when it is used up; direct ones are refused. Default 1 GiB, at least 128 MiB.
	Memory human.Size

	// Admin is where the admin page, the metrics and the health checks listen; "off" for nowhere.
	// Default 127.0.0.1:9464.
	Admin string
	// AdminTokenFile is a file with the token that the admin server asks for, but for /healthz and /readyz: as a bearer token, or as the password
	// of any name. Default: none.
	AdminTokenFile string
	// Pprof adds /debug/pprof to the admin server. Default false.
	Pprof bool

	// SlowQuery is how long a message may take, from its storing or arrival to its answer, until it is logged with what took longest.
	// Default 0: none is logged.
	SlowQuery time.Duration
	// Traces is the URL of an OpenTelemetry collector that takes OTLP over HTTP, to which spans go of messages with a traceparent that is
	// recorded. Default: none, no spans.
	Traces string
	// HTTP is where the HTTP door listens, through which programs ask that do not speak NATS; "off" for nowhere. Default off.
	HTTP string
	// HTTPToken is what those show who come through it: 16 characters at least. It is no flag: it comes from the environment, GENIEMQ_HTTP_TOKEN.
	HTTPToken string

	// LogLevel is debug, info, warn or error. Default info.
	LogLevel string
	// LogFormat is text or json. Default text.
	LogFormat string
}

// IndexSource names an index file.
type IndexSource struct {
	// Name is the last token of the index's subjects. Default: the name in the file's schema.
	Name string
	// Path is the index file.
	Path string
}

// ParseIndexSource parses "name=path" or "path". A path of "nats:" or "nats:name" stands for what was pushed.
func ParseIndexSource(s string) IndexSource {
	if name, path, ok := strings.Cut(s, "="); ok {
		return IndexSource{Name: strings.TrimSpace(name), Path: strings.TrimSpace(path)}
	}
	return IndexSource{Path: strings.TrimSpace(s)}
}

// pushedScheme begins the path of an index that is not a file here but was pushed to the server.
const pushedScheme = "nats:"

// Pushed says that the index is the one that was pushed under a name, of which the worker follows every version.
func (s IndexSource) Pushed() (name string, is bool) {
	name, is = strings.CutPrefix(s.Path, pushedScheme)
	return cmp.Or(name, s.Name), is
}

func (s IndexSource) String() string {
	if s.Name == "" {
		return s.Path
	}
	return s.Name + "=" + s.Path
}

// EarlierDataFolder is where streams were kept by default before there was a place for them.
const EarlierDataFolder = "./geniemq-data"

// DataFolder is where the user's programs keep data, wherever they are started: $XDG_DATA_HOME/geniemq, and without that ~/.local/share/geniemq. A user without a
// home has EarlierDataFolder.
func DataFolder() string {
	if data := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(data) {
		return filepath.Join(data, "geniemq")
	}
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "share", "geniemq")
	}
	return EarlierDataFolder
}

// EnsureDefaults replaces zero fields with their defaults.
func (c *Config) EnsureDefaults() {
	c.NATSListen = cmp.Or(c.NATSListen, "127.0.0.1:4222")
	c.DataDir = cmp.Or(c.DataDir, DataFolder())
	c.Prefix = cmp.Or(c.Prefix, "genie")
	c.Engine = cmp.Or(c.Engine, gpuexec.Auto)
	c.DeviceMode = cmp.Or(c.DeviceMode, string(gpuexec.DeviceReplica))
	c.EngineTimeout = cmp.Or(c.EngineTimeout, time.Minute)
	c.CertifyLimit = cmp.Or(c.CertifyLimit, 100_000_000_000)
	c.Fairness.ensureDefaults()
	c.Workers = cmp.Or(c.Workers, runtime.GOMAXPROCS(0))
	c.MaxPending = cmp.Or(c.MaxPending, 8192)
	c.AckWait = cmp.Or(c.AckWait, 30*time.Second)
	c.DirectQueue = cmp.Or(c.DirectQueue, 65536)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, 20*time.Second)
	var limits wire.Limits
	limits.EnsureDefaults()
	c.MaxBody = cmp.Or(c.MaxBody, limits.Body)
	c.MaxQueries = cmp.Or(c.MaxQueries, limits.Queries)
	c.MaxItems = cmp.Or(c.MaxItems, limits.Items)
	c.Memory = cmp.Or(c.Memory, 1<<30)
	c.Admin = cmp.Or(c.Admin, "127.0.0.1:9464")
	c.HTTP = cmp.Or(c.HTTP, Off)
	c.LogLevel = cmp.Or(c.LogLevel, "info")
	c.LogFormat = cmp.Or(c.LogFormat, "text")
}
