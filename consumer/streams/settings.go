package streams

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/bodystore"
	"github.com/geniemq/geniemq/wire"
)

// Kind is a stream by what it is for. Those of the stored classes have the names of these, but for that of queries.
type Kind string

// The streams.
const (
	Queries Kind = "queries"
	Users   Kind = "users"
	Bulk    Kind = "bulk"
	Results Kind = "results"
	Dead    Kind = "dead"
	Objects Kind = "objects" // buckets of the bodies of queries that are too large for a message
)

// Kinds are all streams.
func Kinds() []Kind { return []Kind{Queries, Users, Bulk, Results, Dead, Objects} }

// KindOf is the stream of a stored class.
func KindOf(class wire.Class) Kind {
	if class == wire.ClassQuery {
		return Queries
	}
	return Kind(class)
}

// Settings are what operators decide about streams. They hold when a stream is made; one that exists is changed by Change alone.
type Settings struct {
	// Replicas is how many servers of a cluster keep each stream. Default 1.
	Replicas int
	// Bytes is the most that a stream holds. Default 4 GiB, of dead letters and of each bucket of objects 1 GiB.
	Bytes map[Kind]int64
	// Age is for how long a stream keeps messages. Default: queries until they are answered, results 1 hour, dead letters 7 days.
	Age map[Kind]time.Duration
	// Messages is how many messages a stream of queries holds of one subject, so of one index, and in the stream of users of one user. Publishing more is
	// refused. Default 1,000,000, of users 10,000.
	Messages map[Kind]int64
	// Cluster and Tags say which servers keep the streams. Default: any.
	Cluster string
	Tags    []string
}

// Configs are streams as they are to be made: of queries, users, bulk, results, dead letters and the bucket of large queries, or those of them that are asked for.
func (s *Settings) Configs(subjects wire.Subjects, kinds ...Kind) []jetstream.StreamConfig {
	var configs []jetstream.StreamConfig
	for _, kind := range Kinds() {
		if len(kinds) == 0 || slices.Contains(kinds, kind) {
			configs = append(configs, s.config(subjects, kind))
		}
	}
	return configs
}

func (s *Settings) config(subjects wire.Subjects, kind Kind) jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Retention:  jetstream.LimitsPolicy,
		Storage:    jetstream.FileStorage,
		MaxBytes:   4 << 30,
		Duplicates: 2 * time.Minute,
	}
	switch kind {
	case Queries, Users, Bulk:
		class := wire.Class(kind)
		if kind == Queries {
			class = wire.ClassQuery
		}
		c.Name, c.Subjects = subjects.Stream(class), subjects.StreamSubjects(class)
		c.Description = map[Kind]string{Queries: "geniemq: queries that wait for their answer", Users: "geniemq: queries of users that wait for their answer",
			Bulk: "geniemq: queries that nobody waits for"}[kind]
		c.Retention = jetstream.WorkQueuePolicy // cannot be changed later
		c.MaxMsgsPerSubject = 1_000_000         // per index
		if kind == Users {
			c.MaxMsgsPerSubject = 10_000 // per index and user, who would keep others waiting: one durable delivers in the order of the stream
		}
		c.Discard, c.DiscardNewPerSubject = jetstream.DiscardNew, true
	case Results:
		c.Name, c.Subjects = subjects.ResultStream(), []string{subjects.Results()}
		c.Description = "geniemq: answers for those who were absent"
		c.MaxAge = time.Hour
		c.Discard = jetstream.DiscardNew // the service holds queries back rather than lose answers
		c.Duplicates = 10 * time.Minute
	case Dead:
		c.Name, c.Subjects = subjects.DeadStream(), []string{subjects.DeadAll()}
		c.Description = "geniemq: messages that were given up, and why"
		c.MaxAge, c.MaxBytes = 7*24*time.Hour, 1<<30
		c.Discard = jetstream.DiscardOld
	case Objects:
		bucket, _ := subjects.ObjectBucket("") // which has no user that could be wrong
		bucketConfig(&c, bucket)
		c.MaxBytes = 1 << 30
	}
	c.Replicas = 1
	s.set(&c, kind)
	return c
}

// Bucket is the bucket of a user's large queries as it is to be made. The error is that of [wire.CheckUser].
func (s *Settings) Bucket(subjects wire.Subjects, user string) (c jetstream.StreamConfig, err error) {
	bucket, err := subjects.ObjectBucket(user)
	if err != nil {
		return c, err
	}
	c = s.config(subjects, Objects)
	bucketConfig(&c, bucket)
	return c, nil
}

// bucketConfig makes a configuration that of a bucket, as the object store has them, but for direct reads: those are answered by any server of a cluster, which
// may not have an object yet whose query is there already.
func bucketConfig(c *jetstream.StreamConfig, bucket string) {
	c.Name, c.Subjects = bodystore.StreamOf(bucket), bodystore.SubjectsOf(bucket)
	c.Description = "geniemq: queries that are too large for a message"
	c.AllowRollup, c.Discard = true, jetstream.DiscardNew
}

// set writes into a configuration what the settings say.
func (s *Settings) set(c *jetstream.StreamConfig, kind Kind) {
	c.Replicas = cmp.Or(s.Replicas, c.Replicas)
	c.MaxBytes = cmp.Or(s.Bytes[kind], c.MaxBytes)
	c.MaxAge = cmp.Or(s.Age[kind], c.MaxAge)
	c.MaxMsgsPerSubject = cmp.Or(s.Messages[kind], c.MaxMsgsPerSubject)
	if c.MaxAge > 0 {
		c.Duplicates = min(c.Duplicates, c.MaxAge) // or the server refuses it
	}
	if s.Cluster != "" || len(s.Tags) > 0 {
		c.Placement = &jetstream.Placement{Cluster: s.Cluster, Tags: s.Tags}
	}
}

// Stream is a stream that exists, and what the settings would have changed of it.
type Stream struct {
	Config  jetstream.StreamConfig // that it has
	State   jetstream.StreamState
	Cluster *jetstream.ClusterInfo
	Want    jetstream.StreamConfig // with what the settings say
	Changes []Difference
}

// Look says of each stream that exists what the settings would change. What they do not name stays as it is.
func (s *Settings) Look(ctx context.Context, js jetstream.JetStream, subjects wire.Subjects) (existing []Stream, missing []string, err error) {
	for _, kind := range Kinds() {
		name := s.config(subjects, kind).Name
		stream, err := js.Stream(ctx, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			missing = append(missing, name)
			continue
		} else if err != nil {
			return nil, nil, fmt.Errorf("look at stream %s: %w", name, err)
		}
		info := stream.CachedInfo()
		one := Stream{Config: info.Config, State: info.State, Cluster: info.Cluster, Want: info.Config}
		s.set(&one.Want, kind)
		one.Changes = Differences(one.Want, one.Config)
		existing = append(existing, one)
	}
	return existing, missing, nil
}

// Change gives a stream what the settings say of it.
func Change(ctx context.Context, js jetstream.JetStream, one Stream) error {
	if _, err := js.UpdateStream(ctx, one.Want); err != nil {
		return fmt.Errorf("change stream %s: %w%s", one.Want.Name, err, adviceFor(err))
	}
	return nil
}
