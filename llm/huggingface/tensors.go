package huggingface

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/x448/float16"

	"tgc/gguf"
	"tgc/internal/lists"
	"tgc/ir"
	"tgc/packed"
	"tgc/safetensors"
)

// tensor is a tensor of the GGUF file and where its values come from.
type tensor struct {
	name    string
	dims    []int                 // row length first
	parts   []*safetensors.Tensor // one after the other: the matrices of experts
	heads   int                   // of the rows, whose pairs are put side by side; 0: as they are
	plusOne bool
	values  []float32    // in place of parts
	mx      *microscaled // in place of parts
}

// typesOf picks the type of a tensor.
type typesOf func(*tensor) gguf.Type

// storedType are the types of weights that stay as they are.
var storedType = map[safetensors.DType]gguf.Type{safetensors.F32: gguf.F32, safetensors.F16: gguf.F16, safetensors.BF16: gguf.BF16}

// storedTypes keeps matrices in the type of their file; vectors and routers are F32.
func storedTypes(t *tensor) gguf.Type {
	switch {
	case t.mx != nil:
		return gguf.MXFP4
	case len(t.parts) == 0 || len(t.dims) < 2 || strings.Contains(t.name, "ffn_gate_inp") || strings.HasSuffix(t.name, ".bias"):
		return gguf.F32
	}
	return storedType[t.parts[0].DType]
}

// tensors translates all weights, in the order of their GGUF names.
func (d *folder) tensors() ([]*tensor, error) {
	c := d.config
	list := make(map[string]*tensor)
	for _, x := range c.factors {
		list[x.name] = &tensor{name: x.name, dims: []int{len(x.values)}, values: x.values}
	}
	for _, name := range d.weights.Names() {
		t, _ := d.weights.Tensor(name)
		if err := c.place(list, name, t); err != nil {
			return nil, fmt.Errorf("%s: tensor %s: %w", d.path, gguf.Quote(name), err)
		}
	}
	out := make([]*tensor, 0, len(list))
	for _, t := range list {
		if err := t.complete(c); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", d.path, t.name, err)
		}
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b *tensor) int { return strings.Compare(a.name, b.name) })
	if list["token_embd.weight"] == nil {
		return nil, fmt.Errorf("%s: there is no embed_tokens.weight", d.path)
	}
	return out, nil
}

// place adds one tensor of the folder to the list.
func (c *config) place(list map[string]*tensor, name string, t *safetensors.Tensor) error {
	target, expert, ok := c.rename(name)
	switch {
	case !ok:
		return fmt.Errorf("its place in %s is not known", c.raw.ModelType)
	case target == "":
		return nil
	case c.family.packedExperts && strings.Contains(name, ".experts."):
		return c.placeMicroscaled(list, name, target, t)
	case len(t.Shape) < 1 || len(t.Shape) > 2 || t.Shape[0] < 1 || t.Shape[len(t.Shape)-1] < 1:
		return fmt.Errorf("shape is %v, want one or two dimensions", t.Shape)
	}
	if _, ok := storedType[t.DType]; !ok {
		return fmt.Errorf("type is %s, want F32, F16 or BF16", t.DType)
	}
	x := list[target]
	if x == nil {
		x = &tensor{name: target, plusOne: c.family.normPlusOne && strings.HasSuffix(target, "norm.weight")}
		list[target] = x
	}
	if expert < 0 {
		if len(x.parts) > 0 {
			return fmt.Errorf("%s is there twice", target)
		}
		x.parts = []*safetensors.Tensor{t}
	} else {
		if x.parts == nil {
			x.parts = make([]*safetensors.Tensor, c.experts)
		}
		if expert >= len(x.parts) || x.parts[expert] != nil {
			return fmt.Errorf("expert %d of %d", expert, len(x.parts))
		}
		x.parts[expert] = t
	}
	if c.family.interleaved {
		switch part := lastParts(target); part {
		case "attn_q.weight", "attn_q.bias":
			x.heads = c.heads
		case "attn_k.weight", "attn_k.bias":
			x.heads = c.kvHeads
		}
	}
	return nil
}

// lastParts is a tensor's name without its block.
func lastParts(name string) string {
	if rest, ok := strings.CutPrefix(name, "blk."); ok {
		_, name, _ = strings.Cut(rest, ".")
	}
	return name
}

// complete checks that all parts are there and alike, and sets the dimensions.
func (t *tensor) complete(c *config) error {
	if t.mx != nil {
		return t.mx.complete(t)
	}
	if t.values != nil {
		return nil
	}
	for i, p := range t.parts {
		if p == nil {
			return fmt.Errorf("expert %d is missing", i)
		}
		if !slices.Equal(p.Shape, t.parts[0].Shape) || p.DType != t.parts[0].DType {
			return fmt.Errorf("expert %d is %s %v, others are %s %v", i, p.DType, p.Shape, t.parts[0].DType, t.parts[0].Shape)
		}
	}
	shape := t.parts[0].Shape
	for i := len(shape) - 1; i >= 0; i-- {
		t.dims = append(t.dims, shape[i])
	}
	if strings.HasSuffix(t.name, "_exps.weight") {
		t.dims = append(t.dims, len(t.parts))
	}
	if rows := shape[0]; t.heads > 0 && (rows%t.heads != 0 || rows/t.heads%2 != 0) {
		return fmt.Errorf("%d rows of %d heads have no pairs", rows, t.heads)
	}
	return nil
}

// fill returns the source of a tensor's data in a type.
func (t *tensor) fill(typ gguf.Type) (gguf.Fill, error) {
	if t.mx != nil {
		return t.mx.fill, nil
	}
	if t.values != nil {
		return gguf.FromBytes([]byte(ir.EncodeTable(ir.F32, lists.Map(t.values, func(v float32) float64 { return float64(v) })))), nil
	}
	if !t.plusOne && t.heads == 0 && len(t.parts) == 1 && storedType[t.parts[0].DType] == typ {
		return gguf.FromBytes(t.parts[0].Data), nil
	}
	f, ok := packed.ByGGUF(uint32(typ))
	if !ok || !f.CanEncode() {
		return nil, fmt.Errorf("%s: values cannot be packed as %s", t.name, typ)
	}
	return func(chunk []byte, offset int64) error {
		first := offset / int64(f.BlockBytes) * int64(f.BlockElems)
		values := make([]float32, len(chunk)/f.BlockBytes*f.BlockElems)
		t.read(values, int(first))
		if err := f.Encode(chunk, values); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		return nil
	}, nil
}

// read sets values to those from an element on.
func (t *tensor) read(values []float32, first int) {
	columns := t.dims[0]
	if len(t.parts[0].Shape) == 1 {
		columns = 1
	}
	rows := t.parts[0].Shape[0] // of one part
	for i := 0; i < len(values); {
		at := first + i
		row, column := at/columns, at%columns
		part := t.parts[row/rows]
		n := min(columns-column, len(values)-i)
		decode(values[i:i+n], part, t.row(row%rows, rows)*columns+column)
		i += n
	}
	for i := range values {
		if t.plusOne {
			values[i]++
		}
	}
}

// row is where a row lies in the file: a head's pairs, which are halves there, are put
// side by side.
func (t *tensor) row(row, rows int) int {
	if t.heads == 0 {
		return row
	}
	size := rows / t.heads
	head, in := row/size, row%size
	return head*size + in%2*(size/2) + in/2
}

// decode reads values of a tensor from an element on.
func decode(values []float32, t *safetensors.Tensor, at int) {
	switch t.DType {
	case safetensors.F32:
		for i := range values {
			values[i] = math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*(at+i):]))
		}
	case safetensors.BF16:
		for i := range values {
			values[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(t.Data[2*(at+i):])) << 16)
		}
	default:
		for i := range values {
			values[i] = float16.Frombits(binary.LittleEndian.Uint16(t.Data[2*(at+i):])).Float32()
		}
	}
}

// rename is the GGUF name of a tensor, "" for one that says nothing new, with the number of an
// expert, -1 of others.
func (c *config) rename(name string) (target string, expert int, ok bool) {
	for _, prefix := range []string{"model.language_model.", "language_model.model.", "language_model.", "model."} {
		if rest, found := strings.CutPrefix(name, prefix); found {
			name = rest
			break
		}
	}
	switch {
	case name == "embed_tokens.weight":
		return "token_embd.weight", -1, true
	case name == "norm.weight":
		return "output_norm.weight", -1, true
	case name == "lm_head.weight" && c.tied, strings.HasSuffix(name, "rotary_emb.inv_freq"),
		strings.HasPrefix(name, "vision_tower."), strings.HasPrefix(name, "multi_modal_projector."):
		return "", -1, true
	case name == "lm_head.weight":
		return "output.weight", -1, true
	}
	rest, found := strings.CutPrefix(name, "layers.")
	number, rest, dot := strings.Cut(rest, ".")
	layer, err := strconv.Atoi(number)
	if !found || !dot || err != nil || layer < 0 || layer >= c.layers {
		return "", -1, false
	}
	base, kind := rest, "weight"
	if i := strings.LastIndexByte(rest, '.'); i >= 0 && (rest[i+1:] == "weight" || rest[i+1:] == "bias") {
		base, kind = rest[:i], rest[i+1:]
	}
	base, expert = c.renamePart(base)
	if base == "" {
		return "", -1, false
	}
	return fmt.Sprintf("blk.%d.%s.%s", layer, base, kind), expert, true
}

// renamePart is rename inside a block.
func (c *config) renamePart(base string) (string, int) {
	if norm := c.family.norms[base]; norm != "" {
		return norm, -1
	}
	if part := parts[base]; part != "" {
		return part, -1
	}
	if !c.family.experts {
		return "", -1
	}
	if part := routers[base]; part != "" {
		return part, -1
	}
	for _, prefix := range []string{"mlp.experts.", "block_sparse_moe.experts."} {
		rest, found := strings.CutPrefix(base, prefix)
		if !found {
			continue
		}
		if c.family.packedExperts {
			return packedParts[rest], -1
		}
		number, name, _ := strings.Cut(rest, ".")
		if expert, err := strconv.Atoi(number); err == nil && expert >= 0 {
			return expertParts[name], expert
		}
	}
	return "", -1
}

var (
	parts = map[string]string{
		"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
		"self_attn.qkv_proj": "attn_qkv", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "self_attn.sinks": "attn_sinks",
		"mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "mlp.gate_up_proj": "ffn_up",
	}
	routers     = map[string]string{"mlp.gate": "ffn_gate_inp", "mlp.router": "ffn_gate_inp", "block_sparse_moe.gate": "ffn_gate_inp"}
	expertParts = map[string]string{
		"gate_proj": "ffn_gate_exps", "up_proj": "ffn_up_exps", "down_proj": "ffn_down_exps",
		"w1": "ffn_gate_exps", "w3": "ffn_up_exps", "w2": "ffn_down_exps",
	}
)
