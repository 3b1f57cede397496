package main

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"tgc/internal/filelock"
	"tgc/search/lease"
)

// Users: the coordinator is in the server's process, all others are workers.
const (
	coordinatorUser = "coordinator"
	workerUser      = "worker"
)

// Bounds of the server.
const (
	startTime  = 30 * time.Second
	storeBytes = 4 << 30
)

// workerMay is what a worker needs: take jobs, renew leases, store results. It makes and removes
// nothing else, whoever has the token.
var workerMay = &server.Permissions{
	Publish: &server.SubjectPermission{Allow: []string{
		"$JS.API.CONSUMER.INFO." + jobsName + ".*", "$JS.API.CONSUMER.MSG.NEXT." + jobsName + ".*", "$JS.ACK." + jobsName + ".>",
		"$JS.API.STREAM.INFO.KV_" + leasesName, "$JS.API.STREAM.INFO.KV_" + resultsName,
		"$JS.API.DIRECT.GET.KV_" + leasesName + ".>", "$JS.API.DIRECT.GET.KV_" + resultsName + ".>",
		"$KV." + leasesName + ".*", "$KV." + resultsName + ".*",
	}},
	Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
}

// broker is the server with a connection of its own.
type broker struct {
	server *server.Server
	conn   *nats.Conn
	lock   *os.File
}

// listen starts the server.
func listen(s *lease.Serve) (*broker, error) {
	options, err := optionsOf(s)
	if err != nil {
		return nil, err
	}
	b := &broker{}
	if err := b.start(s, options); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *broker) start(s *lease.Serve, options *server.Options) (err error) {
	if b.lock, err = lockStore(s.Store); err != nil {
		return err
	}
	if err := listens(s.Listen); err != nil {
		return err
	}
	secret := rand.Text()
	options.Users = []*server.User{{Username: coordinatorUser, Password: secret}, {Username: workerUser, Password: s.Token, Permissions: workerMay}}
	if b.server, err = server.NewServer(options); err != nil {
		return err
	}
	b.server.Start()
	if !b.server.ReadyForConnections(startTime) {
		return fmt.Errorf("the server does not start on %s with the store %s", s.Listen, s.Store)
	}
	b.conn, err = nats.Connect("", nats.InProcessServer(b.server), nats.UserInfo(coordinatorUser, secret))
	return err
}

// listens tells of an address that cannot be had: the server would only not be ready.
func listens(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return l.Close()
}

// url is where workers find it.
func (b *broker) url(secure bool) string {
	scheme := "nats"
	if secure {
		scheme = "tls"
	}
	host, port, _ := net.SplitHostPort(b.server.Addr().String()) // of a listener
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			host = name
		}
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

func (b *broker) close() {
	if b.conn != nil {
		b.conn.Close()
	}
	if b.server != nil {
		b.server.Shutdown()
		b.server.WaitForShutdown()
	}
	if b.lock != nil {
		_ = b.lock.Close() // which unlocks it
	}
}

// optionsOf refuses to be open to others without a token, and to send one in the clear.
func optionsOf(s *lease.Serve) (*server.Options, error) {
	host, portText, err := net.SplitHostPort(s.Listen)
	if err != nil {
		return nil, fmt.Errorf("address %q: want HOST:PORT", s.Listen)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("address %q: want HOST:PORT", s.Listen)
	}
	if port == 0 {
		port = 1 << 16 // replaced below: any
	}
	options := &server.Options{
		Host: host, Port: int(port), NoSigs: true, NoLog: true, MaxPayload: lease.MostBytes + 2*envelope,
		JetStream: true, StoreDir: s.Store, JetStreamMaxStore: storeBytes, JetStreamMaxMemory: 64 << 20, SyncAlways: true,
	}
	if options.Port == 1<<16 {
		options.Port = server.RANDOM_PORT
	}
	switch {
	case s.Token == "":
		return nil, errors.New("no token: whoever reaches the port could take part")
	case s.Lease < 10*time.Millisecond:
		return nil, fmt.Errorf("a lease of %v is no time to work in", s.Lease)
	case s.Cert == "" && !loopback(host):
		return nil, fmt.Errorf("address %q is open to the network: want a certificate, so that nobody reads the token", s.Listen)
	case s.Cert != "":
		pair, err := tls.LoadX509KeyPair(s.Cert, s.Key)
		if err != nil {
			return nil, err
		}
		options.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}
		options.TLSTimeout = 10
	}
	return options, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// lockStore keeps a second coordinator out, which would write the same files.
func lockStore(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := filelock.Lock(f); err != nil {
		_ = f.Close() // nothing was written
		return nil, fmt.Errorf("another coordinator uses %s", dir)
	}
	return f, nil
}
