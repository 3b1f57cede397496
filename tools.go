//go:build tools

package tgc

import (
	_ "github.com/ebitengine/purego"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/llir/llvm/ir"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/schollz/progressbar/v3"
	_ "github.com/spf13/cobra"
	_ "github.com/x448/float16"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/tools/txtar"
	_ "pgregory.net/rapid"
)
