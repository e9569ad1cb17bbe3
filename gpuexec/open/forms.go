package open

import (
	"context"
	"math"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/cuda/profile"
	"github.com/geniemq/geniemq/gpuexec/cuda/rescoring"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/postings"
	"github.com/geniemq/geniemq/index/verify"
)

// Forms says what the postings of a source take of a device that has room for all of their forms, and its texts, unless they are
// nil. None is there, and none is needed: texts are read, and of postings the directory. A source without postings takes
// nothing.
func Forms(ctx context.Context, x gpuexec.Source, texts verify.Texts) ([]gpuexec.Holding, error) {
	lists, ok := x.Structure(postings.FamilyName).(*postings.Lists)
	if !ok {
		return nil, nil
	}
	own := plan.Extent{Lists: lists, Tiles: run.AllTiles(x)}
	originals, err := rescoring.Survey(ctx, x, texts, own.Tiles, run.NewCrew(0))
	if err != nil {
		return nil, err
	}
	p, err := plan.Place(&plan.Device{BoundColumns: plan.MaxColumns, Profile: profile.Of("")}, own, originals, nil, plan.Limits{Memory: math.MaxInt64})
	if err != nil {
		return nil, err
	}
	return p.Holdings(run.OwnerOf(x)), nil
}
