package tokenizer

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tgc/internal/oracle"
)

// hostileFiles unpacks what the tests below need of the corpus.
func hostileFiles(t *testing.T) map[string][]byte {
	f, err := os.Open(oracle.Path(t, "hostile", "corpus.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(unzipped); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(header.Name)
		for _, prefix := range []string{"tok-", "text-", "ok-spm.", "ok-deep-merges."} {
			if strings.HasPrefix(name, prefix) {
				if files[name], err = io.ReadAll(r); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func TestHostile(t *testing.T) {
	files := hostileFiles(t)
	// What a broken vocabulary's error must name; "" where it loads. The
	// number of tokens is compared with the tensors elsewhere.
	for file, want := range map[string]string{
		"tok-bos-range": "bos_token_id", "tok-merges-nospace": "merges[8]", "tok-merges-unknown": "",
		"tok-missing-merges": "tokenizer.ggml.merges", "tok-missing-tokens": "tokenizer.ggml.tokens",
		"tok-model-unknown": `"sentencebird"`, "tok-spm-byte-name": "byte token", "tok-spm-scores-nan": "scores",
		"tok-token-dup": "tokens 30 and 65", "tok-token-empty": "", "tok-types-enum": "token_type[0]",
		"tok-types-short": "token_type",
	} {
		v, err := parseVocabulary(file, files[file+".gguf"])
		var tokenizer *Tokenizer
		if err == nil {
			tokenizer, err = New(v)
		}
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", file, err)
		case want == "":
			checkRoundTrip(t, tokenizer, string(files["text-mixed.txt"]))
		case err == nil || !strings.Contains(err.Error(), want):
			t.Errorf("%s: got %v, want %q in it", file, err, want)
		}
	}
	for _, file := range []string{"ok-spm", "ok-deep-merges"} {
		v, err := parseVocabulary(file, files[file+".gguf"])
		if err != nil {
			t.Fatal(err)
		}
		tokenizer := mustNew(t, v)
		for name, text := range files {
			if !strings.HasPrefix(name, "text-") {
				continue
			}
			// Quadratic time would be minutes for a million bytes: the test's own
			// deadline.
			checkRoundTrip(t, tokenizer, string(text))
		}
	}
}
