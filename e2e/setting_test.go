package e2e

import (
	"context"
	"flag"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tidings-go/tidings/apiserver"
)

var serverVersion = flag.String("server", "", "the minor version of the API servers, such as 1.36")

// newServer starts an API server for a test, with some flags more.
func newServer(t apiserver.TB, arguments ...string) *apiserver.Server {
	t.Helper()
	return apiserver.Options{Version: *serverVersion, Arguments: arguments}.Start(t)
}

// etcd calls f with a client of a server's etcd.
func etcd(s *apiserver.Server, f func(*clientv3.Client) error) error {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.Etcd()},
		DialTimeout: 10 * time.Second})
	if err != nil {
		return fmt.Errorf("reach etcd: %w", err)
	}
	defer client.Close()
	return f(client)
}

// compact makes etcd forget all but the latest state.
func compact(ctx context.Context, s *apiserver.Server) error {
	return etcd(s, func(c *clientv3.Client) error {
		now, err := c.Get(ctx, "/registry/none")
		if err != nil {
			return err
		}
		_, err = c.Compact(ctx, now.Header.Revision)
		return err
	})
}

// forget compacts etcd and restarts the server, which has the history of every resource in
// memory too.
func forget(ctx context.Context, s *apiserver.Server) error {
	if err := compact(ctx, s); err != nil {
		return err
	}
	return s.Restart(ctx)
}
