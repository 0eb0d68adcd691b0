package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
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

// ask asks a replica for its figures.
func (p *process) ask(ctx context.Context, group string) (f figures, err error) {
	ctx, cancel := context.WithTimeout(ctx, pageWait)
	defer cancel()
	for _, page := range []string{"?format=json", "group?format=json&name=" + url.QueryEscape(group)} {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.pages+page, nil)
		if err != nil {
			return f, err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return f, err
		}
		defer answer.Body.Close() //nolint:errcheck // it is only read
		if answer.StatusCode != http.StatusOK {
			return f, fmt.Errorf("%s answers %s", request.URL, answer.Status)
		}
		if err := json.NewDecoder(answer.Body).Decode(&f); err != nil {
			return f, fmt.Errorf("%s: %w", request.URL, err)
		}
	}
	if len(f.Informers) == 0 || len(f.Controllers) == 0 || len(f.Groups) == 0 {
		return f, fmt.Errorf("%s lacks the informer, the controller or the group", p.pages)
	}
	return f, nil
}

// nameOf returns the name of the replica that a member of the group is.
func nameOf(member string) string {
	identity := strings.TrimPrefix(member, name+".")
	if i := strings.LastIndex(identity, "-"); i >= 0 {
		return identity[:i]
	}
	return identity
}
