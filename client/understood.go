package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/geniemq/geniemq/wire"
)

// serviceInfo is the subject on which workers say what they are: they are micro services of NATS.
const serviceInfo = "$SRV.INFO.geniemq"

// quiet is how long after a worker's description others are waited for.
const quiet = 250 * time.Millisecond

// Understood returns the fields of a query that all workers which listen for direct search of an index understand, as the protocol names them
// ("filter", "rescore"). A worker refuses a query with a field that it does not know, so that whoever wants to use new ones asks
// first, or has all workers of a durable upgraded before.
//
// It asks all workers and waits until none has answered for a moment, so that it takes a quarter of a second. The connection needs the right to publish to
// $SRV.INFO.geniemq. The error is [ErrNotServed] where nobody serves the index.
func (c *Client) Understood(ctx context.Context, index string) ([]string, error) {
	if err := wire.CheckIndexName(index); err != nil {
		return nil, err
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	inbox := c.nc.NewRespInbox()
	sub, err := c.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, fmt.Errorf("asking workers what they understand: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := c.nc.PublishRequest(serviceInfo, inbox, nil); err != nil {
		return nil, fmt.Errorf("asking workers what they understand: %w", err)
	}
	var fields []string
	workers := 0
	for {
		wait, stop := ctx, context.CancelFunc(func() {})
		if workers > 0 {
			wait, stop = context.WithTimeout(ctx, quiet)
		}
		m, err := sub.NextMsgWithContext(wait)
		stop()
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, fmt.Errorf("asking workers what they understand: %w", cause(ctx))
		case errors.Is(err, nats.ErrNoResponders):
			return nil, fmt.Errorf("%w: %s", ErrNotServed, index)
		case err != nil && wait.Err() == nil:
			return nil, fmt.Errorf("asking workers what they understand: %w", err)
		case err != nil && workers == 0, err != nil && fields == nil:
			return nil, fmt.Errorf("%w: %s", ErrNotServed, index)
		case err != nil:
			return fields, nil
		}
		workers++
		if own, serves := understood(m.Data, c.subjects.Search(index)); serves && fields == nil {
			fields = own
		} else if serves {
			fields = slices.DeleteFunc(fields, func(name string) bool { return !slices.Contains(own, name) })
		}
	}
}

// understood is what a worker understands that serves the subject, by its description. Of one that does not say so it is what all of them did
// before any said it.
func understood(info []byte, subject string) (fields []string, serves bool) {
	var about struct {
		Endpoints []struct {
			Subject  string            `json:"subject"`
			Metadata map[string]string `json:"metadata"`
		} `json:"endpoints"`
	}
	if json.Unmarshal(info, &about) != nil {
		return nil, false
	}
	for _, e := range about.Endpoints {
		if e.Subject != subject {
			continue
		}
		said, ok := e.Metadata[wire.FieldsMetadata]
		if !ok {
			return strings.Fields("id k row text items candidates certify min_count with_payload timeout_ms"), true
		}
		return append([]string{}, strings.Fields(said)...), true
	}
	return nil, false
}
