package source_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/source"
)

type named struct {
	tidings.Meta `json:"metadata"`
}

type managed struct {
	Metadata `json:"metadata"`
}

type Metadata struct {
	tidings.Meta  `json:",inline"`
	ManagedFields []metav1.ManagedFieldsEntry `json:"managedFields"`
}

// server answers each list with two pods, and keeps the header Accept.
type server struct{ accept string }

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.accept = r.Header.Get("Accept")
	body := `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[` +
		`{"metadata":{"name":"a","namespace":"default","uid":"u","resourceVersion":"3"}},` +
		`{"metadata":{"name":"b","namespace":"default","uid":"v","resourceVersion":"4","managedFields":[{"manager":"m"}]}}]}`
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: r,
	}, nil
}

// listAs lists the pods as a view. One of them is cached.
func listAs[V tidings.Object](t *testing.T, make func() V) (items []source.Item[V], accept string) {
	t.Helper()
	s := &server{}
	client, err := source.NewClient(&rest.Config{Host: "http://server.invalid", QPS: -1, Transport: s}, nil)
	if err != nil {
		t.Fatal(err)
	}
	pods := source.Resource{Version: "v1", Name: "pods", Kind: "Pod", Scope: source.ScopeNamespaced}
	page, err := source.NewView(client, pods, make, new(corev1.Pod), source.RESTOptions{}).List(t.Context(), source.ListOptions{
		IsCached: func(key, version, uid string) bool { return key+" "+version+" "+uid == "default/a 3 u" },
	})
	if err != nil {
		t.Fatal(err)
	}
	return page.Items, s.accept
}

// TestV4_CachedObjectsOfAViewAreNotDecoded: and managed fields are asked for if the view has them.
func TestV4_CachedObjectsOfAViewAreNotDecoded(t *testing.T) {
	items, accept := listAs(t, func() *named { return new(named) })
	if len(items) != 1 || items[0].Key != "default/b" || !strings.Contains(accept, "drop=metadata.managedFields") {
		t.Errorf("asked with %q, decoded are %+v, want default/b alone", accept, items)
	}
	all, accept := listAs(t, func() *managed { return new(managed) })
	if len(all) != 1 || len(all[0].Object.ManagedFields) != 1 || strings.Contains(accept, "drop=") {
		t.Errorf("with managed fields, asked with %q, decoded are %+v", accept, all)
	}
}
