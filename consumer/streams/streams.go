// Package streams says what geniemq's streams in JetStream are like, makes those that are missing, and changes those that exist when somebody says so.
package streams

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/internal/bell"
)

// minStreamBytes is the smallest share of a full disk with which a stream is of any use.
const minStreamBytes = 16 << 20

// Ensure makes the streams that do not exist yet. Those that exist are used
// as they are; what differs from what would have been made is returned, for someone to judge. Where the server has
// not room enough, all new streams get the same smaller share, which shows as a difference too. A cluster that has no leader yet, or not
// enough servers for the replicas, is waited for until ctx ends.
func Ensure(ctx context.Context, js jetstream.JetStream, wanted []jetstream.StreamConfig) (differences []Difference, err error) {
	for {
		if differences, err = ensure(ctx, js, wanted); !passes(err) || !bell.Sleep(ctx, retryPause) {
			return differences, err
		}
	}
}

// retryPause is between attempts while a cluster is not ready.
const retryPause = 250 * time.Millisecond

// passes says whether an error may pass by itself: a cluster elects leaders, or waits for servers.
func passes(err error) bool {
	var api *jetstream.APIError
	if !errors.As(err, &api) || NoRoom(err) {
		return false
	}
	return api.ErrorCode == codeNoPeers || api.Code == 503
}

func ensure(ctx context.Context, js jetstream.JetStream, wanted []jetstream.StreamConfig) ([]Difference, error) {
	var missing []newStream
	largest := int64(0)
	for _, want := range wanted {
		_, err := js.Stream(ctx, want.Name)
		switch {
		case errors.Is(err, jetstream.ErrStreamNotFound):
			missing = append(missing, newStream{want: want})
			largest = max(largest, want.MaxBytes)
		case err != nil:
			return nil, fmt.Errorf("look at stream %s: %w", want.Name, err)
		}
	}
	for halvings := 0; len(missing) > 0; halvings++ {
		err := makeStreams(ctx, js, missing, halvings)
		if err == nil {
			break
		}
		if !NoRoom(err) || largest>>halvings <= minStreamBytes {
			return nil, err
		}
	}
	var found []Difference
	for _, want := range wanted {
		s, err := js.Stream(ctx, want.Name)
		if err != nil {
			return nil, fmt.Errorf("look at stream %s: %w", want.Name, err)
		}
		found = append(found, Differences(want, s.CachedInfo().Config)...)
	}
	return found, nil
}

// newStream is a stream that Ensure makes, and may therefore make smaller as long as it is at it.
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

// NoRoom says that a server has not room enough for what it was asked to make.
func NoRoom(err error) bool {
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
	case NoRoom(err):
		return " (give JetStream more room, free some, or ask for smaller streams)"
	case errors.As(err, &apiErr) && apiErr.ErrorCode == codeSubjectOverlap:
		return " (delete the other stream, or choose another prefix)"
	}
	return ""
}
