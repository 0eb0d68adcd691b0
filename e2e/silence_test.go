package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tidings-go/tidings"
)

// TestSilentConnections makes the connections of all informers carry nothing any more, without
// breaking: new ones would work. Informers whose watches should have ended by then report that
// they are silent. The others learn it from the transport, which pings connections that are
// idle for half a minute.
func TestSilentConnections(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	p := startProxy(t, server)
	through := server.Config()
	through.Host = p.URL()
	all := followConfigMaps(t, through)
	brief := followBriefly(t, through, time.Second)
	both := slices.Concat(all, brief)
	churn := startChurn(t, server.Config(), rate, *seed) // past the proxy
	pause(t.Context(), 2*time.Second)
	p.Silence()
	pause(t.Context(), 2*time.Second)
	churn.end(t)
	now, err := configMaps(t.Context(), server)
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
			if h := f.Health(); h.State != tidings.StateSilent {
				return false, fmt.Errorf("the health of %s is %+v", f.Name, h)
			}
		}
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	settle(t, server, both)
}
