// Command kernelhash shows that a change of structure left every kernel as it
// was. It compiles a zoo of models and library programs for several targets with
// `tgc compile`, writes one line for each compilation with a hash of every
// kernel (source, name, launches, grid, arguments, plan) and of the buffers,
// and compares two such lists:
//
//	go run ./internal/kernelhash -o before.txt        # before the first change
//	go run ./internal/kernelhash -check before.txt    # after the last
//	go run ./internal/kernelhash -quick -check        # a small part, against testdata/kernels.txt
//
// It knows the command line alone, so that -tgc can name a binary of any commit.
// cases.go lists what is compiled; testdata holds the library programs as graphs.
package main
