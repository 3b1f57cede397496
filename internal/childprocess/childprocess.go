// Package childprocess is what a program does that starts itself again as a child and
// speaks with it over standard input and output.
package childprocess
