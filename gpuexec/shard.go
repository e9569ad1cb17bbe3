package gpuexec

import "context"

// A member is an engine that can also load a part of an index.
type member interface {
	Engine
	// loadTiles is Load of some tiles only; ids are those of the index. There is at least one tile, unless the
	// index has none.
	loadTiles(ctx context.Context, own extent, later []extent) (shard, error)
}

// A shard is what a member holds of an index. Its Search sees only that.
type shard interface {
	Searcher
	matcher
}

// A stageShard is a shard whose batches' stages can be told apart.
type stageShard interface {
	shard
	StageTimer
	stageMatcher
}
