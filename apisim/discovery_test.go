package apisim

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
)

// TestDiscoveryInOneAnswer compares the result of aggregated discovery, in two requests, with that
// of one request per version.
func TestDiscoveryInOneAnswer(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.define()
		client, err := discovery.NewDiscoveryClientForConfig(config(b.server, ""))
		b.must(err)
		flat := func() []string {
			_, lists, err := client.ServerGroupsAndResources()
			b.must(err)
			var lines []string
			for _, list := range lists {
				for _, r := range list.APIResources {
					if strings.Contains(r.Name, "/") {
						r.SingularName = "" // the client invents one for the one form
					}
					lines = append(lines, fmt.Sprint(list.GroupVersion, " ", r.Name, " ", r.SingularName, " ", r.Kind, " ", r.Namespaced, " ", r.ShortNames, " ", r.Categories, " ", r.Verbs))
				}
			}
			slices.Sort(lines)
			return lines
		}
		before := len(b.server.Requests())
		aggregated := flat()
		if asked := len(b.server.Requests()) - before; asked != 2 {
			b.Errorf("discovery took %d requests: %+v", asked, b.server.Requests())
		}
		client.UseLegacyDiscovery = true
		if legacy := flat(); fmt.Sprint(legacy) != fmt.Sprint(aggregated) {
			b.Errorf("in one answer\n%s\none by one\n%s", strings.Join(aggregated, "\n"), strings.Join(legacy, "\n"))
		}
		for _, want := range []string{
			"apps/v1 deployments/scale  Scale true [] [] [get patch update]",
			"v1 nodes node Node false [no] [] [create delete deletecollection get list patch update watch]",
			"example.com/v1 widgets widget Widget true [wd] [all] [create delete deletecollection get list patch update watch]",
			"example.com/v1 widgets/status  Widget true [] [] [get patch update]",
			"v1 namespaces namespace Namespace false [ns] [] [create delete get list patch update watch]",
			"v1 namespaces/finalize  Namespace false [] [] [update]",
			"apiextensions.k8s.io/v1 customresourcedefinitions customresourcedefinition CustomResourceDefinition false [crd crds] [api-extensions] [create delete deletecollection get list patch update watch]",
		} {
			if !slices.Contains(aggregated, want) {
				b.Errorf("missing: %s", want)
			}
		}
		if strings.Contains(fmt.Sprint(aggregated), "extensions/v1beta1") {
			b.Error("a version is served that Kubernetes no longer has")
		}
		if v, err := client.ServerVersion(); err != nil || v.Major != "1" {
			b.Errorf("version %v, %v", v, err)
		}
		if code, text := b.get("GET", "/readyz", ""); code != 200 || text != "ok" {
			b.Errorf("readyz: %d %s", code, text)
		}
	})
}

func TestPreferredVersionIsTheMostStable(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		for _, version := range []string{"v1beta1", "v2alpha1", "v1", "v10", "v2"} {
			b.must(b.server.Register(Resource{Group: "example.com", Version: version, Name: "widgets", Kind: "Widget"}))
		}
		var group metav1.APIGroup
		code, text := b.get("GET", "/apis/example.com", "")
		b.decode(text, &group)
		var versions []string
		for _, v := range group.Versions {
			versions = append(versions, v.Version)
		}
		if code != 200 || group.PreferredVersion.Version != "v10" || fmt.Sprint(versions) != "[v10 v2 v1 v1beta1 v2alpha1]" {
			b.Errorf("%d %v", code, versions)
		}
	})
}
