// Package job reads what a tuning job is: which steps of which models, in which modes, on which
// devices, for how long. Job files may come from anywhere: what a file says wrong is an error
// that names the place, what was expected and what was found, and nothing of it is done.
package job
