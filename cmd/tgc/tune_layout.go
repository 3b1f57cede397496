package main

import (
	"context"

	"tgc/engine"
	"tgc/llm"
	"tgc/schedule"
	"tgc/search"
	"tgc/search/job"
)

// layouts tries other layouts of a model's weights, by the first of the steps, where decisions are tried at
// all. The first that is taken is there for all that follows; nil: none is.
func (t *tuner) layouts(ctx context.Context, run tuneRun, options search.TuneOptions) (*search.TunedLayout, error) {
	if job.IsGraph(run.name) || options.Fusion == 0 || t.config.Records != engine.RecordsByPrice {
		return nil, nil
	}
	m, err := openModel(ctx, run.name, openFile)
	if err != nil {
		return nil, err
	}
	list := llm.LayoutDecisions(m, t.dev.Target(), run.mode)
	m.Close()
	for _, d := range list {
		if search.LayoutTried(d, t.dev.Target(), options) {
			continue
		}
		if taken, err := t.layout(ctx, run, d, options); taken != nil || err != nil {
			return taken, err
		}
	}
	return nil, nil
}

// layout tries one.
func (t *tuner) layout(ctx context.Context, run tuneRun, d schedule.Decision, options search.TuneOptions) (*search.TunedLayout, error) {
	usual := t.config
	defer func() { t.config = usual }()
	t.config.DB = "" // as prices have it
	run.steps = run.steps[:1]
	plain, free, err := t.steps(ctx, run)
	defer free()
	if err != nil {
		return nil, err
	}
	t.config = llm.WithLayout(t.config, engine.Decision{Decision: d, Origin: engine.FromGiven})
	other, free, err := t.steps(ctx, run)
	defer free()
	if err != nil {
		return nil, err
	}
	options.Config = usual
	options.Config.DB = ""
	return search.TryLayout(ctx, plain[0].Step, other[0].Step, d, t.dev.Target(), options)
}
