package gpuexec

import "context"

// A stageMatcher is a matcher that can tell stages apart.
type stageMatcher interface {
	// matchStages and scanStages are match and scan, and add to the stages.
	matchStages(ctx context.Context, jobs []*matchJob, timed *Stages) error
	scanStages(ctx context.Context, jobs []*scanJob, timed *Stages) error
}

// searchStages is search, and measures the stages of its matcher.
func (p *pipeline) searchStages(ctx context.Context, m stageMatcher, plans []Plan, answers []Answer) (Stages, error) {
	t := &timedMatcher{of: m}
	err := p.search(ctx, t, plans, answers)
	return t.stages, err
}

// timedMatcher is the matcher of a batch whose stages are wanted.
type timedMatcher struct {
	of     stageMatcher
	stages Stages
}

func (t *timedMatcher) match(ctx context.Context, jobs []*matchJob) error {
	return t.of.matchStages(ctx, jobs, &t.stages)
}

func (t *timedMatcher) scan(ctx context.Context, jobs []*scanJob) error {
	return t.of.scanStages(ctx, jobs, &t.stages)
}
