package apisim

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
)

// TestOpenAPISaysThatTheServerValidates looks at the documents of versions. The module kubectl looks
// for the parameter of every type with the code of kubectl.
func TestOpenAPISaysThatTheServerValidates(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.define()
		client, err := discovery.NewDiscoveryClientForConfig(config(b.server, ""))
		b.must(err)
		versions, err := openapi3.NewRoot(client.OpenAPIV3()).GroupVersions()
		if b.must(err); !slices.Contains(versions, schema.GroupVersion{Group: "apps", Version: "v1"}) {
			b.Errorf("the documents are %v", versions)
		}
		b.ask("",
			ask{"GET /openapi/v3/apis/apps/v1", "", 200, "/apis/apps/v1/namespaces/{namespace}/deployments/{name}"},
			ask{"GET /openapi/v3/api/v1", "", 200, `"/api/v1/nodes/{name}"`},
			ask{"GET /openapi/v3/api/v1", "", 200, `"name":"fieldValidation"`},
			ask{"GET /openapi/v3/apis/example.com/v1", "", 200, `"name":"fieldValidation"`},
			ask{"GET /openapi/v3/apis/apps/v9", "", 404, ""},
			ask{"GET /openapi/v2", "", 404, ""},
			ask{"POST /openapi/v3", "", 404, ""},
		)
	})
}
