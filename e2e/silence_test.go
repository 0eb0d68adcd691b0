package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apiserver"
	"github.com/tidings-go/tidings/e2e/internal/follow"
)

// TestSilentConnections has the connections of all informers carry nothing any more,
// without breaking: new ones would work. Informers whose watches should have ended by then
// say that they are silent; the others learn it from the transport, which asks its
// connections for a sign of life when they are quiet for half a minute.
func TestSilentConnections(t *testing.T) {
	t.Parallel()
	server := apiserver.Start(t)
	if err := makeNamespaces(t.Context(), server.Config()); err != nil {
		t.Fatal(err)
	}
	p := startProxy(t, server)
	through := server.Config()
	through.Host = p.URL()
	all := followAll(t, through)
	brief := following(t, func(ctx context.Context) ([]*follow.Follower, error) {
		return follow.Brief(ctx, through, time.Second)
	})
	both := slices.Concat(all, brief)
	churn := startChurn(t, server.Config(), rate, *seed) // past the proxy
	pause(t.Context(), 2*time.Second)
	p.Silence()
	pause(t.Context(), 2*time.Second)
	churn.end()
	now, err := truth(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range both {
		if len(f.Check(now)) == 0 {
			t.Errorf("the connection of %s is not silent", f.Name)
		}
	}
	err = eventually(t.Context(), patience, func(context.Context) (bool, error) {
		for _, f := range brief {
			if h := f.Health(); h.State != tidings.Silent {
				return false, fmt.Errorf("the health of %s is %+v", f.Name, h)
			}
		}
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	settle(t, server, both)
	report(t, churn, both)
}
