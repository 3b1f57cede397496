package examples

import (
	"bytes"
	"os"
	"testing"

	"tgc/nn/train"
)

// The pictures in docs are those of the runs beside them.
func TestPicturesInDocs(t *testing.T) {
	for name, title := range map[string]string{"digits": "Cross entropy of digits by step", "stories": "Loss in nats a token by step", "transformer": "Cross entropy by step"} {
		table, err := os.Open("../docs/" + name + ".csv")
		if err != nil {
			t.Fatal(err)
		}
		defer table.Close()
		history, err := train.ReadHistory(table)
		if err != nil {
			t.Fatal(err)
		}
		if want, err := os.ReadFile("../docs/" + name + ".svg"); err != nil || !bytes.Equal(history.SVG(title), want) {
			t.Errorf("docs/%s.svg is not what docs/%s.csv gives (%v)", name, name, err)
		}
	}
}
