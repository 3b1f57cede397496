package lease

import (
	"encoding/json"
	"fmt"
	"regexp"
	"time"
)

// Attempts are the workers that may lose a job before it is set aside: what has ended three
// machines will end the fourth.
const Attempts = 3

// MostBytes bounds a job and a result as lines: the text of a kernel is some tens of kilobytes,
// what became of its candidates a megabyte.
const MostBytes = 4 << 20

// Job is a piece of work.
type Job struct {
	ID    string          `json:"id"`    // equal jobs have equal ones
	Queue string          `json:"queue"` // of those who can do it
	Body  json.RawMessage `json:"body"`
}

// Result is what became of a job.
type Result struct {
	ID     string          `json:"id"`
	Worker string          `json:"worker,omitempty"`
	Body   json.RawMessage `json:"body,omitempty"`

	// Aside are the workers that were lost with the job, which has no other result.
	Aside []string `json:"aside,omitempty"`
}

// Holder is who works on a job.
type Holder struct {
	ID      string   `json:"id"`
	Workers []string `json:"workers"` // who had it, the last has it
	Note    string   `json:"note,omitempty"`
}

// Serve says how to coordinate.
type Serve struct {
	Listen string        `json:"listen"` // HOST:PORT; port 0 is any
	Store  string        `json:"store"`  // folder of what a restart goes on from
	Token  string        `json:"token"`
	Cert   string        `json:"cert,omitempty"` // files of TLS
	Key    string        `json:"key,omitempty"`
	Lease  time.Duration `json:"lease"`
}

// Server says which queue to work for.
type Server struct {
	URL   string `json:"url"` // nats://HOST:PORT or tls://HOST:PORT
	Token string `json:"token"`
	CA    string `json:"ca,omitempty"` // file of certificates, beside the system's
	Name  string `json:"name"`         // of the worker
	Queue string `json:"queue"`
}

// Request is what tgc asks of tgc-queue: the first is Serve or Work, and then one member each.
type Request struct {
	Serve *Serve  `json:"serve,omitempty"`
	Work  *Server `json:"work,omitempty"`

	Submit *Job   `json:"submit,omitempty"` // of a coordinator
	Forget string `json:"forget,omitempty"` // a job whose result was taken

	Next     bool    `json:"next,omitempty"` // of a worker: a job, please
	Renew    *Holder `json:"renew,omitempty"`
	Done     *Result `json:"done,omitempty"`
	GiveBack string  `json:"give_back,omitempty"` // a job that was not done
}

// Event is what tgc-queue says: one member is set.
type Event struct {
	Ready *Ready  `json:"ready,omitempty"`
	Error string  `json:"error,omitempty"` // and it ends
	Job   *Leased `json:"job,omitempty"`
	Lost  string  `json:"lost,omitempty"`  // a job that another worker has now
	Stays string  `json:"stays,omitempty"` // a job whose result was taken in, or dropped

	Held    *Holder `json:"held,omitempty"`
	Result  *Result `json:"result,omitempty"`
	Workers *int    `json:"workers,omitempty"` // how many are connected
}

// Ready says that the program serves, or is connected.
type Ready struct {
	URL string `json:"url,omitempty"`
}

// Leased is a job for a worker, who must renew it in less than Lease.
type Leased struct {
	Job
	Lease time.Duration `json:"lease"`
}

// name is what an ID and a queue look like: they are parts of subjects and of file names.
var name = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Check refuses what no coordinator submits.
func (j *Job) Check() error {
	switch {
	case !name.MatchString(j.ID) || !name.MatchString(j.Queue):
		return fmt.Errorf("job %.80q of queue %.80q: want letters, digits, _ and -, at most 64", j.ID, j.Queue)
	case len(j.Body) > MostBytes:
		return fmt.Errorf("job %s: %d bytes, want at most %d", j.ID, len(j.Body), MostBytes)
	}
	return nil
}

// Check refuses what no worker sends.
func (r *Result) Check() error {
	switch {
	case !name.MatchString(r.ID):
		return fmt.Errorf("result of job %.80q: want letters, digits, _ and -, at most 64", r.ID)
	case len(r.Body) > MostBytes:
		return fmt.Errorf("result of job %s: %d bytes, want at most %d", r.ID, len(r.Body), MostBytes)
	}
	return nil
}
