package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/geniemq/geniemq/consumer/streams"
)

// ensure looks at the stream and the durable, makes the durable if it is not there, and decides what the messages
// that are here belong to.
func (c *Consumer) ensure(ctx context.Context) error {
	c.mu.Lock()
	doubts := c.doubts
	c.mu.Unlock()

	name := c.stream()
	stream, err := c.js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("stream %s does not exist; it is made when geniemq starts: %w", name, err)
	} else if err != nil {
		return fmt.Errorf("look at stream %s: %w", name, err)
	}
	info, err := c.ensureDurable(ctx, stream)
	if err != nil {
		return err
	}

	c.mu.Lock()
	made := !info.Created.Equal(c.durable)
	c.adopt(info)
	if doubts == c.doubts { // else something happened meanwhile: look again
		c.settleDoubt(stream.CachedInfo().Created, info.Created)
	} else {
		c.wakePull.Ring()
	}
	c.mu.Unlock()
	if made {
		for _, d := range durableDifferences(c.config(), info.Config) {
			c.opts.OnDifference(d)
		}
	}
	return nil
}

// stream is the name of the stream.
func (c *Consumer) stream() string { return c.opts.Subjects.Stream(c.opts.Class) }

func (c *Consumer) config() jetstream.ConsumerConfig {
	config := jetstream.ConsumerConfig{
		Durable:       c.opts.Subjects.Durable(c.opts.Index),
		Description:   "geniemq: queries for index " + c.opts.Index,
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       c.opts.AckWait,
		MaxDeliver:    -1,
		MaxAckPending: c.opts.MaxAckPending,
	}
	if filters := c.opts.Subjects.Filters(c.opts.Class, c.opts.Index); len(filters) == 1 {
		config.FilterSubject = filters[0]
	} else {
		config.FilterSubjects = filters
	}
	return config
}

func (c *Consumer) ensureDurable(ctx context.Context, stream jetstream.Stream) (*jetstream.ConsumerInfo, error) {
	want := c.config()
	cons, err := stream.Consumer(ctx, want.Durable)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		cons, err = stream.CreateConsumer(ctx, want)
		if errors.Is(err, jetstream.ErrConsumerExists) { // another worker was faster, with other settings
			cons, err = stream.Consumer(ctx, want.Durable)
		}
	}
	if apiErr := (*jetstream.APIError)(nil); errors.As(err, &apiErr) &&
		(apiErr.ErrorCode == codeFilterNotUnique || apiErr.ErrorCode == codeUnfiltered) {
		return nil, fmt.Errorf("another consumer of the work queue %s takes %s already, such as one without a filter; delete it: %w",
			c.stream(), strings.Join(streams.Filters(want), " and "), err)
	}
	switch {
	case errors.Is(err, jetstream.ErrNotPullConsumer):
		return nil, fmt.Errorf("the durable %s is a push consumer; delete it: %w", want.Durable, err)
	case err != nil:
		return nil, fmt.Errorf("look at durable %s: %w", want.Durable, err)
	}
	info := cons.CachedInfo()
	switch {
	case !slices.Equal(streams.Filters(info.Config), streams.Filters(want)):
		return nil, fmt.Errorf("the durable %s takes %q instead of %s; delete it", want.Durable, strings.Join(streams.Filters(info.Config), " "), strings.Join(streams.Filters(want), " "))
	case info.Config.AckPolicy != want.AckPolicy:
		return nil, fmt.Errorf("the durable %s has the ack policy %s instead of explicit; delete it", want.Durable, info.Config.AckPolicy)
	}
	return info, nil
}

// Error codes of nats-server for which the library has no name.
const (
	codeUnfiltered      jetstream.ErrorCode = 10099 // multiple non-filtered consumers not allowed on workqueue stream
	codeFilterNotUnique jetstream.ErrorCode = 10100 // filtered consumer not unique on workqueue stream
)

func durableDifferences(want, have jetstream.ConsumerConfig) []streams.Difference {
	d := streams.Differ{Of: "durable " + want.Durable}
	d.Check("ack_wait", have.AckWait, want.AckWait)
	d.Check("max_ack_pending", have.MaxAckPending, want.MaxAckPending)
	d.Check("max_deliver", have.MaxDeliver, want.MaxDeliver)
	return d.Found
}

// adopt takes over what the durable prescribes. c.mu is held.
func (c *Consumer) adopt(info *jetstream.ConsumerInfo) {
	if info.Config.AckWait != c.ackWait {
		c.ackWait = info.Config.AckWait
		c.wakeAlive.Ring()
	}
	c.batchLimit = info.Config.MaxRequestBatch
	c.byteLimit = int64(info.Config.MaxRequestMaxBytes)
	c.expiryLimit = info.Config.MaxRequestExpires
	c.clustered, c.leader = info.Cluster != nil, ""
	if c.clustered {
		c.leader = info.Cluster.Leader
	}
	c.minBytes = max(c.minBytes, c.nc.MaxPayload()+overhead)
	c.observe(info)
}

// observe takes over the state of the durable. c.mu is held.
func (c *Consumer) observe(info *jetstream.ConsumerInfo) {
	c.stats.Pending, c.stats.AckPending = info.NumPending, info.NumAckPending
	c.paused = nil
	if info.Paused {
		until := ""
		if t := info.Config.PauseUntil; t != nil {
			until = " until " + t.UTC().Format(time.RFC3339)
		}
		name, stream := info.Name, c.stream()
		c.paused = fmt.Errorf("the durable %s is paused%s; resume it: nats consumer resume %s %[1]s", name, until, stream)
	}
}

// settleDoubt says which stream and which durable there are, and registers what came in the meantime. c.mu is held.
func (c *Consumer) settleDoubt(created, durable time.Time) {
	if !c.created.IsZero() && !created.Equal(c.created) {
		for _, m := range c.outstanding { // the numbers mean other messages now
			m.gone = true
		}
		clear(c.outstanding)
		c.bytes = 0
		c.ready = nil
	}
	c.created, c.durable, c.doubt = created, durable, false
	c.sequence = 0
	limbo := c.limbo
	c.limbo = nil
	now := time.Now()
	for _, msg := range limbo {
		if meta, err := msg.Metadata(); err == nil {
			c.register(msg, meta, now)
		}
	}
}

// readInfo reads the state of the durable.
func (c *Consumer) readInfo(ctx context.Context) error {
	name := c.opts.Subjects.Durable(c.opts.Index)
	cons, err := c.js.Consumer(ctx, c.stream(), name)
	if err != nil {
		return fmt.Errorf("look at durable %s: %w", name, err)
	}
	info := cons.CachedInfo()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !info.Created.Equal(c.durable) {
		c.distrust()
		c.wakePull.Ring()
		return nil
	}
	c.observe(info)
	return nil
}

// Stats are what the consumer has counted since it was made, and the state of the durable, which all its workers share.
type Stats struct {
	Redelivered uint64 // deliveries that were not a message's first
	// Pending is how many messages the durable has not delivered to anyone, and AckPending how many it has delivered
	// and not been told the end of, when it was last looked at.
	Pending    uint64
	AckPending int
}

// Stats returns the counts.
func (c *Consumer) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats
}

// Oldest is when the stream took the oldest of the messages that are outstanding, by the server's clock; the zero time when none is.
func (c *Consumer) Oldest() (oldest time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range c.outstanding {
		if oldest.IsZero() || m.Timestamp.Before(oldest) {
			oldest = m.Timestamp
		}
	}
	return oldest
}

// Progress says whether the consumer gets on.
type Progress struct {
	// Err is why nothing can be pulled at present, nil when it can, also if nothing is because of Hold or the window.
	Err error
	// LastPull is when the server last answered a request, with messages or with the word that there are none; the
	// zero time when it never did. It does not advance while nothing is asked for.
	LastPull time.Time
	// Outstanding messages and their bytes.
	Outstanding int
	Bytes       int64
}

// Progress returns the present state.
func (c *Consumer) Progress() Progress {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := Progress{Err: c.err, LastPull: c.lastPull, Outstanding: len(c.outstanding), Bytes: c.bytes}
	if p.Err == nil && c.created.IsZero() {
		p.Err = ErrNotStarted
	}
	return p
}

// ErrNotStarted says that the consumer has not found its durable yet, nor why it cannot.
var ErrNotStarted = errors.New("the consumer has not started yet")
