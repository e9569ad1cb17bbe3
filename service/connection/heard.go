package connection

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
)

// Heard says whether anybody answers requests on a subject, by an empty one. Where nobody does, the server says so at once.
func Heard(ctx context.Context, nc *nats.Conn, subject string) (bool, error) {
	_, err := nc.RequestWithContext(ctx, subject, nil)
	if errors.Is(err, nats.ErrNoResponders) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("ask whether anybody answers on %s: %w", subject, err)
	}
	return true, nil
}
