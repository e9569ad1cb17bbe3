// Package config is what a worker can be told: its settings with their defaults, where they come from, what is wrong with
// them, and how secrets among them are read and kept out of texts.
package config

import (
	"runtime"
	"strings"
	"time"

	"github.com/geniemq/geniemq/gpuexec"
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

	// NATS is the server to use, a comma-separated list for a cluster. Default: none, which starts an
	// embedded nats-server with JetStream.
	NATS string
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
	// NATSListen is where the embedded server listens; port 0 takes a free one. Default 127.0.0.1:4222.
	NATSListen string
	// DataDir is where the embedded server keeps its streams. Default ./geniemq-data.
	DataDir string
	// Prefix starts every subject, stream and durable name. Default genie.
	Prefix string

	// Engine is auto, cpu or cuda. Default auto: the GPU when there is one.
	Engine string
	// EngineThreads bounds the CPU engine's threads. Default: all cores.
	EngineThreads int

	// Devices are the CUDA devices to use: ordinals like 0,1, or all. Default: the first one alone.
	Devices string
	// DeviceMode says what several devices do for each other: replica (each has the whole index and takes batches of
	// its own: throughput) or capacity (each has a part, and all work on each batch: larger indexes, lower latency).
	// Default replica.
	DeviceMode string
	// GPUMemory is the memory in bytes per device that the CUDA engine may use, for indexes and batches together;
	// what is larger is streamed. Default: nine tenths of what is free.
	GPUMemory Bytes

	// EngineTimeout bounds the time of a core that the engine spends on comparing the texts of one query; beyond, it is answered
	// `deadline_exceeded`. Default 1m.
	EngineTimeout time.Duration
	// CertifyLimit bounds what a query with certify may have to compare in the end: the symbols of its text times the bytes of
	// all texts of the index. Default 100,000,000,000, some ten seconds of a core.
	CertifyLimit int

	// BatchSize bounds the queries of a batch. Default: the engine's capacity.
	BatchSize int
	// BatchLinger is how long a batch that is not full may wait although an executor is free. Default 0: a
	// free executor takes what is there, which is both the lowest latency and, under load, full batches.
	BatchLinger time.Duration
	// Workers is the number of goroutines per index that decode queries, and of those that encode answers.
	// Default: the cores. In messages of large queries, decoding is most of the work that an engine leaves to them.
	Workers int
	// MaxPending bounds the messages per index that are pulled and not yet acknowledged, by all workers together
	// (MaxAckPending of the durable). Default 8192; at least four batches.
	MaxPending int
	// AckWait is after how long without a sign of life the server gives a message to another worker. Default 30s.
	AckWait time.Duration
	// DirectQueue bounds the queries per index that wait for direct search; more are answered
	// `overloaded`. Default 65536.
	DirectQueue int
	// DrainTimeout bounds the graceful shutdown. Default 20s.
	DrainTimeout time.Duration
	// NoSweep leaves messages for indexes that nobody serves where they are. Default false: they are
	// answered `unknown_index` and copied to the dead letters.
	NoSweep bool

	// ReplyAllow are the patterns of the subjects to which the answer of a stored query may go; {index} in them is the
	// query's index. Default _INBOX.>, <prefix>.result.{index} and <prefix>.result.{index}.>.
	ReplyAllow []string
	// DirectReplyAllow are the patterns of the reply subjects that direct search answers on; requests with another one are
	// dropped and counted. Default _INBOX.>, and what servers make of it between accounts (_R_.>) and clusters (_GR_.*.*._INBOX.>).
	DirectReplyAllow []string
	// MaxBody, MaxQueries and MaxItems bound one message. Defaults 8 MiB (and 64 KiB under the server's
	// max_payload), 65536 queries, 65536 items per query.
	MaxBody, MaxQueries, MaxItems int

	// Memory bounds what is in flight: messages, plans, hits, answers and the CPU engine's candidates, of all indexes together.
	// Stored messages wait when it is used up, direct ones are refused. Default 1 GiB, at least 128 MiB.
	Memory Bytes

	// Admin is where the admin page, the metrics and the health checks listen; "off" for nowhere.
	// Default 127.0.0.1:9464.
	Admin string
	// Pprof adds /debug/pprof to the admin server. Default false.
	Pprof bool

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

// ParseIndexSource parses "name=path" or "path".
func ParseIndexSource(s string) IndexSource {
	if name, path, ok := strings.Cut(s, "="); ok {
		return IndexSource{Name: strings.TrimSpace(name), Path: strings.TrimSpace(path)}
	}
	return IndexSource{Path: strings.TrimSpace(s)}
}

func (s IndexSource) String() string {
	if s.Name == "" {
		return s.Path
	}
	return s.Name + "=" + s.Path
}

// EnsureDefaults replaces zero fields with their defaults.
func (c *Config) EnsureDefaults() {
	setDefault(&c.NATSListen, "127.0.0.1:4222")
	setDefault(&c.DataDir, "./geniemq-data")
	setDefault(&c.Prefix, "genie")
	setDefault(&c.Engine, "auto")
	setDefault(&c.DeviceMode, string(gpuexec.DeviceReplica))
	setDefault(&c.EngineTimeout, time.Minute)
	setDefault(&c.CertifyLimit, 100_000_000_000)
	setDefault(&c.Workers, runtime.GOMAXPROCS(0))
	setDefault(&c.MaxPending, 8192)
	setDefault(&c.AckWait, 30*time.Second)
	setDefault(&c.DirectQueue, 65536)
	setDefault(&c.DrainTimeout, 20*time.Second)
	var limits wire.Limits
	limits.EnsureDefaults()
	setDefault(&c.MaxBody, limits.Body)
	setDefault(&c.MaxQueries, limits.Queries)
	setDefault(&c.MaxItems, limits.Items)
	setDefault(&c.Memory, 1<<30)
	setDefault(&c.Admin, "127.0.0.1:9464")
	setDefault(&c.LogLevel, "info")
	setDefault(&c.LogFormat, "text")
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
