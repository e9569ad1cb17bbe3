package service

import (
	"errors"
	"testing"
	"time"

	"github.com/geniemq/geniemq/service/config"
)

// A service whose embedded server is lost ends, for a supervisor to start it again.
func TestLostBrokerEndsTheService(t *testing.T) {
	s, _, _ := startService(t, config.Config{}, Options{})
	reason := errors.New("lost")
	opts, err := s.brokerOptions()
	if err != nil {
		t.Fatal(err)
	}
	opts.OnLost(reason)
	select {
	case <-s.Failed():
	case <-time.After(patience):
		t.Fatal("the service goes on without its server")
	}
	if err := s.Err(); err != reason {
		t.Errorf("the reason is %v", err)
	}
	if s.Status().Fault == "" {
		t.Error("the status does not say so")
	}
}
