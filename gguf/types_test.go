package gguf

import (
	"testing"

	"tgc/internal/oracle"
)

// TestOracleFiles opens every reference file and checks that its tensors fill
// it: the block sizes of the type table are right.
func TestOracleFiles(t *testing.T) {
	for _, path := range oracle.Files(t, "quant", "*.gguf") {
		f, err := Open(path)
		if err != nil {
			t.Error(err)
			continue
		}
		x, ok := f.Tensor("x")
		ref, ok2 := f.Tensor("ref")
		if !ok || !ok2 {
			t.Errorf("%s: tensors x and ref are missing", path)
			continue
		}
		name, err := f.String("oracle.type")
		if typ, ok := TypeByName(name); err != nil || !ok || x.Type != typ {
			t.Errorf("%s: type is %v, want %s (%v)", path, x.Type, name, err)
		}
		gap := ref.Offset - x.Offset - int64(x.Bytes())
		if rest := f.Size() - ref.Offset - int64(ref.Bytes()); gap < 0 || gap >= 32 || rest < 0 || rest >= 32 {
			t.Errorf("%s: %v leaves gaps of %d and %d bytes, want under 32", path, x, gap, rest)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
