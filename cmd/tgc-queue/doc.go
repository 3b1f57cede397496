// Command tgc-queue is the broker of tuning jobs that several machines share: NATS JetStream,
// embedded. It is a module of its own, so that tgc does not link a message server.
//
// tgc starts it and speaks to it over its standard input and output (package search/lease): on
// the side of the coordinator (tgc tune --serve) it is the server, on that of a worker
// (tgc tune --worker) a client. It knows leases and bytes, and nothing of kernels.
//
//	store.go       what the server keeps: jobs, leases, results
//	server.go      the server: who may connect, and what workers may do
//	coordinator.go jobs in, results out; jobs that no worker survives
//	worker.go      one job at a time, while its lease is renewed
//
// Jobs are a stream, a subject for each queue and job; a queue is a consumer, whose message is
// delivered again when nobody has said in time that it is in progress. Leases are records that
// change only from the revision that one has seen, so that a worker that was late learns it.
// Results are records that can be made only once.
package main
