package run

import (
	"context"

	"github.com/geniemq/geniemq/gpuexec"
)

// A stageMatcher is a matcher that can tell stages apart.
type StageMatcher interface {
	// matchStages and scanStages are match and scan, and add to the stages.
	MatchStages(ctx context.Context, jobs []*Job, timed *gpuexec.Stages) error
	ScanStages(ctx context.Context, jobs []*ScanJob, timed *gpuexec.Stages) error
}

// searchStages is search, and measures the stages of its matcher.
func (p *Pipeline) SearchTimed(ctx context.Context, m StageMatcher, plans []gpuexec.Plan, answers []gpuexec.Answer) (gpuexec.Stages, error) {
	t := &timedMatcher{of: m}
	err := p.search(ctx, t, plans, answers)
	return t.stages, err
}

// timedMatcher is the matcher of a batch whose stages are wanted.
type timedMatcher struct {
	of     StageMatcher
	stages gpuexec.Stages
}

func (t *timedMatcher) Match(ctx context.Context, jobs []*Job) error {
	return t.of.MatchStages(ctx, jobs, &t.stages)
}

func (t *timedMatcher) Scan(ctx context.Context, jobs []*ScanJob) error {
	return t.of.ScanStages(ctx, jobs, &t.stages)
}
