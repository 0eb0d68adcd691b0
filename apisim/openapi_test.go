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
// does.
func TestOpenAPISaysThatTheServerValidates(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.define()
		client, err := discovery.NewDiscoveryClientForConfig(config(b.server, ""))
		b.must(err)
		_, lists, err := client.ServerGroupsAndResources()
		b.must(err)
		verifier := kubectl.NewQueryParamVerifierV3(b.dynamic(), client.OpenAPIV3(), kubectl.QueryParamFieldValidation)
		for _, list := range lists {
			gv, err := schema.ParseGroupVersion(list.GroupVersion)
			b.must(err)
			for _, r := range list.APIResources {
				if !slices.Contains(r.Verbs, "create") || !slices.Contains(r.Verbs, "patch") {
					continue
				}
				if err := verifier.HasSupport(gv.WithKind(r.Kind)); err != nil {
					b.Error(err)
				}
			}
		}
		versions, err := openapi3.NewRoot(client.OpenAPIV3()).GroupVersions()
		if b.must(err); !slices.Contains(versions, schema.GroupVersion{Group: "apps", Version: "v1"}) {
			b.Errorf("the documents are %v", versions)
		}
		b.ask("",
			ask{"GET /openapi/v3/apis/apps/v1", "", 200, "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"},
			ask{"GET /openapi/v3/api/v1", "", 200, `"/api/v1/nodes/{name}"`},
			ask{"GET /openapi/v3/apis/apps/v9", "", 404, ""},
			ask{"GET /openapi/v2", "", 404, ""},
			ask{"POST /openapi/v3", "", 404, ""},
		)
	})
}
