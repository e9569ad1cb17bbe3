package streams

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// RemoveSettled removes messages from a stream of queries that were acknowledged and are there all the same: a server whose disk
// is full takes an acknowledgement, fails to remove the message, and does not try again. Nobody is given it, but it takes room, and
// a durable that is made anew would begin with it. What a durable says to be acknowledged without a gap is never
// wanted again, so this is safe at any time.
func RemoveSettled(ctx context.Context, js jetstream.JetStream, name string) error {
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return fmt.Errorf("look at stream %s: %w", name, err)
	}
	var faults []error
	list := stream.ListConsumers(ctx)
	for c := range list.Info() {
		floor := c.AckFloor.Stream
		if floor == 0 || c.Config.AckPolicy != jetstream.AckExplicitPolicy {
			continue
		}
		for _, filter := range Filters(c.Config) {
			if err := stream.Purge(ctx, jetstream.WithPurgeSubject(filter), jetstream.WithPurgeSequence(floor+1)); err != nil {
				faults = append(faults, fmt.Errorf("remove what %s has settled: %w", c.Name, err))
			}
		}
	}
	return errors.Join(append(faults, list.Err())...)
}

// Filters are the subjects that a consumer takes, sorted. None are all.
func Filters(c jetstream.ConsumerConfig) []string {
	if c.FilterSubject != "" {
		return []string{c.FilterSubject}
	}
	return slices.Sorted(slices.Values(c.FilterSubjects))
}
