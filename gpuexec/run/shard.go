package run

import (
	"context"

	"github.com/geniemq/geniemq/gpuexec"
)

// A member is an engine that can also load a part of an index.
type Member interface {
	gpuexec.Engine
	// loadTiles is Load of some tiles only; ids are those of the index. There is at least one tile, unless the
	// index has none.
	LoadTiles(ctx context.Context, own Extent, later []Extent) (Shard, error)
}

// A shard is what a member holds of an index. Its Search sees only that.
type Shard interface {
	gpuexec.Searcher
	Matcher
}
