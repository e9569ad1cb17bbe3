package service

import (
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/service/admin"
)

// holdings say who has the engine's memory, of which the searchers share a part.
func (s *Service) holdings() (held []admin.Holding) {
	s.mu.Lock()
	running := s.running
	s.mu.Unlock()
	if !running {
		return nil
	}
	device := 0
	if s.engine.Info().Kind == gpuexec.CPU {
		device = -1
	}
	var shared int64
	for _, x := range s.indexes {
		owner := x.name
		for _, f := range x.index.Loaded() {
			c := f.Capacity
			shared = max(shared, c.SharedBytes)
			held = append(held, admin.Holding{Device: device, Owner: owner, Form: c.Form, Bytes: c.DeviceBytes - c.SharedBytes, Needed: true})
			owner += " (the version before)"
		}
	}
	return append(held, admin.Holding{Device: device, Owner: "batches", Form: "shared", Bytes: shared, Needed: true})
}
