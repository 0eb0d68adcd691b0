package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tidings-go/tidings/apiserver"
	"github.com/tidings-go/tidings/e2e/internal/follow"
)

// outage is how long the server must have been out of reach for informers to look at its
// version before they go on.
const outage = 10 * time.Second

// TestRestoredBackup has etcd go back to an earlier state, with versions that were given
// before, during an outage that is as long as such work takes.
func TestRestoredBackup(t *testing.T) {
	t.Parallel()
	server, all, churn := setting(t)
	restore := diverge(t, server, churn, all)
	down := time.Now()
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	err := eventually(t.Context(), patience, func(context.Context) (bool, error) {
		for _, f := range all {
			// The first failure is that of the watch, the next one that of a new connection.
			if at := f.FailedAt(); at.Before(down.Add(outage + 5*time.Second)) {
				return false, fmt.Errorf("%s has last failed at %v: %v", f.Name, at, f.Health().LastError)
			}
		}
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	settle(t, server, all)
	goOn(t, server, all)
}

// TestRestoredBackupUnnoticed does it so quickly that informers find nothing but watches
// from versions that the server has not reached. They have to doubt the quiet, at the end
// of a watch, which is minutes by default.
func TestRestoredBackupUnnoticed(t *testing.T) {
	t.Parallel()
	server := apiserver.Start(t)
	if err := makeNamespaces(t.Context(), server.Config()); err != nil {
		t.Fatal(err)
	}
	all := following(t, func(ctx context.Context) ([]*follow.Follower, error) {
		return follow.Brief(ctx, server.Config(), 5*time.Second)
	})
	restore := diverge(t, server, startChurn(t, server.Config(), rate, *seed), all)
	if err := restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	settle(t, server, all)
	goOn(t, server, all)
}

// diverge backs the server up and returns what restores that, when informers have seen a
// later state.
func diverge(t *testing.T, server *apiserver.Server, churn *churn, all []*follow.Follower) func(context.Context) error {
	t.Helper()
	pause(t.Context(), time.Second)
	restore, err := server.Backup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pause(t.Context(), 3*time.Second)
	churn.end()
	settle(t, server, all)
	return restore
}

// goOn writes what has versions that informers have seen before.
func goOn(t *testing.T, server *apiserver.Server, all []*follow.Follower) {
	t.Helper()
	churn := startChurn(t, server.Config(), rate, *seed+1)
	pause(t.Context(), 3*time.Second)
	churn.end()
	settle(t, server, all)
	report(t, churn, all)
}
