package replicas

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/tidings-go/tidings/shard"
)

// pageWait bounds the time of a request of a page.
const pageWait = time.Second

// figures are the figures on the pages of a replica, in JSON.
type figures struct {
	Informers []struct {
		Health struct{ Objects int }
	}
	Controllers []struct {
		Health struct{ Calls uint64 }
	}
	Groups []shard.Health
	Slots  []shard.Entry // on the page of the group
}

// GroupPage returns the address of the page with the map of a group.
func (p *Process) GroupPage(lease string) string {
	return p.Pages + "group?name=" + url.QueryEscape(lease)
}

func (p *Process) ask(ctx context.Context, lease string) (f figures, err error) {
	ctx, cancel := context.WithTimeout(ctx, pageWait)
	defer cancel()
	for _, page := range []string{p.Pages + "?format=json", p.GroupPage(lease) + "&format=json"} {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
		if err != nil {
			return f, err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return f, err
		}
		defer answer.Body.Close() //nolint:errcheck // it is only read
		if answer.StatusCode != http.StatusOK {
			return f, fmt.Errorf("%s answers %s", page, answer.Status)
		}
		if err := json.NewDecoder(answer.Body).Decode(&f); err != nil {
			return f, fmt.Errorf("%s: %w", page, err)
		}
	}
	if len(f.Groups) == 0 {
		return f, fmt.Errorf("%s lacks the group", p.Pages)
	}
	return f, nil
}

// String describes the objects and the calls of a replica.
func (f figures) String() string {
	objects, calls := 0, uint64(0)
	for _, i := range f.Informers {
		objects += i.Health.Objects
	}
	for _, c := range f.Controllers {
		calls += c.Health.Calls
	}
	return fmt.Sprintf("%d objects, %d calls", objects, calls)
}
