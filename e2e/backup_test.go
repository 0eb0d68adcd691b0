package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tidings-go/tidings/apiserver"
	"github.com/tidings-go/tidings/e2e/internal/follow"
)

// outage is the time without contact to the server after which informers check its version before
// they resume.
const outage = 10 * time.Second

// TestRestoredBackup restores an earlier state of etcd during an outage that is as long as
// such work takes. Its next versions were used before.
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

// TestRestoredBackupUnnoticed does it so quickly that informers just resume their watches, from
// versions that the server has not reached. They have to suspect a watch without events when it
// ends, which is after minutes by default.
func TestRestoredBackupUnnoticed(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	all := followBriefly(t, server.Config(), 5*time.Second)
	restore := diverge(t, server, startChurn(t, server.Config(), rate, *seed), all)
	if err := restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	settle(t, server, all)
	goOn(t, server, all)
}

// diverge backs the server up, waits until informers have seen a later state, and returns a
// function that restores the backup.
func diverge(
	t *testing.T, server *apiserver.Server, churn *churn, all []*follow.Follower,
) func(context.Context) error {
	t.Helper()
	pause(t.Context(), time.Second)
	restore, err := server.Backup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pause(t.Context(), 3*time.Second)
	churn.end(t)
	settle(t, server, all)
	for _, f := range all {
		f.Rewind()
	}
	return restore
}

// goOn writes objects whose versions informers have seen before.
func goOn(t *testing.T, server *apiserver.Server, all []*follow.Follower) {
	t.Helper()
	churn := startChurn(t, server.Config(), rate, *seed+1)
	pause(t.Context(), 3*time.Second)
	churn.end(t)
	settle(t, server, all)
}
