package events

import (
	"bytes"
	"encoding/hex"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The bytes of a record, by hand from the definitions: a = 1.5 at step 300. Its length is that
// of the first event of the files that TensorFlow writes, which all begin with these twelve
// bytes, and the CRC-32C of "123456789" is e3069283.
func TestBytes(t *testing.T) {
	got := appendScalars(nil, time.Unix(2, 0), 300, map[string]float64{"a": 1.5})
	const record = "1800000000000000" + "a37f4b22" +
		"09" + "0000000000000040" + // 1: double 2
		"10" + "ac02" + // 2: varint 300
		"2a" + "0a" + // 5: 10 bytes
		"0a" + "08" + // 1: 8 bytes
		"0a" + "01" + "61" + // 1: "a"
		"15" + "0000c03f" // 2: float 1.5
	if text := hex.EncodeToString(got[:len(got)-4]); text != record {
		t.Errorf("got %s, want %s", text, record)
	}
	const crc = 0xe3069283
	if got, want := masked([]byte("123456789")), uint32((uint64(crc>>15|crc<<17&0xffffffff)+0xa282ead8)&0xffffffff); got != want {
		t.Errorf("the masked checksum is %08x, want %08x", got, want)
	}
}

// What is written comes back, f32 as it is.
func TestWriteAndRead(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "runs", "first")
	w, err := NewWriter(folder)
	if err != nil {
		t.Fatal(err)
	}
	values := []map[string]float64{{"loss": 0.25, "valid/loss": math.Inf(1)}, {"loss": math.NaN()}, {}}
	for i, v := range values {
		if err := w.Scalars(1000*i, v); err != nil {
			t.Fatal(err)
		}
	}
	if other, err := NewWriter(folder); err != nil || other.Name() == w.Name() || !strings.Contains(other.Name(), "tfevents") {
		t.Errorf("two files of one second: %v, %v", other, err)
	}
	data, err := os.ReadFile(w.Name())
	if err != nil {
		t.Fatal(err)
	}
	list, err := Read(data)
	if err != nil || len(list) != 4 || list[0].Version != "brain.Event:2" {
		t.Fatalf("%v, %v", list, err)
	}
	for i, v := range values {
		e := list[i+1]
		if e.Step != 1000*i || len(e.Scalars) != len(v) || time.Since(e.Time).Abs() > time.Hour {
			t.Errorf("event %d: %v", i, e)
		}
		for tag, want := range v {
			if got := e.Scalars[tag]; got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Errorf("event %d: %s is %v, want %v", i, tag, got, want)
			}
		}
	}
}

// Each flipped bit and each cut is found, and events before it are given.
func TestDamage(t *testing.T) {
	one := appendScalars(nil, time.Unix(5, 0), 1, map[string]float64{"a": 1})
	data := append(bytes.Clone(one), appendScalars(nil, time.Unix(6, 0), 2, map[string]float64{"b": 2})...)
	for i := len(one); i < len(data); i++ {
		bad := bytes.Clone(data)
		bad[i] ^= 1 << (i % 8)
		if list, err := Read(bad); err == nil || len(list) != 1 {
			t.Fatalf("byte %d changed: %v, %v", i, list, err)
		}
		if list, err := Read(data[:i]); len(list) != 1 || (err == nil) != (i == len(one)) {
			t.Fatalf("cut at byte %d: %v, %v", i, list, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(appendScalars(nil, time.Unix(5, 0), 1, map[string]float64{"a": 1}))
	f.Add([]byte{})
	f.Fuzz(func(_ *testing.T, data []byte) {
		_, _ = Read(data)
		_, _ = Read(appendRecord(nil, data))
	})
}
