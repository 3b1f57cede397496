package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// inputLimit bounds what is read of a text, in bytes: a prompt or a graph has no
// business to be larger, and /dev/zero would never end.
const inputLimit = 1 << 28

// readInput reads a file, or stdin where its name is empty or "-". Ctrl-C ends the
// wait for a pipe.
func readInput(cmd *cobra.Command, file string) (string, error) {
	type result struct {
		text string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := readAll(cmd.InOrStdin(), file)
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-cmd.Context().Done():
		return "", context.Cause(cmd.Context())
	}
}

func readAll(stdin io.Reader, file string) (string, error) {
	from, name := stdin, "stdin"
	if file != "" && file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return "", err
		}
		defer f.Close()
		from, name = f, file
	}
	data, err := io.ReadAll(io.LimitReader(from, inputLimit+1))
	if err == nil && len(data) > inputLimit {
		err = fmt.Errorf("%s: more than %d bytes, which is the most that is read", name, inputLimit)
	}
	return string(data), err
}
