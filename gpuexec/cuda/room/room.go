//go:build cuda

// Package room is what of a device's memory columns and their structures may take. Tag cuda.
package room

import (
	"errors"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/device"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/postings"
)

// Room is the memory of a device for the columns of an index, or of a builder. The host answers whatever has no room, only slower; so lists come first, of which what has no
// room is streamed, or refused: those of the index itself are placed already (run.Loader.Last), and those of announced indexes leave what they need.
type Room struct {
	host   *run.Host
	device *plan.Device
	owner  string
	later  []plan.Extent
}

// For is the room of an index, beside what others want that come later.
func For(e *device.Engine, h *run.Host, own run.Extent, later []run.Extent) *Room {
	r := &Room{host: h, device: e.Device(), owner: run.OwnerOf(own.Source)}
	for _, next := range later {
		if lists, ok := next.Source.Structure(postings.FamilyName).(*postings.Lists); ok {
			r.later = append(r.later, plan.Extent{Lists: lists, Stored: filter.StoredBy(next.Source.Structure(filter.StoredFamily)), Tiles: next.Tiles})
		}
	}
	return r
}

// New is the room of somebody else, who says what it is for.
func New(e *device.Engine, owner string) *Room {
	return &Room{host: e.Host, device: e.Device(), owner: owner}
}

// Take takes memory for a form of the index. Without room release is nil.
func (r *Room) Take(form string, bytes int64) (release func(), err error) {
	release, err = r.host.Budget.Place(func(free int64) ([]gpuexec.Holding, error) {
		if bytes > r.device.Left(free, r.later) {
			return nil, &gpuexec.DeviceError{Op: "making room for " + form, OutOfMemory: true, Err: errors.New("other indexes want what is left")}
		}
		return []gpuexec.Holding{{Owner: r.owner, Form: form, Bytes: bytes}}, nil
	})
	var full *gpuexec.DeviceError
	if errors.As(err, &full) && full.OutOfMemory {
		return nil, nil
	}
	return release, err
}
