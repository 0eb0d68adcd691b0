package served_test

import (
	"context"
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/internal/engine/served"
)

// TestResource checks each answer of discovery.
func TestResource(t *testing.T) {
	const (
		groups  = `{"kind":"APIGroupList","groups":[{"name":"example.com","versions":[{"groupVersion":"example.com/v1","version":"v1"}]}]}`
		widgets = `{"kind":"APIResourceList","resources":[{"name":"widgets"},{"name":"widgets/status"}]}`
		page    = "404 page not found"
	)
	for name, c := range map[string]struct {
		resource string
		answers  map[string]string
		served   bool
		fails    bool
		err      error
	}{
		"served":                {"widgets.v1.example.com", map[string]string{"/apis": groups, "/apis/example.com/v1": widgets}, true, false, nil},
		"no such resource":      {"gadgets.v1.example.com", map[string]string{"/apis": groups, "/apis/example.com/v1": widgets}, false, false, nil},
		"no such version":       {"widgets.v2.example.com", map[string]string{"/apis": groups}, false, false, nil},
		"no such group":         {"widgets.v1.example.org", map[string]string{"/apis": groups}, false, false, nil},
		"of the core":           {"widgets.v1.", map[string]string{"/api/v1": widgets}, true, false, nil},
		"a page for the groups": {"widgets.v1.example.com", map[string]string{"/apis": page}, false, true, served.ErrPage},
		"a page for the group":  {"widgets.v1.example.com", map[string]string{"/apis": groups, "/apis/example.com/v1": page}, false, true, served.ErrPage},
		"another document":      {"widgets.v1.", map[string]string{"/api/v1": groups}, false, true, served.ErrPage},
		"no answer":             {"widgets.v1.example.com", nil, false, true, nil},
	} {
		t.Run(name, func(t *testing.T) {
			gvr, _ := schema.ParseResourceArg(c.resource)
			got, err := served.Resource(t.Context(), *gvr, func(_ context.Context, path string) ([]byte, error) {
				if answer, ok := c.answers[path]; ok {
					return []byte(answer), nil
				}
				return nil, errors.New("no answer for " + path)
			})
			if got != c.served || (err != nil) != c.fails || c.err != nil && !errors.Is(err, c.err) {
				t.Errorf("it is served: %v, %v", got, err)
			}
		})
	}
}
