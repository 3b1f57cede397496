// Package lease gives pieces of work to workers on other machines, each for as long as its
// worker says that it lives.
//
// The broker is another program, tgc-queue (cmd/tgc-queue, a Go module of its own), so that tgc
// does not link it: tgc starts one on either side and speaks to it over its standard input and
// output, a JSON object a line. What a piece of work is, only the two tgc know: here it is bytes.
//
//	tgc tune --serve -- Coordinator -- tgc-queue == network == tgc-queue -- Work -- tgc tune --worker
//
// A worker that does not renew its lease loses it, and another one takes the job. A job whose
// lease was lost three times is set aside. Of a job there is one result, whoever is late.
package lease
