package apisim

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kubectl "k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
)

// TestOpenAPISaysThatTheServerValidates looks for the parameter fieldValidation as kubectl
// does, in the documents of both versions.
func TestOpenAPISaysThatTheServerValidates(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.define()
		client, err := discovery.NewDiscoveryClientForConfig(config(b.server, ""))
		b.must(err)
		_, lists, err := client.ServerGroupsAndResources()
		b.must(err)
		v2 := kubectl.NewQueryParamVerifier(b.dynamic(), client, kubectl.QueryParamFieldValidation)
		v3 := kubectl.NewQueryParamVerifierV3(b.dynamic(), client.OpenAPIV3(), kubectl.QueryParamFieldValidation)
		for _, list := range lists {
			gv, err := schema.ParseGroupVersion(list.GroupVersion)
			b.must(err)
			for _, r := range list.APIResources {
				if !slices.Contains(r.Verbs, "create") || !slices.Contains(r.Verbs, "patch") {
					continue
				}
				kind := gv.WithKind(r.Kind)
				if err := v3.HasSupport(kind); err != nil {
					b.Errorf("version 3: %v", err)
				}
				if gv.Group != "" && gv.Group != "example.com" {
					continue // all are in one document, which takes long to read
				}
				if err := v2.HasSupport(kind); err != nil {
					b.Errorf("version 2: %v", err)
				}
			}
		}
		versions, err := openapi3.NewRoot(client.OpenAPIV3()).GroupVersions()
		if b.must(err); !slices.Contains(versions, schema.GroupVersion{Group: "apps", Version: "v1"}) {
			b.Errorf("the documents are %v", versions)
		}
		b.ask("",
			ask{"GET /openapi/v2", "", 200, `"swagger":"2.0"`},
			ask{"GET /openapi/v3/apis/apps/v1", "", 200, "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"},
			ask{"GET /openapi/v3/apis/apps/v9", "", 404, ""},
			ask{"GET /openapi/v1", "", 404, ""},
			ask{"POST /openapi/v2", "", 404, ""},
		)
	})
}
