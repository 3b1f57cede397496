package huggingface

import (
	"fmt"
	"strings"

	"tgc/internal/lists"
	"tgc/safetensors"
)

// packedParts are the tensors of gpt-oss's experts, without weight or bias.
var packedParts = map[string]string{
	"gate_up_proj_blocks": "ffn_gate_exps", "gate_up_proj_scales": "ffn_gate_exps", "gate_up_proj_bias": "ffn_gate_exps",
	"down_proj_blocks": "ffn_down_exps", "down_proj_scales": "ffn_down_exps", "down_proj_bias": "ffn_down_exps",
}

// microscaled are MXFP4 matrices of experts as gpt-oss stores them: blocks [E, N, K/32, 16]
// of neighbouring pairs in a byte, scales [E, N, K/32]. Rows of gate and up take turns.
type microscaled struct {
	blocks, scales *safetensors.Tensor
	step, first    int // of the rows: every second one, from the first or second on
}

// placeMicroscaled adds the blocks, scales or biases of experts. Those of gate and up are
// two tensors of the GGUF file.
func (c *config) placeMicroscaled(list map[string]*tensor, name, target string, t *safetensors.Tensor) error {
	target = strings.TrimSuffix(target, ".weight")
	target = strings.TrimSuffix(target, ".bias")
	targets, step := []string{target}, 1
	if strings.Contains(name, "gate_up_proj") {
		targets, step = []string{target, strings.Replace(target, "ffn_gate_exps", "ffn_up_exps", 1)}, 2
	}
	for first, target := range targets {
		if strings.HasSuffix(name, "_bias") {
			x, err := biasOf(target+".bias", t, step, first)
			if err != nil {
				return err
			}
			list[x.name] = x
			continue
		}
		x := list[target+".weight"]
		if x == nil {
			x = &tensor{name: target + ".weight", mx: &microscaled{step: step, first: first}}
			list[x.name] = x
		}
		if t.DType != safetensors.U8 {
			return fmt.Errorf("type is %s, want U8", t.DType)
		}
		if strings.HasSuffix(name, "_blocks") {
			x.mx.blocks = t
		} else {
			x.mx.scales = t
		}
	}
	return nil
}

// biasOf takes every step-th bias [E, N] from the first on.
func biasOf(name string, t *safetensors.Tensor, step, first int) (*tensor, error) {
	if len(t.Shape) != 2 || t.Shape[1]%step != 0 || t.Shape[0] < 1 || t.Shape[1] < 1 {
		return nil, fmt.Errorf("shape is %v, want two dimensions", t.Shape)
	}
	if _, ok := storedType[t.DType]; !ok {
		return nil, fmt.Errorf("type is %s, want F32, F16 or BF16", t.DType)
	}
	all := make([]float32, t.Shape[0]*t.Shape[1])
	decode(all, t, 0)
	rows := t.Shape[1] / step
	return &tensor{name: name, dims: []int{rows, t.Shape[0]}, values: lists.Make(t.Shape[0]*rows, func(i int) float32 {
		return all[i/rows*t.Shape[1]+i%rows*step+first]
	})}, nil
}

const blockValues, blockBytes = 32, 17

func (m *microscaled) complete(t *tensor) error {
	if m.blocks == nil || m.scales == nil {
		return fmt.Errorf("blocks or scales are missing")
	}
	b, s := m.blocks.Shape, m.scales.Shape
	if len(b) != 4 || len(s) != 3 || b[0] != s[0] || b[1] != s[1] || b[2] != s[2] || b[3] != blockValues/2 || b[1]%m.step != 0 || b[0]*b[1]*b[2] == 0 {
		return fmt.Errorf("blocks are %v and scales %v, want [E N K 16] and [E N K]", b, s)
	}
	t.dims = []int{b[2] * blockValues, b[1] / m.step, b[0]}
	return nil
}

// fill makes blocks of GGUF: the scale, then 16 bytes of which the low halves are the first
// 16 values. Bytes of the file hold two neighbours.
func (m *microscaled) fill(chunk []byte, offset int64) error {
	shape := m.blocks.Shape
	perRow, rows := shape[2], shape[1]/m.step
	for i := 0; i+blockBytes <= len(chunk); i += blockBytes {
		n := (int(offset) + i) / blockBytes
		row, block := n/perRow, n%perRow
		from := (row/rows*shape[1]+row%rows*m.step+m.first)*perRow + block
		source := m.blocks.Data[from*16 : from*16+16]
		out := chunk[i : i+blockBytes]
		out[0] = m.scales.Data[from]
		nibble := func(k int) byte { return source[k/2] >> (4 * (k % 2)) & 15 }
		for k := range 16 {
			out[1+k] = nibble(k) | nibble(k+16)<<4
		}
	}
	return nil
}
