package broker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/geniemq/geniemq/internal/bell"
)

const (
	// lookInterval is how often the embedded server is asked how it is.
	lookInterval = time.Second
	// roomProbe is how many bytes the disk must take before the server is started anew: two of the largest messages.
	roomProbe = 2 * MaxPayload
	// mendPause is the first pause between two starts of a server that soon refuses messages again. It doubles up to
	// maxMendPause.
	mendPause    = 5 * time.Second
	maxMendPause = time.Minute
	// mendAttempts is how often one start is tried.
	mendAttempts = 5
)

// Fault says why the server takes no messages at present, or nil. It is mended when the cause is gone.
func (b *Broker) Fault() error { return *b.fault.Load() }

// lookAfter mends the server until ctx ends.
//
// A stream of nats-server that once failed to write, because the disk was full, never writes again: the error stays with it
// until the server is started anew (filestore.go, setWriteErr). Publishers get no answer, and the stream's state does not show
// the error; only the server's own health check does. A new start loses nothing, since what was acknowledged is on the disk and
// what was refused was not acknowledged. Clients connect again by themselves.
func (b *Broker) lookAfter(ctx context.Context) {
	pause, mended := mendPause, time.Time{}
	for bell.Sleep(ctx, lookInterval) {
		fault := b.look()
		b.fault.Store(&fault)
		if fault == nil {
			if time.Since(mended) > maxMendPause {
				pause = mendPause
			}
			continue
		}
		b.log.Error("the server takes no messages; it is started anew when the disk takes some again", "error", fault)
		for {
			if err := b.tryDisk(); err == nil && time.Since(mended) > pause {
				break
			} else if err != nil {
				b.fault.Store(new(fmt.Errorf("%w; %w: free some room, it goes on by itself then", fault, err)))
			}
			if !bell.Sleep(ctx, lookInterval) {
				return
			}
		}
		if !mended.IsZero() {
			pause = min(2*pause, maxMendPause)
		}
		if err := b.mend(ctx); err != nil {
			if ctx.Err() == nil && b.lost != nil {
				b.lost(fmt.Errorf("the embedded nats-server could not be started anew: %w", err))
			}
			return
		}
		mended = time.Now()
		b.fault.Store(new(error))
		b.log.Warn("the server was started anew, after the disk was full")
		if b.mended != nil {
			b.mended(ctx)
		}
	}
}

// look says what of the server has failed until it is started anew, or nil.
func (b *Broker) look() error {
	srv := b.server.Load()
	if !srv.JetStreamEnabled() {
		return errors.New("the embedded nats-server has turned JetStream off, as it does when it cannot write to its data folder")
	}
	for _, e := range srv.Healthz(&server.HealthzOptions{Details: true}).Errors {
		if e.Type == server.HealthzErrorStream && strings.Contains(e.Error, "write error") {
			return fmt.Errorf("the embedded nats-server cannot write to its disk: stream %s: %s", e.Stream, e.Error)
		}
	}
	return nil
}

// tryDisk says why the data folder does not take roomProbe bytes, or nil.
func (b *Broker) tryDisk() error {
	path := filepath.Join(b.dir, "room")
	defer os.Remove(path)
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("the disk takes no files: %w", err)
	}
	defer file.Close()
	block := make([]byte, 1<<20)
	_, _ = rand.Read(block) // which no file system compresses; Read never fails
	for written := 0; written < roomProbe; written += len(block) {
		if _, err := file.Write(block); err != nil {
			return fmt.Errorf("the disk is full: %w", err)
		}
	}
	if err := file.Sync(); err != nil {
		return fmt.Errorf("the disk is full: %w", err)
	}
	return nil
}

// mend starts the server anew, at the same address.
func (b *Broker) mend(ctx context.Context) error {
	b.end()
	var err error
	for range mendAttempts {
		if err = b.start(ctx); err == nil {
			return nil
		}
		b.log.Error("the server could not be started anew", "error", err)
		if !bell.Sleep(ctx, lookInterval) {
			break
		}
	}
	return err
}
