package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"tgc/internal/lists"
)

func main() {
	var o options
	flag.StringVar(&o.tgc, "tgc", "", "binary to run; default: built from this tree")
	flag.StringVar(&o.out, "o", "", "file to write the list to")
	flag.StringVar(&o.against, "against", "internal/kernelhash/testdata/kernels.txt", "list that -check compares with")
	flag.BoolVar(&o.check, "check", false, "compare with -against; differences are printed and make the exit code 1")
	flag.BoolVar(&o.quick, "quick", false, "a tenth of the zoo")
	flag.StringVar(&o.only, "only", "", "compile what has this text in its name")
	flag.StringVar(&o.graphs, "graphs", "internal/kernelhash/testdata", "folder of library programs")
	flag.IntVar(&o.jobs, "jobs", runtime.NumCPU(), "compilations at a time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "kernelhash:", err)
		os.Exit(1)
	}
}

type options struct {
	tgc, out, against, only, graphs string
	check, quick                    bool
	jobs                            int
}

func (o *options) run(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "kernelhash")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if o.tgc == "" {
		o.tgc = filepath.Join(folder, "tgc")
		build := exec.CommandContext(ctx, "go", "build", "-o", o.tgc, "./cmd/tgc")
		if text, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("go build: %w: %s", err, text)
		}
	}
	list, err := o.list()
	if err != nil {
		return err
	}
	lines := o.hashAll(ctx, list, folder)
	if err := ctx.Err(); err != nil {
		return err
	}
	if o.out != "" {
		if err := os.WriteFile(o.out, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			return err
		}
	}
	if o.check {
		return o.compare(lines)
	}
	return nil
}

func (o *options) list() ([]compilation, error) {
	all, err := compilations(o.graphs)
	if err != nil {
		return nil, err
	}
	list := lists.Filter(all, func(c compilation) bool { return (c.quick || !o.quick) && strings.Contains(c.name, o.only) })
	return list, nil
}

// hashAll compiles the list with several processes at a time and returns a line
// for each compilation, in the order of the list.
func (o *options) hashAll(ctx context.Context, list []compilation, folder string) []string {
	lines := make([]string, len(list))
	next := make(chan int)
	var wait sync.WaitGroup
	for range o.jobs {
		wait.Go(func() {
			for i := range next {
				line, err := o.hash(ctx, list[i], filepath.Join(folder, fmt.Sprint(i)))
				if err != nil {
					line = list[i].name + " error: " + strings.ReplaceAll(err.Error(), "\n", " ")
				}
				lines[i] = line
			}
		})
	}
	for i := range list {
		next <- i
	}
	close(next)
	wait.Wait()
	return lines
}

// kernelRecord is what is compared of a kernel's record in manifest.json, beside
// its source. How its plan is explained is not: words may change.
type kernelRecord struct {
	Name         string          `json:"name"`
	File         string          `json:"file"`
	Launches     int             `json:"launches"`
	Grid         []int64         `json:"grid"`
	Block        []int64         `json:"block"`
	SharedBytes  int64           `json:"shared_bytes"`
	Args         json.RawMessage `json:"args"`
	BytesRead    int64           `json:"bytes_read"`
	BytesWritten int64           `json:"bytes_written"`
	Flops        int64           `json:"flops"`
	Plan         []string        `json:"plan"`
}

// hash compiles and returns "name launches scratch kernel:hash ..".
func (o *options) hash(ctx context.Context, c compilation, folder string) (string, error) {
	defer os.RemoveAll(folder)
	cmd := exec.CommandContext(ctx, o.tgc, append(c.args, "-o", folder)...)
	// Without NVIDIA's tools: they would only add figures, and take their time.
	cmd.Env = append(os.Environ(), "TGC_CUDA_PATH="+folder, "PATH=/nowhere")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, text)
	}
	data, err := os.ReadFile(filepath.Join(folder, "manifest.json"))
	if err != nil {
		return "", err
	}
	var m struct {
		Kernels  []kernelRecord `json:"kernels"`
		Launches int            `json:"launches_per_step"`
		Scratch  int64          `json:"scratch_bytes"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return "", err
	}
	line := fmt.Sprintf("%s launches=%d scratch=%d", c.name, m.Launches, m.Scratch)
	for _, k := range m.Kernels {
		source, err := os.ReadFile(filepath.Join(folder, k.File))
		if err != nil {
			return "", err
		}
		record, err := json.Marshal(k)
		if err != nil {
			return "", err
		}
		sum := sha256.Sum256(append(source, record...))
		line += fmt.Sprintf(" %s:%x", k.Name, sum[:6])
	}
	return line, nil
}

// compare prints the lines that differ from the list of before.
func (o *options) compare(lines []string) error {
	file, err := os.Open(o.against)
	if err != nil {
		return err
	}
	defer file.Close()
	before := make(map[string]string)
	scan := bufio.NewScanner(file)
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		name, _, _ := strings.Cut(scan.Text(), " ")
		before[name] = scan.Text()
	}
	if err := scan.Err(); err != nil {
		return err
	}
	different, missing := 0, 0
	for _, line := range lines {
		name, _, _ := strings.Cut(line, " ")
		switch old, known := before[name]; {
		case !known:
			missing++
			fmt.Printf("new: %s\n", line)
		case old != line:
			different++
			fmt.Printf("%s:\n%s", name, difference(old, line))
		}
	}
	fmt.Printf("%d compilations: %d as before, %d different, %d not in %s\n", len(lines), len(lines)-different-missing, different, missing, o.against)
	if different > 0 {
		return errors.New("kernels differ")
	}
	return nil
}

// difference lists the words that only one of two lines has.
func difference(old, now string) string {
	var text strings.Builder
	before, after := strings.Fields(old), strings.Fields(now)
	for i := range max(len(before), len(after)) {
		switch {
		case i >= len(after):
			fmt.Fprintf(&text, "  - %s\n", before[i])
		case i >= len(before):
			fmt.Fprintf(&text, "  + %s\n", after[i])
		case before[i] != after[i]:
			fmt.Fprintf(&text, "  - %s\n  + %s\n", before[i], after[i])
		}
	}
	return text.String()
}
