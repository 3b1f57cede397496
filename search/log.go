package search

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"tgc/heuristic"
	"tgc/internal/filelock"
	"tgc/ir"
	"tgc/kernel/plan"
	"tgc/search/database"
	"tgc/target"
)

// A log is what a search saw, for those who fit prices to it: a file of JSON objects, one a
// line, that runs append to. A kernel has one line (LogKernel) with its canonical text, before
// the first of its candidates; each candidate one (LogCandidate), whose fields are those of a pair
// of planbench, so that a line of it is one too; each search of a kernel one (LogResult).

// LogStep names the step that kernels are of; empty where a graph is tuned.
type LogStep struct {
	Shape   string `json:"shape,omitempty"` // or model
	Mode    string `json:"mode,omitempty"`
	Batch   int    `json:"batch,omitempty"`
	Tokens  int    `json:"tokens,omitempty"` // of each sequence
	Context int    `json:"ctx,omitempty"`
	Depth   int    `json:"depth,omitempty"`
}

// Kinds of lines.
const (
	kernelRecord    = "kernel"
	candidateRecord = "candidate"
	resultRecord    = "result"
)

// LogKernel is a kernel of a log.
type LogKernel struct {
	Record    string       `json:"record"`
	Key       database.Key `json:"key"`
	Kernel    string       `json:"kernel"` // its name
	Target    string       `json:"target"` // as target.Parse knows it
	Board     string       `json:"board"`
	Device    string       `json:"device"`
	Opts      string       `json:"opts"`      // version of the Opts
	Heuristic string       `json:"heuristic"` // its plan
	Text      string       `json:"text"`      // canonical form
}

// LogCandidate is a candidate of a log. Weights are cold as far as ColdBytes say, all else is warm.
type LogCandidate struct {
	Record string       `json:"record"`
	Key    database.Key `json:"key"`
	LogStep
	Kernel    string             `json:"kernel"`
	Plan      string             `json:"plan"`
	Features  map[string]float64 `json:"features,omitempty"` // of which the price is made
	Price     float64            `json:"price_us,omitempty"` // 0: not one of heuristic.Candidates
	Rank      int                `json:"rank,omitempty"`     // by price, from 0
	Status    Status             `json:"status"`
	Reason    string             `json:"reason,omitempty"`
	Source    string             `json:"source,omitempty"`     // hash
	Time      float64            `json:"time_us,omitempty"`    // of a call
	ColdBytes int64              `json:"cold_bytes,omitempty"` // of weights that are read before the same are read again
	Share     float64            `json:"share"`                // of the step's time that the heuristic's plan takes
	Figures   *Figures           `json:"figures,omitempty"`    // of its program
}

// LogResult ends a search of a kernel: times of its comparison in turn.
type LogResult struct {
	Record string       `json:"record"`
	Key    database.Key `json:"key"`
	LogStep
	Kernel     string  `json:"kernel"`
	PlanBefore string  `json:"plan_before"`
	PlanAfter  string  `json:"plan_after"`
	Before     float64 `json:"before_us"`
	After      float64 `json:"after_us"`
	Share      float64 `json:"share"`
	Complete   bool    `json:"complete"`
	Note       string  `json:"note"` // what the step says
}

// LoggedKernel is a kernel of a log with all that is known of it.
type LoggedKernel struct {
	LogKernel
	Candidates []LogCandidate
	Results    []LogResult
}

// Step names the step in which the kernel was first tried, in words.
func (k *LoggedKernel) Step() string {
	if len(k.Candidates) == 0 || k.Candidates[0].Shape == "" {
		return ""
	}
	s := &k.Candidates[0].LogStep
	return strings.TrimSpace(fmt.Sprintf("%s %s", s.Shape, s.Mode))
}

// Log appends to a log.
type Log struct {
	Step LogStep // of what is logged now; a tune sets it

	file   *os.File
	device string
	has    map[database.Key]bool // kernels
}

// ErrLog is wrapped by the error of a file that is no log.
var ErrLog = errors.New("no log of candidates")

// OpenLog opens a log, or makes one. A line that a killed process has left unfinished is removed;
// a file that is no log stays as it is. One process has a log at a time.
func OpenLog(path, device string) (*Log, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	l := &Log{file: f, device: device, has: make(map[database.Key]bool)}
	if err := l.resume(); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

// resume reads what is there and goes to its end.
func (l *Log) resume() error {
	if err := filelock.Lock(l.file); err != nil {
		return fmt.Errorf("another process writes it: %w", err)
	}
	kernels, whole, err := readLog(l.file)
	if err != nil {
		return err
	}
	for _, k := range kernels {
		l.has[k.Key] = true
	}
	if err := l.unfinished(whole); err != nil {
		return err
	}
	if err := l.file.Truncate(whole); err != nil {
		return err
	}
	_, err = l.file.Seek(whole, io.SeekStart)
	return err
}

// unfinished checks that what no end of line follows is the beginning of a line of a log.
func (l *Log) unfinished(at int64) error {
	const begin = `{"record":"`
	rest := make([]byte, len(begin))
	n, err := l.file.ReadAt(rest, at)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if string(rest[:n]) != begin[:n] {
		return fmt.Errorf("%w: byte %d: %q, want a line that begins with %s", ErrLog, at, rest[:n], begin)
	}
	return nil
}

// Close closes the file.
func (l *Log) Close() error { return l.file.Close() }

// write appends a line, at once: a process that is killed leaves no more than one unfinished.
func (l *Log) write(records ...any) error {
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	for _, r := range records {
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	_, err := l.file.Write(text.Bytes())
	return err
}

// kernel writes the line of a kernel unless the log has it.
func (l *Log) kernel(k *TunedKernel, desc *target.Desc) error {
	key := database.KeyOf(k.Kernel.AST, desc)
	if l.has[key] {
		return nil
	}
	l.has[key] = true
	return l.write(LogKernel{
		Record: kernelRecord, Key: key, Kernel: k.Kernel.Name, Target: desc.Name, Board: database.BoardOf(desc), Device: l.device,
		Opts: plan.Version(), Heuristic: k.Kernel.Plan.String(), Text: ir.Text(k.Kernel.AST),
	})
}

// candidates writes a line for each outcome; prices are those of some plans.
func (l *Log) candidates(k *TunedKernel, desc *target.Desc, list []Outcome, prices map[string]priced) error {
	records := make([]any, len(list))
	for i, o := range list {
		p := prices[o.Plan]
		records[i] = LogCandidate{
			Record: candidateRecord, Key: database.KeyOf(k.Kernel.AST, desc), LogStep: l.Step, Kernel: k.Kernel.Name, Plan: o.Plan,
			Features: p.Features, Price: p.Price / 1000, Rank: p.rank,
			Status: o.Status, Reason: o.Reason, Source: o.Source, Time: o.Time, ColdBytes: o.ColdBytes, Share: k.Share, Figures: o.Figures,
		}
	}
	return l.write(records...)
}

// result writes how a search has ended.
func (l *Log) result(k *TunedKernel, desc *target.Desc, complete bool) error {
	return l.write(LogResult{
		Record: resultRecord, Key: database.KeyOf(k.Kernel.AST, desc), LogStep: l.Step, Kernel: k.Kernel.Name,
		PlanBefore: k.Before.Plan, PlanAfter: k.After.Plan, Before: k.Before.Time, After: k.After.Time, Share: k.Share, Complete: complete, Note: k.Note,
	})
}

// priced is a plan of heuristic.Candidates.
type priced struct {
	heuristic.Candidate
	rank int
}

// largestLine bounds a line of a log: the text of a kernel is some tens of kilobytes.
const largestLine = 16 << 20

// ReadLog reads a log, kernels in their order. An unfinished last line is left out.
func ReadLog(r io.Reader) ([]*LoggedKernel, error) {
	list, _, err := readLog(r)
	return list, err
}

// readLog also counts the bytes of finished lines.
func readLog(r io.Reader) (list []*LoggedKernel, whole int64, err error) {
	in := bufio.NewScanner(r)
	in.Buffer(nil, largestLine)
	in.Split(finishedLines)
	known := make(map[database.Key]*LoggedKernel)
	for n := 1; in.Scan(); n++ {
		line := in.Bytes()
		whole += int64(len(line)) + 1
		if err := readLine(line, known, &list); err != nil {
			return nil, 0, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := in.Err(); err != nil {
		return nil, 0, fmt.Errorf("%w: %w", ErrLog, err)
	}
	return list, whole, nil
}

// finishedLines splits at ends of lines, and leaves out what no end of line follows.
func finishedLines(data []byte, atEnd bool) (int, []byte, error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEnd {
		return len(data), nil, nil
	}
	return 0, nil, nil
}

// readLine adds a line to what is known.
func readLine(line []byte, known map[database.Key]*LoggedKernel, list *[]*LoggedKernel) error {
	var head struct {
		Record string       `json:"record"`
		Key    database.Key `json:"key"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return fmt.Errorf("%w: %w", ErrLog, err)
	}
	if head.Record == kernelRecord {
		k := &LoggedKernel{}
		if err := json.Unmarshal(line, &k.LogKernel); err != nil {
			return fmt.Errorf("%w: %w", ErrLog, err)
		}
		if known[k.Key] == nil {
			known[k.Key] = k
			*list = append(*list, k)
		}
		return nil
	}
	k := known[head.Key]
	if k == nil {
		return fmt.Errorf("%w: %q of kernel %q, of which no line comes before", ErrLog, head.Record, head.Key)
	}
	return k.read(head.Record, line)
}

// read adds a line of the kernel's.
func (k *LoggedKernel) read(record string, line []byte) (err error) {
	switch record {
	case candidateRecord:
		var c LogCandidate
		err = json.Unmarshal(line, &c)
		k.Candidates = append(k.Candidates, c)
	case resultRecord:
		var r LogResult
		err = json.Unmarshal(line, &r)
		k.Results = append(k.Results, r)
	default:
		return fmt.Errorf("%w: record %q, want kernel, candidate or result", ErrLog, record)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrLog, err)
	}
	return nil
}
