package train_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"tgc/nn/train"
)

// killedRun names the checkpoint of a run in a child process.
const killedRun = "TGC_TEST_KILLED_RUN"

// runUntilKilled trains on and on, with a checkpoint after every step.
func runUntilKilled(path string) {
	err := func() error {
		ctx := context.Background()
		dev, _, err := open(ctx)
		if err != nil {
			return err
		}
		trainer, err := train.New(ctx, dev, options(), network)
		if err != nil {
			return err
		}
		for n := 0; ; n++ {
			if _, err := advance(ctx, trainer, n, n+1); err != nil {
				return err
			}
			if err := trainer.Save(ctx, path); err != nil {
				return err
			}
		}
	}()
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// A process that is killed between or within its steps and checkpoints leaves a
// checkpoint that another one resumes from, to the same parameters as a run that
// was never interrupted.
func TestRunIsKilledAndResumed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.safetensors")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), self)
	child.Env = append(os.Environ(), killedRun+"="+path)
	child.Stderr = os.Stderr
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- child.Wait() }()
	for {
		if _, err := os.Stat(path); err == nil {
			break
		}
		select {
		case err := <-ended:
			t.Fatal("the child ended by itself:", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-ended

	dev, _ := device(t)
	resumed := newTrainer(t, dev, options())
	if err := resumed.Resume(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	report, err := resumed.Report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	end := report.Steps + 5
	mustAdvance(t, resumed, report.Steps, end)
	whole := newTrainer(t, dev, options())
	mustAdvance(t, whole, 0, end)
	if err := sameValues(values(t, whole), values(t, resumed)); err != nil {
		t.Errorf("killed after step %d: %v", report.Steps, err)
	}
}
