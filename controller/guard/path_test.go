package guard

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestParsePath(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/nodes":                                  "nodes,,,",
		"/api/v1/nodes/n":                                "nodes,,n,",
		"/api/v1/nodes/n/status":                         "nodes,,n,status",
		"/api/v1/namespaces":                             "namespaces,,,",
		"/api/v1/namespaces/n":                           "namespaces,,n,",
		"/api/v1/namespaces/n/finalize":                  "namespaces,,n,finalize",
		"/api/v1/namespaces/n/status":                    "namespaces,,n,status",
		"/api/v1/namespaces/n/pods":                      "pods,n,,",
		"/api/v1/namespaces/n/pods/":                     "pods,n,,",
		"/api/v1/namespaces/n/pods/p/exec":               "pods,n,p,exec",
		"/api/v1/namespaces/n/services/s/proxy/a/b":      "services,n,s,proxy",
		"/apis/apps/v1/namespaces/n/deployments/d/scale": "deployments.apps,n,d,scale",
		"/apis/example.com/v1/namespaces/n/statuses/s":   "statuses.example.com,n,s,",
		"/k8s/clusters/c/api/v1/nodes/n":                 "nodes,,n,",
		"/":                                              "", "": "", "/api": "", "/api/v1": "", "/apis": "", "/apis/apps": "", "/apis/apps/v1": "", "/apis//v1/a": "",
		"/version": "", "/healthz": "", "/openapi/v3": "", "/k8s/clusters/cc/api/v1/nodes": "", "/apiv1/nodes": "",
	} {
		prefix := ""
		if strings.HasPrefix(path, "/k8s/") {
			prefix = "/k8s/clusters/c"
		}
		got, ok := parsePath(prefix, path)
		text := strings.Join([]string{got.resource.String(), got.namespace, got.name, got.subresource}, ",")
		if ok != (want != "") || ok && text != want {
			t.Errorf("%s is %s, %v, want %s", path, text, ok, want)
		}
	}
}

// TestWhatIsAWrite has a row for each rule.
func TestWhatIsAWrite(t *testing.T) {
	g := &Guard{base: &url.URL{Scheme: "https", Host: "a", Path: "/prefix"}}
	for request, want := range map[string]string{
		"POST /prefix/api/v1/namespaces/n/pods":                                            "create pods",
		"POST /prefix/api/v1/namespaces/n/pods?fieldManager=m":                             "create pods",
		"PUT /prefix/api/v1/namespaces/n/pods/p":                                           "update pods",
		"PATCH /prefix/api/v1/namespaces/n/pods/p/status":                                  "patch pods/status",
		"DELETE /prefix/api/v1/namespaces/n/pods/p":                                        "delete pods",
		"DELETE /prefix/api/v1/namespaces/n/pods":                                          "deletecollection pods",
		"POST /prefix/api/v1/namespaces/n/bindings":                                        "create pods",
		"POST /prefix/apis/example.com/v1/namespaces/n/bindings":                           "create bindings.example.com",
		"POST /prefix/api/v1/namespaces/n/pods/p/eviction":                                 "create pods/eviction",
		"POST /prefix/apis/example.com/v1/namespaces/n/tokens/a/token":                     "create tokens.example.com/token",
		"POST /prefix/api/v1/namespaces/n/pods?dryRun=All":                                 "",
		"GET /prefix/api/v1/namespaces/n/pods":                                             "",
		"POST /prefix/api/v1/namespaces/n/pods/p/exec":                                     "",
		"POST /prefix/api/v1/namespaces/n/pods/p/attach":                                   "",
		"POST /prefix/api/v1/namespaces/n/pods/p/portforward":                              "",
		"POST /prefix/api/v1/namespaces/n/services/s/proxy/a":                              "",
		"POST /prefix/api/v1/namespaces/n/serviceaccounts/s/token":                         "",
		"POST /prefix/apis/authentication.k8s.io/v1/tokenreviews":                          "",
		"POST /prefix/apis/authorization.k8s.io/v1/namespaces/n/localsubjectaccessreviews": "",
		"POST /prefix/version":                                                             "", "POST /api/v1/namespaces/n/pods": "",
	} {
		method, address, _ := strings.Cut(request, " ")
		req, err := http.NewRequest(method, "https://a"+address, nil)
		if err != nil {
			t.Fatal(err)
		}
		op, ok := g.operationOf(req)
		if got := strings.TrimSpace(op.verb + " " + op.resourceText()); ok != (want != "") || ok && got != want {
			t.Errorf("%s is %s, %v, want %q", request, got, ok, want)
		}
	}
}

// FuzzParsePath checks that a path is made of the parts that are read from it.
func FuzzParsePath(f *testing.F) {
	f.Add("", "/api/v1/namespaces/n/pods/p/status")
	f.Add("/k8s", "/k8s/apis/apps/v1/deployments/d/proxy/a//b")
	f.Fuzz(func(t *testing.T, prefix, path string) {
		got, ok := parsePath(prefix, path)
		if !ok {
			return
		}
		rest := strings.TrimPrefix(path, prefix)
		for _, part := range []string{
			got.resource.Group, got.namespace, got.resource.Resource, got.name, got.subresource,
		} {
			_, after, found := strings.Cut(rest, "/"+part)
			if part != "" && (!found || strings.Contains(part, "/")) {
				t.Errorf("%q below %q is read as %+v", path, prefix, got)
			}
			if part != "" {
				rest = after
			}
		}
		if got.resource == (schema.GroupResource{}) {
			t.Errorf("%q has no resource", path)
		}
	})
}
