//go:build cuda

package neighbours

import (
	"errors"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/device"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/filter"
	"github.com/geniemq/geniemq/index/postings"
)

// room is the memory of a device for the columns of an index. The host answers whatever has no room, only slower; so lists come first, of which what has no
// room is streamed, or refused: those of the index itself are placed already (run.Loader.Last), and those of announced indexes leave what they need.
type room struct {
	host   *run.Host
	device *plan.Device
	owner  string
	later  []plan.Extent
}

func roomFor(e *device.Engine, h *run.Host, own run.Extent, later []run.Extent) *room {
	r := &room{host: h, device: e.Device(), owner: run.OwnerOf(own.Source)}
	for _, next := range later {
		if lists, ok := next.Source.Structure(postings.FamilyName).(*postings.Lists); ok {
			r.later = append(r.later, plan.Extent{Lists: lists, Stored: filter.StoredBy(next.Source.Structure(filter.StoredFamily)), Tiles: next.Tiles})
		}
	}
	return r
}

// take takes memory for a form of the index. Without room release is nil.
func (r *room) take(form string, bytes int64) (release func(), err error) {
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
