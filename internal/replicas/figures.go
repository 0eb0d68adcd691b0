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

// pageWait is how long a page may take.
const pageWait = time.Second

// figures are what the pages of a replica say, in JSON.
type figures struct {
	Informers []struct {
		Health struct {
			Objects int `json:"objects"`
		} `json:"health"`
	} `json:"informers"`
	Controllers []struct {
		Health struct {
			Calls uint64 `json:"calls"`
		} `json:"health"`
	} `json:"controllers"`
	Groups []shard.Health `json:"groups"`
	// Slots are those of the page of the group.
	Slots []shard.Entry `json:"slots"`
}

// GroupPage returns the address of the page with the map of a group.
func (p *Process) GroupPage(lease string) string {
	return p.Pages + "group?name=" + url.QueryEscape(lease)
}

// ask asks a replica for its figures.
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

// objects returns the number of cached objects.
func (f figures) objects() (n int) {
	for _, i := range f.Informers {
		n += i.Health.Objects
	}
	return n
}

// calls returns the number of calls of all controllers.
func (f figures) calls() (n uint64) {
	for _, c := range f.Controllers {
		n += c.Health.Calls
	}
	return n
}
