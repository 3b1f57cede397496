package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tgc/search"
)

// tuneReport is what tune --json prints.
type tuneReport struct {
	Step      string         `json:"step,omitempty"`
	Kernels   []tuneKernel   `json:"kernels"`
	Decisions []tuneDecision `json:"decisions"` // of the schedule, that were taken
	Flips     int            `json:"decisions_tried"`
	Before    float64        `json:"before_tok_s"` // of all sequences; 0 for a graph, or where it was not measured
	After     float64        `json:"after_tok_s"`
	StepUS    [2]float64     `json:"step_us"`          // before and after, in turn
	Spread    [2][2]float64  `json:"step_quarters_us"` // of the rounds of both
	Saved     float64        `json:"saved"`            // part of it, 0 if that is no more than noise
	Seconds   float64        `json:"seconds"`
	DB        string         `json:"db"`
}

// tuneDecision is what the schedule does otherwise than by price.
type tuneDecision struct {
	Decision string `json:"decision"`
	Of       string `json:"of"` // the value, in words
	Outcome  string `json:"outcome"`
}

type tuneKernel struct {
	Name       string                `json:"name"`
	Role       string                `json:"role"`
	Share      float64               `json:"share"`
	Before     float64               `json:"before_us"`
	After      float64               `json:"after_us"`
	PlanBefore string                `json:"plan_before"`
	PlanAfter  string                `json:"plan_after"`
	Candidates int                   `json:"candidates"`
	Rejected   int                   `json:"rejected"`
	Reasons    map[search.Status]int `json:"rejected_as,omitempty"`
	Stored     bool                  `json:"stored"`
	Outcome    string                `json:"outcome"`
	Why        string                `json:"why,omitempty"` // what of the program differs
	Figures    [2]*search.Figures    `json:"figures"`       // of the program, before and after, where known
}

// report describes what became of a step.
func (s *openedStep) report(t *search.Tuned, db string, took time.Duration) *tuneReport {
	r := &tuneReport{Step: s.Name, Kernels: []tuneKernel{}, StepUS: [2]float64{round(t.Before), round(t.After)}, Spread: [2][2]float64{roundBoth(t.Spread[0]), roundBoth(t.Spread[1])}, Saved: round(t.Saved), Seconds: round(took.Seconds()), DB: db}
	if t.Before > 0 && t.After > 0 {
		tokens := float64(s.tokens) * 1e6
		r.Before, r.After = round(tokens/t.Before), round(tokens/t.After)
	}
	r.Flips, r.Decisions = t.Flips, []tuneDecision{}
	for _, d := range t.Decisions {
		r.Decisions = append(r.Decisions, tuneDecision{d.Decision.String(), d.Of, d.Note})
	}
	names := s.roles(t.Step)
	for _, k := range t.Kernels {
		r.Kernels = append(r.Kernels, tuneKernel{
			Name: k.Kernel.Name, Role: names[k.In], Share: round(k.Share), Before: round(k.Before.Time), After: round(k.After.Time),
			PlanBefore: k.Before.Plan, PlanAfter: k.After.Plan, Candidates: k.Candidates, Rejected: sum(k.Rejected), Reasons: k.Rejected, Stored: k.Stored, Outcome: k.Note,
			Why: k.Why, Figures: [2]*search.Figures{k.Before.Figures, k.After.Figures},
		})
	}
	return r
}

func roundBoth(v [2]float64) [2]float64 { return [2]float64{round(v[0]), round(v[1])} }

// tuneResult is what became of several steps.
type tuneResult struct {
	Steps   []*tuneReport `json:"steps"`
	Seconds float64       `json:"seconds"`
	DB      string        `json:"db"`
}

// print prints one step by itself, unless the user named steps.
func (r *tuneResult) print(cmd *cobra.Command, asJSON, named bool) error {
	switch {
	case asJSON && named:
		return printJSON(cmd, r)
	case asJSON:
		return printJSON(cmd, r.Steps[0])
	}
	for i, step := range r.Steps {
		if step.Step != "" {
			if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s%s\n", strings.Repeat("\n", min(i, 1)), step.Step); err != nil {
				return err
			}
		}
		if err := step.print(cmd); err != nil {
			return err
		}
	}
	return nil
}

func (r *tuneReport) print(cmd *cobra.Command) error {
	rows := [][]string{{"KERNEL", "ROLE", "SHARE", "BEFORE US", "AFTER US", "CANDIDATES", "REJECTED", "OUTCOME", "WHY", "PLAN"}}
	for _, k := range r.Kernels {
		rows = append(rows, []string{
			k.Name, k.Role, fmt.Sprintf("%.1f %%", 100*k.Share), fmt.Sprintf("%.4g", k.Before), fmt.Sprintf("%.4g", k.After),
			fmt.Sprint(k.Candidates), reasonsText(k.Reasons), k.Outcome, k.Why, k.PlanAfter,
		})
	}
	if err := printTable(cmd.OutOrStdout(), rows); err != nil {
		return err
	}
	for _, d := range r.Decisions {
		if _, err := fmt.Fprintf(cmd.OutOrStdout(), "decided: %s, %s: %s\n", d.Decision, d.Of, d.Outcome); err != nil {
			return err
		}
	}
	if r.Flips > 0 {
		if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%d other decisions of the schedule tried\n", r.Flips-len(r.Decisions)); err != nil {
			return err
		}
	}
	step := "no plan was taken"
	switch {
	case r.StepUS[0] == 0 && slices.ContainsFunc(r.Kernels, func(k tuneKernel) bool { return k.PlanAfter != k.PlanBefore }):
		step = "stopped before the step was timed"
	case r.StepUS[0] > 0:
		rates := ""
		if r.Before > 0 {
			rates = fmt.Sprintf(" (%.4g and %.4g tokens a second)", r.Before, r.After)
		}
		step = fmt.Sprintf("step: %.5g us before (%.5g to %.5g), %.5g us after (%.5g to %.5g)%s, in turn: %.2f %% less beyond noise",
			r.StepUS[0], r.Spread[0][0], r.Spread[0][1], r.StepUS[1], r.Spread[1][0], r.Spread[1][1], rates, 100*r.Saved)
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "\n%s; %.0f s; %s\n", step, r.Seconds, r.DB)
	return err
}

// reasonsText counts rejected candidates.
func reasonsText(reasons map[search.Status]int) string {
	list := []string{fmt.Sprint(sum(reasons))}
	for _, status := range slices.Sorted(maps.Keys(reasons)) {
		list = append(list, fmt.Sprintf("%s %d", status, reasons[status]))
	}
	return strings.Join(list, ", ")
}

func sum(counts map[search.Status]int) (n int) {
	for _, v := range counts {
		n += v
	}
	return n
}
