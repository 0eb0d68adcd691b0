package kubectl

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
)

// TestEveryTypeIsValidatedByTheServer looks for the parameter fieldValidation of every type, as
// kubectl does before it leaves the validation to the server.
func TestEveryTypeIsValidatedByTheServer(t *testing.T) {
	server := startServer(t)
	client, err := discovery.NewDiscoveryClientForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	objects, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	verifier := resource.NewQueryParamVerifierV3(objects, client.OpenAPIV3(), resource.QueryParamFieldValidation)
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "create") || !slices.Contains(r.Verbs, "patch") {
				continue
			}
			if err := verifier.HasSupport(version.WithKind(r.Kind)); err != nil {
				t.Error(err)
			}
			asked = append(asked, r.Name)
		}
	}
	if !slices.Contains(asked, "deployments") || !slices.Contains(asked, "widgets") {
		t.Errorf("the types are %v", asked)
	}
}
