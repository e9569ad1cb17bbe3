package run

import (
	"errors"

	"github.com/geniemq/geniemq/gpuexec"
	"github.com/geniemq/geniemq/index"
)

// indexOf returns the index of a snapshot of one segment with base 0.
func IndexOf(s *gpuexec.Snapshot) (*index.Index, error) {
	if s == nil || len(s.Segments) != 1 || s.Segments[0].Base != 0 || s.Segments[0].Index == nil {
		return nil, errors.New("loading a snapshot: it must have exactly one segment, an index with base 0")
	}
	return s.Segments[0].Index, nil
}

// indexesOf returns the index of a snapshot and those of the ones that follow it.
func IndexesOf(snapshot *gpuexec.Snapshot, later []*gpuexec.Snapshot) (indexes []*index.Index, err error) {
	for _, s := range append([]*gpuexec.Snapshot{snapshot}, later...) {
		x, err := IndexOf(s)
		if err != nil {
			return nil, err
		}
		indexes = append(indexes, x)
	}
	return indexes, nil
}
