package events_test

import (
	"fmt"
	"os"

	"tgc/nn/events"
)

func Example() {
	folder, err := os.MkdirTemp("", "events")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	w, err := events.NewWriter(folder) // tensorboard --logdir FOLDER shows what is in it
	if err == nil {
		err = w.Scalars(100, map[string]float64{"loss": 0.25})
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	data, err := os.ReadFile(w.Name())
	if err != nil {
		fmt.Println(err)
		return
	}
	list, err := events.Read(data)
	fmt.Println(len(list), list[1].Step, list[1].Scalars, err)
	// Output: 2 100 map[loss:0.25] <nil>
}
