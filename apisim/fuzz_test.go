package apisim

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

var (
	fuzzedObjects = []string{
		"/api/v1/namespaces/default/configmaps/a", "/api/v1/namespaces/default/pods/p",
		"/api/v1/namespaces/default", "/apis/example.com/v1/namespaces/default/widgets/w",
		"/apis/example.com/v1/namespaces/default/widgets/w/status",
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com",
	}
	fuzzedForms = []string{
		"", mediaYAML, mediaProtobuf + "," + mediaJSON,
		"application/json;as=Table;v=v1;g=meta.k8s.io",
		"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
	}
)

// fuzzSeeds returns a method, a path, parameters, two media types and a body each.
func fuzzSeeds() [][6]string {
	const (
		maps       = "/api/v1/namespaces/default/configmaps"
		custom     = "/apis/example.com/v1/namespaces/default/widgets"
		crds       = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
		asTable    = "application/json;as=Table;v=v1;g=meta.k8s.io"
		asMetadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
	)
	return [][6]string{
		{"GET", "/api/v1/pods", "watch=true&timeoutSeconds=1&resourceVersion=1", mediaJSON, asTable, ""},
		{"GET", "/api/v1/pods", "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", "", mediaProtobuf, ""},
		{"GET", "/api/v1/nodes", "includeObject=Object&limit=1", "", asTable, ""},
		{"GET", maps, "fieldSelector=metadata.name=a&labelSelector=a in (b)", "", asMetadata, ""},
		{"POST", maps, "", mediaJSON, "", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"b"}}`},
		{"POST", maps, "fieldValidation=Strict&dryRun=All", mediaYAML, mediaYAML, "kind: ConfigMap\nmetadata: {generateName: b}"},
		{"POST", "/api/v1/namespaces/default/pods", "", mediaProtobuf, mediaProtobuf, "k8s\x00\n\x00"},
		{"PUT", "/apis/apps/v1/namespaces/default/deployments/a/status", "fieldManager=x", mediaJSON, "", "{}"},
		{"PUT", "/apis/apps/v1/namespaces/default/deployments/a/scale", "", mediaJSON, "", `{"spec":{"replicas":1}}`},
		{"PUT", "/api/v1/namespaces/default/finalize", "", mediaJSON, "", `{"metadata":{"name":"default"}}`},
		{"DELETE", maps + "/a", "", mediaJSON, "", `{"preconditions":{"uid":"x"}}`},
		{"DELETE", maps, "labelSelector=a&gracePeriodSeconds=1", "", "", ""},
		{"DELETE", crds + "/widgets.example.com", "", "", "", ""},
		{"GET", "/apis/apps/v1/deployments", "limit=1&continue=eyJydiI6MX0&labelSelector=a%3Db", "", "", ""},
		{"PATCH", maps + "/a", "", "application/merge-patch+json", "", `{"data":{"k":null,"l":1},"metadata":{"finalizers":["a/b"]}}`},
		{"PATCH", maps + "/a", "", "application/json-patch+json", "", `[{"op":"copy","from":"/metadata","path":"/data"}]`},
		{"PATCH", "/api/v1/namespaces/default/pods/p", "", "application/strategic-merge-patch+json", "", `{"spec":{"containers":[{"name":"a","$patch":"delete"}],"$retainKeys":["x"]}}`},
		{"PATCH", custom + "/w", "", "application/merge-patch+json", "", `{"spec":[1,{"a":2.5}],"status":7}`},
		{"PATCH", custom + "/w/scale", "", "application/merge-patch+json", "", `{"spec":{"replicas":9}}`},
		{"PATCH", crds + "/widgets.example.com", "", "application/json-patch+json", "", `[{"op":"replace","path":"/spec/versions/0/name","value":"v2"}]`},
		{"POST", crds, "", mediaJSON, "", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a.b"},"spec":{"group":"b","scope":"Cluster","names":{"plural":"a","kind":"A"},"versions":[{"name":"v1","served":true,"storage":true,"additionalPrinterColumns":[{"name":"x","type":"date","jsonPath":".x[0]"}]}]},"status":{"conditions":[1]}}`},
		{"GET", custom, "fieldSelector=spec.colour%3Dred", "", asTable, ""},
		{"GET", "/apis", "", "", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", ""},
	}
}

// patchSeeds adds patches of every object, and of other kinds for one object each.
func patchSeeds(f *testing.F) {
	for i, patch := range []string{
		`{"metadata":{"labels":{"a":"b"},"finalizers":["a/b"]}}`,
		`{"spec":{"size":[1,2.5,null]},"status":{"x":1}}`, `{"metadata":null}`,
		`{"spec":{"versions":[{"name":"v3","served":true,"storage":true}]}}`,
		`[{"op":"move","from":"/spec","path":"/x"}]`, `[{"op":"replace","path":"","value":null}]`,
		`[{"op":"remove","path":"/metadata/uid"}]`, `{"spec":{"names":{"plural":7}},"kind":"x"}`,
		`{"$patch":"replace"}`, `{0`, `{"spec":{"containers":[{"name":"a","image":"b"}]}}`,
		`{"apiVersion":"example.com/v1","kind":"Widget","spec":{"size":[1]},"metadata":{}}`,
	} {
		for n, path := range fuzzedObjects {
			kinds := []string{"merge-patch+json"}
			if n == i%len(fuzzedObjects) {
				kinds = append(kinds, "json-patch+json", "strategic-merge-patch+json", "apply-patch+yaml")
			}
			for _, kind := range kinds {
				f.Add("PATCH", path, "fieldManager=f", "application/"+kind, "", patch)
			}
		}
	}
}

// FuzzRequests sends any method, path, query, headers and body past the network: nothing may
// panic, every answer has a status, and the objects can still be read in every form.
func FuzzRequests(f *testing.F) {
	for _, seed := range fuzzSeeds() {
		f.Add(seed[0], seed[1], seed[2], seed[3], seed[4], seed[5])
	}
	patchSeeds(f)
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(widgetDefinition), &definition.Object); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, method, path, query, contentType, accept, body string) {
		server := Start(t)
		for _, obj := range []object{
			configMap("a"), pod("p"), nodeNamed("n"), definition, widget("v1", "w"),
		} {
			if _, err := server.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
		}
		r, err := http.NewRequest(method, "http://apisim.invalid/", strings.NewReader(body))
		if err != nil || r.Method == "" {
			return
		}
		// A watch would last; a future version would be waited for.
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		r = r.WithContext(ctx)
		r.URL.Path, r.URL.RawQuery = path, query
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		if w.Code < 200 || w.Code > 599 {
			t.Errorf("status %d", w.Code)
		}
		for _, path := range fuzzedObjects {
			for _, form := range fuzzedForms {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
				r.Header.Set("Accept", form)
				w := httptest.NewRecorder()
				if server.ServeHTTP(w, r); w.Code >= 500 {
					t.Errorf("afterwards %s as %q is %d %s", path, form, w.Code, w.Body)
				}
			}
		}
	})
}
