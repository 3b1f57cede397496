// Package story holds the model that is always at hand: it writes short simple
// stories. It was trained by examples/stories, which says how to make it again;
// docs/stories.svg is the loss curve of a later run.
package story

import (
	_ "embed"

	"tgc/gguf"
)

// Name is what commands call the model.
const Name = "stories"

//go:embed stories.gguf
var data []byte

// Open opens the model. It is part of the program: there is nothing to free.
func Open() (*gguf.File, error) { return gguf.OpenBytes(Name, data) }
