package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// lookInterval is how often servers are asked how they are.
const lookInterval = 500 * time.Millisecond

// quietly is for how long after its disk has room again a server may seem well while not all is answered. A durable that was made while no disk had room may be
// nowhere, on servers that say nothing of it, until they are started anew.
const quietly = time.Minute

func (w *world) freeDisks() error {
	for _, s := range w.servers.nodes {
		if s.disk != nil && s.disk.Full {
			if err := s.disk.Free(); err != nil {
				return err
			}
			s.freed = time.Now()
		}
	}
	return nil
}

// mend does what an operator or a liveness probe does with a server that had no room: a stream that once failed to write never writes again, or all of JetStream
// is shut down, until the server is started anew.
func (w *world) mend(ctx context.Context) error {
	if time.Since(w.mended) < lookInterval {
		return nil
	}
	w.mended = time.Now()
	for _, s := range w.servers.nodes {
		if s.disk != nil && s.disk.Full || !s.running() {
			continue
		}
		sick := s.sick(ctx)
		if sick == "" && !s.freed.IsZero() && time.Since(s.freed) > quietly {
			sick = "its disk was full, and not all is answered"
		}
		if sick == "" {
			continue
		}
		s.freed = time.Time{}
		fmt.Fprintf(w.options.Log, "%s is started anew: %s\n", s.name, sick)
		s.signal(syscall.SIGTERM)
		select {
		case <-s.ended:
		case <-time.After(10 * time.Second):
			s.kill()
		}
		if err := s.start(); err != nil {
			return err
		}
		if err := s.awake(ctx); err != nil {
			return err
		}
	}
	return nil
}

// sick says what of a server has failed until it is started anew, or nothing.
func (s *node) sick(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.monitor+"/healthz?details=true", nil)
	if err != nil {
		return ""
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil { // it starts, or ends
		return ""
	}
	defer response.Body.Close()
	var health server.HealthStatus
	if err := json.NewDecoder(response.Body).Decode(&health); err != nil {
		return ""
	}
	for _, e := range health.Errors {
		if e.Type == server.HealthzErrorJetStream && strings.Contains(e.Error, "not enabled") || strings.Contains(e.Error, "write error") {
			return strings.TrimSpace(e.Stream + " " + e.Error)
		}
	}
	return ""
}
