package e2e

import (
	"context"
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tidings-go/tidings/apiserver"
	"github.com/tidings-go/tidings/e2e/internal/follow"
)

var (
	crashes = flag.Int("crashes", 10, "how many times TestCrashes kills the server")
	seed    = flag.Uint64("seed", 1, "the number that decides what is written and when faults come")
)

// rate is how many writes a second are made while faults come.
const rate = 300

// setting is a server that is written to, and informers of every kind beside it.
func setting(t *testing.T) (*apiserver.Server, []*follow.Follower, *churn) {
	t.Helper()
	server := apiserver.Start(t)
	if err := makeNamespaces(t.Context(), server.Config()); err != nil {
		t.Fatal(err)
	}
	all := followAll(t, server.Config())
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
	churn.end()
	settle(t, server, all)
	report(t, churn, all)
}

// TestCompaction makes etcd forget its history under load, and kills the server, so that
// nobody can go on where they were.
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
	churn.end()
	settle(t, server, all)
	report(t, churn, all)
}
