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
	for i, x := range s.indexes {
		c := x.searcher.Capacity()
		if i == 0 {
			held = append(held, admin.Holding{Device: device, Owner: "batches", Form: "shared", Bytes: c.SharedBytes, Needed: true})
		}
		held = append(held, admin.Holding{Device: device, Owner: x.name, Form: c.Form, Bytes: c.DeviceBytes - c.SharedBytes, Needed: true})
	}
	return held
}
