package service

import (
	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/service/admin"
)

// holdings say who has an engine's memory. They may be asked for at any time, also after the engine was closed.
func holdings(engine gpuexec.Engine) []admin.Holding {
	var held []admin.Holding
	for _, h := range engine.Memory() {
		if engine.Info().Kind == gpuexec.CPU {
			h.Device = admin.Host
		}
		held = append(held, admin.Holding(h))
	}
	return held
}
