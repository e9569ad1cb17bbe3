//go:build cuda

// Package neighbours is searches by distance on a device: what of columns lies there, and what is launched. Which queries it answers, and how they are cut
// into pieces, package nearest beside it decides.
package neighbours

import (
	"context"
	"errors"
	"fmt"

	hosted "github.com/geniemq/geniemq/gpuexec/cpu/nearest"
	"github.com/geniemq/geniemq/gpuexec/cuda/device"
	"github.com/geniemq/geniemq/gpuexec/cuda/nearest"
	"github.com/geniemq/geniemq/gpuexec/cuda/room"
	"github.com/geniemq/geniemq/gpuexec/cuda/textscan"
	"github.com/geniemq/geniemq/gpuexec/run"
)

// Loader is that of the family distance for an engine on a device: the host's matcher, and beside it the paths that the device's profile or
// CUDAOptions.Untried switches on. A path without room is left out, since the host can do all that it does.
func Loader(e *device.Engine) run.Loader {
	return run.Loader{Last: true, Load: func(ctx context.Context, h *run.Host, own run.Extent, later []run.Extent) (run.Matcher, error) {
		host, err := hosted.Load(h, own)
		if err != nil {
			return nil, err
		}
		paths, err := pathsOf(ctx, e, room.For(e, h, own, later), host, own)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("loading columns onto %s: %w", e.About.Device, err), nearest.New(host, paths...).Close())
		}
		return nearest.New(host, paths...), nil
	}}
}

// pathsOf loads the paths that are on. After an error there may be some, too.
func pathsOf(ctx context.Context, e *device.Engine, r *room.Room, host *hosted.Matcher, own run.Extent) (paths []nearest.Path, err error) {
	on := e.Device().Profile.Paths
	var vectors *scan
	if on.Vectors || e.Untried() {
		if vectors, err = loadScan(e, r, own, host); err != nil {
			return paths, err
		}
		paths = append(paths, vectors)
	}
	var texts *textscan.Path
	if on.Texts || e.Untried() {
		if texts, err = textscan.New(ctx, e, r, host, own); err != nil {
			return paths, err
		}
		if texts != nil {
			paths = append(paths, texts)
		}
	}
	if vectors != nil && (on.Trees || on.Depth || on.TextTrees || e.Untried()) {
		trees, err := loadDescents(e, r, vectors, texts)
		if err != nil {
			return paths, err
		}
		if trees != nil { // before the rows and texts that they are of are closed
			paths = append([]nearest.Path{trees}, paths...)
		}
	}
	if vectors != nil && (on.Ranks || e.Untried()) {
		ranks, err := loadRanks(e, r, vectors, texts)
		if err != nil {
			return paths, err
		}
		if ranks != nil {
			paths = append([]nearest.Path{ranks}, paths...)
		}
	}
	if vectors != nil && (on.Cells || e.Untried()) {
		cells, err := loadCells(e, r, vectors)
		if err != nil {
			return paths, err
		}
		if cells != nil {
			paths = append([]nearest.Path{cells}, paths...)
		}
	}
	if vectors != nil && texts != nil && (on.Grams || e.Untried()) {
		grams, err := loadGrams(e, r, vectors, texts)
		if err != nil {
			return paths, err
		}
		if grams != nil {
			paths = append([]nearest.Path{grams}, paths...)
		}
	}
	return paths, nil
}
