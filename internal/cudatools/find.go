package cudatools

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
)

// ErrNotFound says that a tool is not installed.
var ErrNotFound = errors.New("not found")

// Tools are the paths of the tools; empty where one is missing.
type Tools struct {
	PtxasPath    string
	NvdisasmPath string
}

// Find looks for the tools. cudaPath, where not empty, is looked at first: a
// toolkit's root or its bin directory.
func Find(cudaPath string) Tools {
	directories := searchPath(cudaPath)
	return Tools{
		PtxasPath:    look("ptxas", cudaPath, directories),
		NvdisasmPath: look("nvdisasm", cudaPath, directories),
	}
}

// FromEnvironment is Find with what TGC_CUDA_PATH says.
func FromEnvironment() Tools { return Find(os.Getenv("TGC_CUDA_PATH")) }

// toolPlaces are patterns of directories beside PATH; of several versions the
// last in order of names comes first.
var toolPlaces = []string{
	"/usr/local/cuda/bin",
	"/usr/local/cuda-*/bin",
	"/opt/cuda/bin",
	"/usr/lib/nvidia-cuda-toolkit/bin",
	"/run/current-system/sw/bin",
	"/nix/store/*-cuda_nvcc-*/bin",
	"/nix/store/*-cuda_nvdisasm-*/bin",
	"/nix/store/*-cudatoolkit-*/bin",
}

func searchPath(cudaPath string) []string {
	var out []string
	if cudaPath != "" {
		out = append(out, filepath.Join(cudaPath, "bin"), cudaPath)
	}
	for _, pattern := range toolPlaces {
		found, err := filepath.Glob(pattern)
		if err != nil {
			continue
		}
		sort.Sort(sort.Reverse(sort.StringSlice(found)))
		out = append(out, found...)
	}
	return out
}

func look(tool, cudaPath string, directories []string) string {
	first := 0
	if cudaPath != "" {
		first = 2
		for _, d := range directories[:2] {
			if isExecutable(filepath.Join(d, tool)) {
				return filepath.Join(d, tool)
			}
		}
	}
	if path, err := exec.LookPath(tool); err == nil {
		return path
	}
	for _, d := range directories[first:] {
		if isExecutable(filepath.Join(d, tool)) {
			return filepath.Join(d, tool)
		}
	}
	return ""
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

func (t Tools) need(path, tool string) error {
	if path == "" {
		return fmt.Errorf("cudatools: %s: %w (set TGC_CUDA_PATH to a CUDA toolkit)", tool, ErrNotFound)
	}
	return nil
}
