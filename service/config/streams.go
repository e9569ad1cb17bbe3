package config

import (
	"errors"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/geniemq/geniemq/consumer/streams"
	"github.com/geniemq/geniemq/internal/human"
)

// Streams are the settings of JetStream: what streams are made with, and where they are.
type Streams struct {
	// Domain is the JetStream domain that the streams are in. Default: that of Config.NATSContext, or else of the server.
	Domain string
	// Prefix is what requests to the JetStream API begin with where the account of the connection imports that of the streams. That of
	// Config.NATSContext becomes it, unless a domain is named; there is no setting of its own.
	Prefix string
	// Replicas is how many servers of a cluster keep each stream. Default 1.
	Replicas int
	// Bytes, Age and Messages are the most that streams hold, by the names of streams.Kinds. See streams.Settings.
	Bytes    map[string]human.Size
	Age      map[string]time.Duration
	Messages map[string]int
	// Cluster and Tags say which servers keep the streams. Default: any.
	Cluster string
	Tags    []string
}

// Flags adds the flags that say what streams are like: for serve, which makes streams, and admin streams, which changes them.
func (s *Streams) Flags(fs *pflag.FlagSet) {
	fs.IntVar(&s.Replicas, "replicas", s.Replicas, "servers of a cluster that keep each stream; holds for streams that are made (default: 1)")
	fs.Var(&numbers[human.Size]{to: &s.Bytes, parse: parseSize}, "stream-bytes", "most bytes of queries, users, bulk, results, dead or objects, a bucket of large queries, like results=8GiB; holds for streams that are made (default: 4GiB each, dead and objects 1GiB)")
	fs.Var(&numbers[time.Duration]{to: &s.Age, parse: time.ParseDuration}, "stream-age", "how long streams keep messages, like results=2h; holds for streams that are made (default: results 1h, dead 168h, others until they are answered)")
	fs.Var(&numbers[int]{to: &s.Messages, parse: strconv.Atoi}, "stream-messages", "most messages per subject of queries, users or bulk, like users=1000; holds for streams that are made (default: 1000000, users 10000)")
	fs.StringVar(&s.Cluster, "placement-cluster", s.Cluster, "`cluster` whose servers keep the streams (default: any)")
	fs.StringSliceVar(&s.Tags, "placement-tags", s.Tags, "`tags` of the servers that keep the streams (default: any)")
}

func (s *Streams) faults(fault report) {
	if s.Replicas != 0 && s.Replicas != 1 && s.Replicas != 3 && s.Replicas != 5 {
		fault("replicas", "%d must be 1, 3 or 5", s.Replicas)
	}
	known := func(setting, name string) {
		if !slices.Contains(streams.Kinds(), streams.Kind(name)) {
			fault(setting, "%q is no stream: queries, users, bulk, results, dead or objects", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Bytes)) {
		if known("stream-bytes", name); s.Bytes[name] < 1<<20 {
			fault("stream-bytes", "%s=%v must be at least 1 MiB", name, s.Bytes[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Age)) {
		if name == string(streams.Objects) {
			fault("stream-age", "%s are kept for as long as their queries", name)
		}
		if known("stream-age", name); s.Age[name] < time.Second {
			fault("stream-age", "%s=%v must be at least 1s", name, s.Age[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Messages)) {
		known("stream-messages", name)
		if name == string(streams.Results) || name == string(streams.Dead) || name == string(streams.Objects) {
			fault("stream-messages", "%s has no bound by subject", name)
		}
		if s.Messages[name] < 1 {
			fault("stream-messages", "%s=%d must be at least 1", name, s.Messages[name])
		}
	}
}

// Validate reports every fault of the settings at once.
func (s *Streams) Validate() error {
	var found faults
	s.faults(found.add)
	return errors.Join(found...)
}

// Settings are the same for package streams.
func (s *Streams) Settings() *streams.Settings {
	settings := &streams.Settings{
		Replicas: s.Replicas, Cluster: s.Cluster, Tags: s.Tags,
		Bytes: make(map[streams.Kind]int64), Age: make(map[streams.Kind]time.Duration), Messages: make(map[streams.Kind]int64),
	}
	for name, v := range s.Bytes {
		settings.Bytes[streams.Kind(name)] = int64(v)
	}
	for name, v := range s.Age {
		settings.Age[streams.Kind(name)] = v
	}
	for name, v := range s.Messages {
		settings.Messages[streams.Kind(name)] = int64(v)
	}
	return settings
}

// Server are the settings of the embedded server that make it one of several.
type Server struct {
	// ServerName is its name, which no other server of the cluster has. Default geniemq.
	ServerName string
	// ClusterName is the cluster's. Default: none, and no cluster.
	ClusterName string
	// ClusterListen is where it listens for other servers; port 0 takes a free one. Default 0.0.0.0:6222.
	ClusterListen string
	// Routes are URLs of other servers of the cluster: nats://host:6222.
	Routes []string
	// SyncAlways has it write each message to the disk before it is acknowledged. Default false.
	SyncAlways bool
}

func (e *Server) flags(fs *pflag.FlagSet) {
	fs.StringVar(&e.ServerName, "nats-server-name", e.ServerName, "`name` of the embedded server, its own in a cluster (default: geniemq)")
	fs.StringVar(&e.ClusterName, "nats-cluster", e.ClusterName, "`name` of the cluster that the embedded server joins (default: none)")
	fs.StringVar(&e.ClusterListen, "nats-cluster-listen", e.ClusterListen, "`address` for the other servers of the cluster (default: 0.0.0.0:6222)")
	fs.StringSliceVar(&e.Routes, "nats-routes", e.Routes, "`URLs` of the servers of the cluster, like nats://a:6222")
	fs.BoolVar(&e.SyncAlways, "nats-sync-always", e.SyncAlways, "the embedded server writes each message to the disk before it acknowledges it")
}

func (e *Server) faults(fault report, external bool) {
	set := e.ServerName != "" || e.ClusterName != "" || e.ClusterListen != "" || len(e.Routes) > 0 || e.SyncAlways
	switch {
	case external && set:
		fault("nats", "is another server: nats-server-name, nats-cluster, nats-cluster-listen, nats-routes and nats-sync-always are of the embedded one")
	case e.ClusterName == "" && (len(e.Routes) > 0 || e.ClusterListen != ""):
		fault("nats-cluster", "is missing: nats-routes and nats-cluster-listen need it")
	case e.ClusterName != "" && e.ServerName == "":
		fault("nats-server-name", "is missing: each server of a cluster needs a name of its own")
	case e.ClusterName != "" && len(e.Routes) == 0:
		fault("nats-routes", "is missing: name the other servers of the cluster, like nats://b:6222,nats://c:6222")
	}
	if strings.ContainsAny(e.ServerName+e.ClusterName, " \t.*>") {
		fault("nats-cluster", "names of servers and clusters have no spaces, dots or wildcards")
	}
	if e.ClusterListen != "" {
		if err := checkListen(e.ClusterListen); err != nil {
			fault("nats-cluster-listen", "%v", err)
		}
	}
	for _, route := range e.Routes {
		if u, err := url.Parse(route); err != nil || u.Host == "" {
			fault("nats-routes", "a route is no URL like nats://a:6222")
		}
	}
}

func parseSize(s string) (size human.Size, err error) {
	err = size.Set(s)
	return size, err
}
