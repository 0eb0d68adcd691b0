package cli_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/internal/builtin"
)

// discovery answers what a server says of its types: the built-in ones and those
// given, as a server with CustomResourceDefinitions does. Everything else goes to
// next.
func discovery(custom []metav1.APIResource, next http.Handler) http.Handler {
	lists := make(map[schema.GroupVersion]*metav1.APIResourceList)
	var order []schema.GroupVersion
	add := func(r metav1.APIResource) {
		gv := schema.GroupVersion{Group: r.Group, Version: r.Version}
		if lists[gv] == nil {
			lists[gv] = &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
			order = append(order, gv)
		}
		r.Group, r.Version = "", ""
		lists[gv].APIResources = append(lists[gv].APIResources, r)
	}
	for _, r := range builtin.All() {
		if r.Removed != "" {
			continue
		}
		add(metav1.APIResource{
			Group: r.Group, Version: r.Version, Name: r.Resource, SingularName: r.Singular(), Kind: r.Kind,
			Namespaced: r.Namespaced, ShortNames: r.ShortNames(), Verbs: metav1.Verbs{"get", "list", "watch"},
		})
	}
	for _, r := range custom {
		add(r)
	}
	groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, gv := range order {
		version := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
		if last := len(groups.Groups) - 1; last >= 0 && groups.Groups[last].Name == gv.Group {
			groups.Groups[last].Versions = append(groups.Groups[last].Versions, version)
		} else if gv.Group != "" {
			groups.Groups = append(groups.Groups, metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
		var answer any
		switch {
		case r.URL.Path == "/api":
			answer = metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}, Versions: []string{"v1"}}
		case r.URL.Path == "/apis":
			answer = groups
		case len(parts) == 2 && parts[0] == "api":
			answer = lists[schema.GroupVersion{Version: parts[1]}]
		case len(parts) == 3 && parts[0] == "apis":
			answer = lists[schema.GroupVersion{Group: parts[1], Version: parts[2]}]
		default:
			next.ServeHTTP(w, r)
			return
		}
		writeJSON(w, http.StatusOK, answer)
	})
}

func writeJSON(w http.ResponseWriter, code int, answer any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(answer) //nolint:errcheck // the client has gone
}

// refuse answers with a status.
func refuse(err *apierrors.StatusError) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		status := err.Status()
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		writeJSON(w, int(status.Code), status)
	}
}

// canned is a collection whose list is given and whose watch brings what is pushed.
type canned struct {
	list   string
	events chan string // frames
	once   sync.Once
	opened chan struct{} // closed when the watch is open
}

func newCanned(list string) *canned {
	return &canned{list: list, events: make(chan string), opened: make(chan struct{})}
}

func (c *canned) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	query := r.URL.Query()
	switch {
	case query.Get("sendInitialEvents") == "true":
		refuse(apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil))(w, r)
		return
	case query.Get("watch") == "":
		w.Write([]byte(c.list)) //nolint:errcheck // the client has gone
		return
	}
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	flush.Flush() //nolint:errcheck // the client has gone
	c.once.Do(func() { close(c.opened) })
	for {
		select {
		case frame, ok := <-c.events:
			if !ok {
				return
			}
			w.Write([]byte(frame + "\n")) //nolint:errcheck // the client has gone
			flush.Flush()                 //nolint:errcheck // the client has gone
		case <-r.Context().Done():
			return
		}
	}
}

// serve starts a server with discovery of the built-in types and of widgets.
func serve(t *testing.T, next http.Handler) *httptest.Server {
	t.Helper()
	widgets := metav1.APIResource{
		Group: "example.com", Version: "v1", Name: "widgets", SingularName: "widget", Kind: "Widget",
		Namespaced: true, ShortNames: []string{"wdg"}, Verbs: metav1.Verbs{"get", "list", "watch"},
	}
	reviews := metav1.APIResource{Group: "example.com", Version: "v1", Name: "reviews", SingularName: "review", Kind: "Review", Verbs: metav1.Verbs{"create"}}
	server := httptest.NewServer(discovery([]metav1.APIResource{widgets, reviews}, next))
	t.Cleanup(server.CloseClientConnections)
	t.Cleanup(server.Close)
	return server
}
