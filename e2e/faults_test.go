package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/tidings-go/tidings/apiserver"
	"github.com/tidings-go/tidings/e2e/internal/follow"
)

var (
	crashes = flag.Int("crashes", 10, "how many times TestCrashes kills the server")
	seed    = flag.Uint64("seed", 1, "the seed of writes and faults")
)

// rate is the number of writes a second during faults.
const rate = 300

// setting returns a server with churn, and informers of every kind.
func setting(t *testing.T) (*apiserver.Server, []*follow.Follower, *churn) {
	t.Helper()
	server := startServer(t)
	all := followConfigMaps(t, server.Config())
	return server, all, startChurn(t, server.Config(), rate, *seed)
}

// pause lets the churn go on for a while.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// TestCrashes kills the server under load, again and again, and starts it each time.
func TestCrashes(t *testing.T) {
	server, all, churn := setting(t)
	random := rand.New(rand.NewPCG(*seed, 0))
	for range *crashes {
		pause(t.Context(), time.Duration(500+random.IntN(1000))*time.Millisecond)
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	pause(t.Context(), time.Second)
	churn.end(t)
	settle(t, server, all)
}

// TestCompaction makes etcd forget its history under load, and kills the server, so that no
// informer can resume.
func TestCompaction(t *testing.T) {
	server, all, churn := setting(t)
	for range 3 {
		pause(t.Context(), time.Second)
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := compact(t.Context(), server); err != nil {
			t.Fatal(err)
		}
	}
	churn.end(t)
	settle(t, server, all)
}

// TestLostConnections sends every connection through a proxy that cuts, delays and swallows.
func TestLostConnections(t *testing.T) {
	server := startServer(t)
	p := startProxy(t, server)
	through := server.Config()
	through.Host = p.URL()
	all := followConfigMaps(t, through)
	churn := startChurn(t, server.Config(), rate, *seed) // past the proxy
	random := rand.New(rand.NewPCG(*seed, 1))
	for range *crashes {
		pause(t.Context(), time.Duration(300+random.IntN(1000))*time.Millisecond)
		switch random.IntN(3) {
		case 0:
			p.Cut()
		case 1:
			p.Delay(time.Duration(random.IntN(500)) * time.Millisecond)
		case 2:
			p.Swallow()
			pause(t.Context(), 2*time.Second)
			p.Cut() // a connection that has lost bytes cannot be repaired
		}
	}
	p.Delay(0)
	churn.end(t)
	settle(t, server, all)
}

// TestDefinitionComesAndGoes deletes and installs a custom resource definition while informers
// of its objects run.
func TestDefinitionComesAndGoes(t *testing.T) {
	server := newServer(t)
	client, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	install(t, client)
	all := startFollowers(t, server.Config(), follow.Options{Resource: widgets, PageSize: 5})
	for round := range 3 {
		for n := range 20 {
			createWidget(t, client, fmt.Sprintf("round-%d-%d", round, n))
		}
		awaitWidgets(t, client, all, 20)
		uninstall(t, client)
		install(t, client)
		awaitWidgets(t, client, all, 0)
	}
}

// TestPermissionTakenAndGiven revokes the permission to list and watch of a user whose
// informers run. Their watches survive that; after a cut informers fail until the permission is
// granted again.
func TestPermissionTakenAndGiven(t *testing.T) {
	server := startServer(t)
	client, err := kubernetes.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	allow(t, client, true)
	user, err := server.ConfigFor("reader")
	if err != nil {
		t.Fatal(err)
	}
	p := startProxy(t, server)
	user.Host = p.URL()
	all := followConfigMaps(t, user)
	churn := startChurn(t, server.Config(), 100, *seed)
	pause(t.Context(), 2*time.Second)
	allow(t, client, false)
	churn.end(t)
	settle(t, server, all) // the watches go on

	churn = startChurn(t, server.Config(), 100, *seed+1)
	p.Cut()
	pause(t.Context(), 2*time.Second)
	for _, f := range all {
		if err := f.Health().LastError; err == nil || !strings.Contains(err.Error(), "forbidden") {
			t.Errorf("%s: its health has %v, want that it is forbidden", f.Name, err)
		}
	}
	allow(t, client, true)
	churn.end(t)
	settle(t, server, all)
}
