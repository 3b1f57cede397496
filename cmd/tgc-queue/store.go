package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tgc/search/lease"
)

// Names of what the server keeps.
const (
	jobsName    = "jobs"
	leasesName  = "leases"
	resultsName = "results"
)

// keepTime is how long jobs and results stay that no coordinator asks for any more.
const keepTime = 30 * 24 * time.Hour

// envelope is by how much what is stored may be larger than a job or a result.
const envelope = 64 << 10

func subjectOf(queue, id string) string { return jobsName + "." + queue + "." + id }

// store is what coordinator and workers read and write.
type store struct {
	js      jetstream.JetStream
	leases  jetstream.KeyValue
	results jetstream.KeyValue
}

// create makes what is not there yet.
func create(ctx context.Context, conn *nats.Conn) (s *store, jobs jetstream.Stream, err error) {
	s = &store{}
	if s.js, err = jetstream.New(conn); err != nil {
		return nil, nil, err
	}
	jobs, err = s.js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: jobsName, Subjects: []string{jobsName + ".>"}, Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage,
		MaxAge: keepTime, MaxMsgSize: lease.MostBytes + envelope,
	})
	if err != nil {
		return nil, nil, err
	}
	for name, into := range map[string]*jetstream.KeyValue{leasesName: &s.leases, resultsName: &s.results} {
		*into, err = s.js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: name, Storage: jetstream.FileStorage, TTL: keepTime, MaxValueSize: lease.MostBytes + envelope})
		if err != nil {
			return nil, nil, err
		}
	}
	return s, jobs, nil
}

// open finds what a coordinator has made.
func open(ctx context.Context, conn *nats.Conn) (s *store, err error) {
	s = &store{}
	if s.js, err = jetstream.New(conn); err != nil {
		return nil, err
	}
	if s.leases, err = s.js.KeyValue(ctx, leasesName); err != nil {
		return nil, err
	}
	s.results, err = s.js.KeyValue(ctx, resultsName)
	return s, err
}

// result is that of a job, if there is one. One that cannot be read has no body.
func (s *store) result(ctx context.Context, id string) (r lease.Result, ok bool, err error) {
	entry, err := s.results.Get(ctx, id)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return r, false, nil
	}
	if err != nil {
		return r, false, err
	}
	return resultOf(entry), true, nil
}

func resultOf(entry jetstream.KeyValueEntry) (r lease.Result) {
	if json.Unmarshal(entry.Value(), &r) != nil {
		r = lease.Result{}
	}
	r.ID = entry.Key()
	return r
}

// finish stores the result of a job, unless it has one.
func (s *store) finish(ctx context.Context, r *lease.Result) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err = s.results.Create(ctx, r.ID, data); errors.Is(err, jetstream.ErrKeyExists) {
		return nil
	}
	return err
}

// holder says who has a job, or had it; the revision is 0 where nobody has. A record that cannot
// be read names nobody.
func (s *store) holder(ctx context.Context, id string) (h lease.Holder, revision uint64, err error) {
	entry, err := s.leases.Get(ctx, id)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return lease.Holder{ID: id}, 0, nil
	}
	if err != nil {
		return h, 0, err
	}
	return holderOf(entry), entry.Revision(), nil
}

func holderOf(entry jetstream.KeyValueEntry) (h lease.Holder) {
	if json.Unmarshal(entry.Value(), &h) != nil {
		h = lease.Holder{}
	}
	h.ID = entry.Key()
	return h
}

// errLost is that somebody else has changed a lease.
var errLost = errors.New("the lease is another's")

// hold changes who has a job, from a revision that was seen.
func (s *store) hold(ctx context.Context, h lease.Holder, revision uint64) (uint64, error) {
	data, err := json.Marshal(h)
	if err != nil {
		return 0, err
	}
	if revision == 0 {
		revision, err = s.leases.Create(ctx, h.ID, data)
	} else {
		revision, err = s.leases.Update(ctx, h.ID, data, revision)
	}
	if errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return 0, errLost
	}
	return revision, err
}
