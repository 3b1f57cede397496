package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"tgc/gguf"
	"tgc/internal/atomicfile"
	"tgc/internal/lists"
	"tgc/llm"
)

func newInspect() *cobra.Command {
	var tensor, out string
	var device deviceFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "inspect MODEL.gguf",
		Short: "Print metadata and tensors, or one tensor's values",
		Long: "Print the metadata and the tensors of a model file. --dump writes one tensor to --out\n" +
			"as raw little-endian float32, dequantised by a kernel that is compiled for --device.",
		Example: "  tgc inspect model.gguf\n  tgc inspect model.gguf --json\n" +
			"  tgc inspect model.gguf --dump blk.0.attn_q.weight --out q.f32",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (tensor == "") != (out == "") {
				return usagef("inspect: --dump TENSOR and --out FILE go together")
			}
			f, err := openFile(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			switch {
			case tensor != "":
				return dumpTensor(cmd, f, tensor, out, &device)
			case asJSON:
				return printJSON(cmd, describeFile(f))
			}
			return printFile(cmd.OutOrStdout(), f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&tensor, "dump", "", "tensor to write as float32")
	flags.StringVar(&out, "out", "", "file for --dump")
	flags.BoolVar(&asJSON, "json", false, "print a JSON object")
	device.register(flags)
	return cmd
}

func dumpTensor(cmd *cobra.Command, f *gguf.File, name, out string, device *deviceFlags) error {
	t, ok := f.Tensor(name)
	if !ok {
		return fmt.Errorf("gguf: %s: there is no tensor %s (tgc inspect lists them)", gguf.Quote(f.Name()), gguf.Quote(name))
	}
	dev, config, err := device.open(cmd)
	if err != nil {
		return err
	}
	defer dev.Close()
	file, err := atomicfile.Create(out)
	if err != nil {
		return err
	}
	defer file.Abort()
	if err := llm.DumpTensor(cmd.Context(), dev, config, t, file); err != nil {
		return err
	}
	return file.Commit()
}

// fileInfo is what inspect --json prints.
type fileInfo struct {
	File      string         `json:"file"`
	Version   int            `json:"version"`
	Alignment int            `json:"alignment"`
	Bytes     int64          `json:"bytes"`
	Shards    int            `json:"shards"`
	Metadata  []metadataInfo `json:"metadata"`
	Tensors   []tensorInfo   `json:"tensors"`
}

type metadataInfo struct {
	Key   string `json:"key"`
	Type  string `json:"type"`
	Value any    `json:"value"` // whole, as JSON has it
	text  string // for people, cut
}

type tensorInfo struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Shape  []int  `json:"shape"`
	Offset int64  `json:"offset"`
	Bytes  int    `json:"bytes"`
	Shard  int    `json:"shard"`
}

func describeFile(f *gguf.File) fileInfo {
	info := fileInfo{
		File: f.Name(), Version: f.Version(), Alignment: f.Alignment(), Bytes: f.Size(), Shards: f.Shards(),
		Metadata: []metadataInfo{}, Tensors: []tensorInfo{},
	}
	for key, v := range f.Metadata() {
		info.Metadata = append(info.Metadata, metadataInfo{cut(key), typeText(v), valueJSON{v}, v.String()})
	}
	for _, t := range f.Tensors() {
		info.Tensors = append(info.Tensors, tensorInfo{cut(t.Name), t.Type.String(), t.Shape(), t.Offset, t.Bytes(), t.Shard})
	}
	return info
}

// valueJSON is a value of a file as JSON: arrays are whole, numbers that JSON has no word for
// are texts.
type valueJSON struct{ gguf.Value }

// MarshalJSON is called when the value is printed, so that a table decodes no vocabulary.
func (v valueJSON) MarshalJSON() ([]byte, error) {
	plain, err := v.plain()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err = e.Encode(plain)
	return out.Bytes(), err
}

func (v valueJSON) plain() (any, error) {
	switch v.Type() {
	case gguf.ArrayValue:
		list, err := v.Values()
		return lists.Map(list, func(x gguf.Value) valueJSON { return valueJSON{x} }), err
	case gguf.StringValue:
		return v.Str()
	case gguf.BoolValue:
		return v.Bool()
	case gguf.Float32Value, gguf.Float64Value:
		x, err := v.Float()
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Sprint(x), err
		}
		if v.Type() == gguf.Float32Value {
			return float32(x), err // prints no more digits than it has
		}
		return x, err
	case gguf.Uint64Value:
		return v.Uint()
	}
	return v.Int()
}

// listLimit bounds the rows of a table: a file can hold a million of either.
const listLimit = 20000

func printFile(w io.Writer, f *gguf.File) error {
	info := describeFile(f)
	_, err := fmt.Fprintf(w, "%s: GGUF version %d, %s in %d file(s), alignment %d, %d keys, %d tensors\n\n",
		gguf.Quote(info.File), info.Version, byteSize(info.Bytes), info.Shards, info.Alignment, len(info.Metadata), len(info.Tensors))
	if err != nil {
		return err
	}
	rows := [][]string{{"KEY", "TYPE", "VALUE"}}
	for _, m := range info.Metadata[:min(len(info.Metadata), listLimit)] {
		rows = append(rows, []string{printable(m.Key), m.Type, m.text})
	}
	rows = append(rows, more(len(info.Metadata)))
	if err := printTable(w, rows); err != nil {
		return err
	}
	rows = [][]string{{"", "", "", "", ""}, {"TENSOR", "TYPE", "SHAPE", "OFFSET", "BYTES"}}
	for _, t := range info.Tensors[:min(len(info.Tensors), listLimit)] {
		rows = append(rows, []string{printable(t.Name), t.Type, shapeText(t.Shape), fmt.Sprintf("0x%x", t.Offset), fmt.Sprint(t.Bytes)})
	}
	return printTable(w, append(rows, more(len(info.Tensors))))
}

// more is the row that says how many were left out.
func more(n int) []string {
	if n <= listLimit {
		return nil
	}
	return []string{fmt.Sprintf("... and %d more (--json lists all)", n-listLimit)}
}

func typeText(v gguf.Value) string {
	if v.Type() == gguf.ArrayValue {
		return fmt.Sprintf("%s[%d]", v.Elem(), v.Len())
	}
	return v.Type().String()
}

func shapeText(shape []int) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(shape), "[]"), " ", " x ")
}

// printable is a name as it is where that is safe, else quoted and cut.
func printable(name string) string {
	if quoted := gguf.Quote(name); quoted != `"`+name+`"` {
		return quoted
	}
	return name
}

// cut shortens names that no published model has.
func cut(name string) string {
	const limit = 1 << 10
	if len(name) > limit {
		return name[:limit] + "..."
	}
	return name
}
