package consumer

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/internal/human"
	"github.com/geniemq/geniemq/wire"
)

// minStreamBytes is the smallest share of a full disk with which a stream is of any use.
const minStreamBytes = 16 << 20

// Difference is a setting of something that existed already, or that got less than it should have.
type Difference struct {
	Of      string // such as "stream GENIE_RESULTS"
	Setting string // its name in JetStream's configuration
	Have    string
	Want    string
}

func (d Difference) String() string {
	return fmt.Sprintf("%s: %s is %s instead of %s", d.Of, d.Setting, d.Have, d.Want)
}

// EnsureStreams makes the streams of queries, results and dead letters that do not exist yet. Those that exist are used
// as they are; what differs from what would have been made is returned, for someone to judge. Where the server has
// not room enough, all new streams get the same smaller share, which shows as a difference too.
func EnsureStreams(ctx context.Context, js jetstream.JetStream, subjects wire.Subjects) ([]Difference, error) {
	wanted := streamConfigs(subjects)
	var missing []newStream
	for _, want := range wanted {
		_, err := js.Stream(ctx, want.Name)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			missing = append(missing, newStream{want: want})
		case err != nil:
			return nil, fmt.Errorf("look at stream %s: %w", want.Name, err)
		}
	}
	for halvings := 0; len(missing) > 0; halvings++ {
		err := makeStreams(ctx, js, missing, halvings)
		if err == nil {
			break
		}
		if !noRoom(err) || wanted[0].MaxBytes>>halvings <= minStreamBytes {
			return nil, err
		}
	}
	var found []Difference
	for _, want := range wanted {
		s, err := js.Stream(ctx, want.Name)
		if err != nil {
			return nil, fmt.Errorf("look at stream %s: %w", want.Name, err)
		}
		found = append(found, streamDifferences(want, s.CachedInfo().Config)...)
	}
	return found, nil
}

// newStream is a stream that EnsureStreams makes, and may therefore make smaller as long as it is at it.
type newStream struct {
	want          jetstream.StreamConfig
	made, adopted bool
}

func makeStreams(ctx context.Context, js jetstream.JetStream, missing []newStream, halvings int) error {
	for i := range missing {
		m := &missing[i]
		cfg := m.want
		cfg.MaxBytes = max(cfg.MaxBytes>>halvings, min(cfg.MaxBytes, minStreamBytes))
		var err error
		switch {
		case m.adopted:
		case m.made:
			_, err = js.UpdateStream(ctx, cfg)
		default:
			_, err = js.CreateStream(ctx, cfg)
			if m.adopted = errors.Is(err, jetstream.ErrStreamNameAlreadyInUse); m.adopted { // another worker was faster
				err = nil
			}
			m.made = err == nil
		}
		if err != nil {
			return fmt.Errorf("make stream %s of %s: %w%s", cfg.Name, formatBytes(cfg.MaxBytes), err, adviceFor(err))
		}
	}
	return nil
}

// Error codes of nats-server for which the library has no name.
const (
	codeAccountRoom    jetstream.ErrorCode = 10002 // resource limits exceeded for account
	codeNoPeers        jetstream.ErrorCode = 10005 // no suitable peers for placement, such as for lack of room
	codeServerRoom     jetstream.ErrorCode = 10023 // insufficient resources
	codeStorageRoom    jetstream.ErrorCode = 10047 // insufficient storage resources available
	codeSubjectOverlap jetstream.ErrorCode = 10065 // subjects overlap with an existing stream
	codeStreamRoom     jetstream.ErrorCode = 10122 // stream max bytes exceeds account limit max stream bytes
)

func noRoom(err error) bool {
	var apiErr *jetstream.APIError
	if !errors.As(err, &apiErr) {
		return false
	}
	switch apiErr.ErrorCode {
	case codeAccountRoom, codeServerRoom, codeStorageRoom, codeStreamRoom:
		return true
	case codeNoPeers:
		return strings.Contains(apiErr.Description, "insufficient storage")
	}
	return false
}

func adviceFor(err error) string {
	var apiErr *jetstream.APIError
	switch {
	case noRoom(err):
		return " (give JetStream more room, or free some)"
	case errors.As(err, &apiErr) && apiErr.ErrorCode == codeSubjectOverlap:
		return " (delete the other stream, or choose another prefix)"
	}
	return ""
}

// streamConfigs are the streams as they should be. Who wants them larger, or kept by several servers of a cluster, makes them beforehand.
func streamConfigs(subjects wire.Subjects) []jetstream.StreamConfig {
	return []jetstream.StreamConfig{{
		Name:                 subjects.QueryStream(),
		Description:          "geniemq: queries that wait for their answer",
		Subjects:             []string{subjects.Queries()},
		Retention:            jetstream.WorkQueuePolicy, // cannot be changed later
		Storage:              jetstream.FileStorage,
		MaxBytes:             4 << 30,
		MaxMsgsPerSubject:    1_000_000, // per index
		Discard:              jetstream.DiscardNew,
		DiscardNewPerSubject: true,
		Duplicates:           2 * time.Minute,
		Replicas:             1,
	}, {
		Name:        subjects.ResultStream(),
		Description: "geniemq: answers for those who were absent",
		Subjects:    []string{subjects.Results()},
		Retention:   jetstream.LimitsPolicy,
		Storage:     jetstream.FileStorage,
		MaxAge:      time.Hour,
		MaxBytes:    4 << 30,
		Discard:     jetstream.DiscardNew, // the service holds queries back rather than lose answers
		Duplicates:  10 * time.Minute,
		Replicas:    1,
	}, {
		Name:        subjects.DeadStream(),
		Description: "geniemq: messages that were given up, and why",
		Subjects:    []string{subjects.DeadAll()},
		Retention:   jetstream.LimitsPolicy,
		Storage:     jetstream.FileStorage,
		MaxAge:      7 * 24 * time.Hour,
		MaxBytes:    1 << 30,
		Discard:     jetstream.DiscardOld,
		Duplicates:  2 * time.Minute,
		Replicas:    1,
	}}
}

func streamDifferences(want, have jetstream.StreamConfig) []Difference {
	d := differ{of: "stream " + want.Name}
	d.check("subjects", strings.Join(have.Subjects, " "), strings.Join(want.Subjects, " "))
	d.check("retention", have.Retention, want.Retention)
	d.check("storage", have.Storage, want.Storage)
	d.check("max_age", have.MaxAge, want.MaxAge)
	d.check("max_bytes", formatBytes(have.MaxBytes), formatBytes(want.MaxBytes))
	d.check("max_msgs", formatCount(have.MaxMsgs), formatCount(want.MaxMsgs))
	d.check("max_msgs_per_subject", formatCount(have.MaxMsgsPerSubject), formatCount(want.MaxMsgsPerSubject))
	d.check("max_msg_size", formatBytes(int64(have.MaxMsgSize)), formatBytes(int64(want.MaxMsgSize)))
	d.check("discard", have.Discard, want.Discard)
	d.check("discard_new_per_subject", have.DiscardNewPerSubject, want.DiscardNewPerSubject)
	d.check("duplicate_window", have.Duplicates, want.Duplicates)
	d.check("num_replicas", have.Replicas, want.Replicas)
	d.check("sealed", have.Sealed, want.Sealed)
	return d.found
}

type differ struct {
	of    string
	found []Difference
}

func (d *differ) check(setting string, have, want any) {
	if have != want {
		d.found = append(d.found, Difference{d.of, setting, fmt.Sprint(have), fmt.Sprint(want)})
	}
}

func formatCount(n int64) string {
	if n <= 0 {
		return "unlimited"
	}
	return strconv.FormatInt(n, 10)
}

func formatBytes(n int64) string {
	if n <= 0 {
		return "unlimited"
	}
	return human.Size(n).String()
}

// RemoveSettled removes messages from the query stream that were acknowledged and are there all the same: a server whose disk
// is full takes an acknowledgement, fails to remove the message, and does not try again. Nobody is given it, but it takes room, and
// a durable that is made anew would begin with it. What a durable says to be acknowledged without a gap is never
// wanted again, so this is safe at any time.
func RemoveSettled(ctx context.Context, js jetstream.JetStream, subjects wire.Subjects) error {
	name := subjects.QueryStream()
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return fmt.Errorf("look at stream %s: %w", name, err)
	}
	var faults []error
	list := stream.ListConsumers(ctx)
	for c := range list.Info() {
		floor := c.AckFloor.Stream
		if floor == 0 || c.Config.FilterSubject == "" || c.Config.AckPolicy != jetstream.AckExplicitPolicy {
			continue
		}
		if err := stream.Purge(ctx, jetstream.WithPurgeSubject(c.Config.FilterSubject), jetstream.WithPurgeSequence(floor+1)); err != nil {
			faults = append(faults, fmt.Errorf("remove what %s has settled: %w", c.Name, err))
		}
	}
	return errors.Join(append(faults, list.Err())...)
}
