package lists

import (
	"slices"
	"strconv"
	"testing"
)

func TestLists(t *testing.T) {
	if got := Map([]int{3, 1, 2}, strconv.Itoa); !slices.Equal(got, []string{"3", "1", "2"}) {
		t.Errorf("mapped: %v", got)
	}
	if got := Make(3, strconv.Itoa); !slices.Equal(got, []string{"0", "1", "2"}) {
		t.Errorf("made: %v", got)
	}
	odd := func(n int) bool { return n%2 != 0 }
	if got := Filter([]int{3, 4, 1}, odd); !slices.Equal(got, []int{3, 1}) {
		t.Errorf("filtered: %v", got)
	}
	if got := Filter([]int{4}, odd); got != nil {
		t.Errorf("nothing is kept: %v, want nil", got)
	}
	list := []int{3, 4, 1}
	if got := Indices(list, odd); !slices.Equal(got, []int{0, 2}) {
		t.Errorf("indices: %v", got)
	}
	if first, last, none := First(list, odd, -1), Last(list, odd, -1), Last(list[1:2], odd, -1); first != 3 || last != 1 || none != -1 {
		t.Errorf("first %d, last %d, none %d", first, last, none)
	}
	if some, none := Product([]int64{3, 4}), Product([]int(nil)); some != 12 || none != 1 {
		t.Errorf("products %d and %d", some, none)
	}
	if set := Set(list); len(set) != 3 || !set[3] || !set[4] || !set[1] {
		t.Errorf("set: %v", set)
	}
	if got := Upto(3); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("up to 3: %v", got)
	}
	if got := Union(list, 1, 2, 2); !slices.Equal(got, []int{3, 4, 1, 2}) || len(list) != 3 {
		t.Errorf("union: %v of %v", got, list)
	}
}
