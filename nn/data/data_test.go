package data

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tgc/internal/lists"
	"tgc/ir"
	"tgc/nn"
)

// Every order is a permutation, whatever the number of samples.
func TestOrdersArePermutations(t *testing.T) {
	for n := range uint64(300) {
		order := newOrder(n, 7, uint32(n%5))
		seen := make(map[uint64]bool)
		for i := range n {
			at := order.at(i)
			if at >= n || seen[at] {
				t.Fatalf("%d samples: place %d has sample %d, out of bounds or again", n, i, at)
			}
			seen[at] = true
		}
	}
}

// Over 6,000 epochs of 6 samples each of the 720 orders comes about as often: chi square with
// 719 degrees of freedom is below 850 with a probability of 0.9995, and the seed is fixed.
func TestOrdersAreUniform(t *testing.T) {
	const samples, orders, epochs = 6, 720, 14400
	counts := make(map[string]int)
	for epoch := range uint32(epochs) {
		order := newOrder(samples, 3, epoch)
		counts[fmt.Sprint(lists.Make(samples, func(i int) uint64 { return order.at(uint64(i)) }))]++
	}
	chi, expected := 0.0, float64(epochs)/orders
	for _, n := range counts {
		chi += (float64(n) - expected) * (float64(n) - expected) / expected
	}
	chi += float64(orders-len(counts)) * expected
	if chi > 850 {
		t.Errorf("chi square is %.0f over %d orders, want below 850", chi, len(counts))
	}
}

func numbers(n int) Table {
	return Table{Of("x", lists.Make(n, func(i int) float32 { return float32(i) })), Of("y", lists.Make(2*n, func(i int) int32 { return int32(i) }), 2)}
}

// take are the samples of batches, by their values.
func take(t *testing.T, l *Loader, from, to int) (batches [][]float32) {
	t.Helper()
	for batch, err := range l.Batches(t.Context(), from, to) {
		if err != nil {
			t.Fatal(err)
		}
		batches = append(batches, batch["x"].Float32s())
	}
	return batches
}

// An epoch has every sample once; each has its own order; what is asked for first does not matter.
func TestEpochs(t *testing.T) {
	l := NewLoader(numbers(23), Options{Batch: 5, Shuffle: true, Seed: 1, KeepLast: true})
	if l.PerEpoch() != 5 {
		t.Fatalf("%d batches an epoch, want 5", l.PerEpoch())
	}
	all := take(t, l, 0, 15)
	for epoch := range 3 {
		samples := slices.Concat(all[5*epoch : 5*epoch+5]...)
		slices.Sort(samples)
		if !slices.Equal(samples, lists.Make(23, func(i int) float32 { return float32(i) })) {
			t.Errorf("epoch %d: %v", epoch, samples)
		}
	}
	if slices.Equal(all[0], all[5]) {
		t.Error("two epochs have the same order")
	}
	for from := range 15 {
		if got := take(t, l, from, 15); !slices.EqualFunc(got, all[from:], slices.Equal[[]float32]) {
			t.Errorf("from batch %d: %v, want %v", from, got, all[from:])
		}
	}
	other := NewLoader(numbers(23), Options{Batch: 5, Shuffle: true, Seed: 2})
	if slices.Equal(take(t, other, 0, 1)[0], all[0]) {
		t.Error("another seed gives the same order")
	}
}

func TestBatchesOfOneSize(t *testing.T) {
	l := NewLoader(numbers(23), Options{Batch: 5})
	if l.PerEpoch() != 4 {
		t.Errorf("%d batches an epoch, want 4", l.PerEpoch())
	}
	batch, err := l.At(5)
	if err != nil {
		t.Fatal(err)
	}
	if y := batch["y"]; y.DType != ir.I32 || !slices.Equal(y.Shape, []int{5, 2}) || y.Data[0] != 10 || len(y.Data) != 40 {
		t.Errorf("batch 5: %v", y)
	}
}

// Batches are made while one is in use, at most as many as said, and none after the last.
func TestPrefetch(t *testing.T) {
	var begun atomic.Int32
	slow := Func{Samples: 100, Make: func(samples []int) (nn.Values, error) {
		begun.Add(1)
		return numbers(100).Batch(samples)
	}}
	l := NewLoader(slow, Options{Batch: 1, Prefetch: 3})
	n := 0
	for _, err := range l.Batches(t.Context(), 0, 6) {
		if err != nil {
			t.Fatal(err)
		}
		want := int32(min(n+4, 6))
		for deadline := time.Now().Add(time.Minute); begun.Load() < want && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		if got := begun.Load(); got != want {
			t.Fatalf("%d batches were begun while batch %d is in use, want %d", got, n, want)
		}
		n++
	}
	if n != 6 {
		t.Errorf("%d batches, want 6", n)
	}
}

func TestErrorsEndTheBatches(t *testing.T) {
	broken := errors.New("broken")
	fails := Func{Samples: 9, Make: func(samples []int) (nn.Values, error) {
		if samples[0] == 2 {
			return nil, broken
		}
		return nn.Values{}, nil
	}}
	n := 0
	var last error
	for _, err := range NewLoader(fails, Options{Batch: 1}).Batches(t.Context(), 0, 9) {
		n, last = n+1, err
	}
	if n != 3 || !errors.Is(last, broken) {
		t.Errorf("%d batches, then %v", n, last)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	stuck := Func{Samples: 9, Make: func([]int) (nn.Values, error) { <-t.Context().Done(); return nil, nil }}
	for _, err := range NewLoader(stuck, Options{Batch: 1}).Batches(ctx, 0, 9) {
		if last = err; !errors.Is(err, broken) {
			t.Errorf("cancelled: %v", err)
		}
	}
}

func TestMistakes(t *testing.T) {
	odd := Table{Of("x", []float32{1, 2, 3}), Of("y", []float32{1, 2, 3}, 2)}
	for want, l := range map[string]*Loader{
		"the loader has no dataset":                  NewLoader(nil, Options{Batch: 1}),
		"batches of 0 samples":                       NewLoader(numbers(3), Options{}),
		"a dataset of 3 samples gives no batch of 4": NewLoader(numbers(3), Options{Batch: 4}),
		`column "y" has 3 values for samples of shape [2], want 3 samples as column "x" has`: NewLoader(odd, Options{Batch: 1}),
		"a dataset of 0 samples": NewLoader(Table{}, Options{Batch: 1}),
	} {
		if _, err := l.At(0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := NewLoader(numbers(3), Options{Batch: 1}).At(-1); err == nil {
		t.Error("batch -1: no error")
	}
}

func TestWindows(t *testing.T) {
	tokens := lists.Make(10, func(i int) int32 { return int32(i) })
	w := Windows{Name: "text", Tokens: tokens, Length: 4, Stride: 3}
	batch, err := w.Batch([]int{2, 0})
	if err != nil {
		t.Fatal(err)
	}
	text := batch["text"]
	got := lists.Make(len(text.Data)/4, func(i int) byte { return text.Data[4*i] })
	if w.Len() != 3 || !slices.Equal(text.Shape, []int{2, 4}) || !slices.Equal(got, []byte{6, 7, 8, 9, 0, 1, 2, 3}) {
		t.Errorf("%d windows, %v %v", w.Len(), text.Shape, got)
	}
	if n := (Windows{Tokens: tokens, Length: 5}).Len(); n != 2 {
		t.Errorf("%d windows without a stride, want 2", n)
	}
	if n := (Windows{Tokens: tokens, Length: 11}).Len(); n != 0 {
		t.Errorf("%d windows longer than the text, want none", n)
	}
}

// The parts have every sample once, and the share is kept.
func TestSplit(t *testing.T) {
	a, b := Split(numbers(50), 0.8, 4)
	if a.Len() != 40 || b.Len() != 10 {
		t.Fatalf("parts of %d and %d", a.Len(), b.Len())
	}
	seen := make(map[float32]bool)
	for _, part := range []Dataset{a, b} {
		batch, err := part.Batch(lists.Upto(part.Len()))
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range batch["x"].Float32s() {
			seen[v] = true
		}
	}
	if len(seen) != 50 {
		t.Errorf("%d samples in both parts: %v", len(seen), slices.Sorted(maps.Keys(seen)))
	}
}
