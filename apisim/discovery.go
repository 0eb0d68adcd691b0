package apisim

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
)

// mediaAggregated is the media type of aggregated discovery, in the form that clients compare.
const mediaAggregated = mediaJSON + ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// wantsAggregated reports whether the first media type in Accept that the server supports is that
// of aggregated discovery.
func wantsAggregated(r *http.Request) bool {
	for mediaType, params := range mediaTypes(r.Header.Get("Accept")) {
		aggregated := params["as"] == "APIGroupDiscoveryList" && params["v"] == "v2" &&
			params["g"] == apidiscoveryv2.GroupName
		if mediaType == mediaJSON && (aggregated || params["as"] == "") {
			return aggregated
		}
	}
	return false
}

// serveDiscovery answers a request about versions, groups and resources, and reports
// whether the request was one.
func (s *Server) serveDiscovery(w http.ResponseWriter, r *http.Request) bool {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if r.Method != http.MethodGet {
		return false
	}
	isCore := parts[0] == "api"
	switch {
	case len(parts) == 1 && parts[0] == "version":
		writeJSON(w, mediaJSON, servedVersion)
		return true
	case !isCore && parts[0] != "apis", isCore && len(parts) > 2, len(parts) > 3:
		return false
	}
	groups := slices.DeleteFunc(s.discovery(), func(g apidiscoveryv2.APIGroupDiscovery) bool {
		return (g.Name == "") != isCore
	})
	list := apidiscoveryv2.APIGroupDiscoveryList{Items: groups}
	if len(parts) == 1 && wantsAggregated(r) {
		list.Kind = "APIGroupDiscoveryList"
		list.APIVersion = apidiscoveryv2.SchemeGroupVersion.String()
		writeJSON(w, mediaAggregated, list)
		return true
	}
	if isCore {
		parts = slices.Insert(parts, 1, "") // the name of the group
	}
	if found := legacyDiscovery(list, parts[1:]); found != nil {
		writeJSON(w, mediaJSON, found)
	} else {
		writeError(w, r, errNoResource())
	}
	return true
}

// legacyDiscovery returns the answer for a path of a group and a version, either of which may be
// missing. It returns nil if there is no such group or version.
func legacyDiscovery(all apidiscoveryv2.APIGroupDiscoveryList, path []string) any {
	groups, resources, _ := discovery.SplitGroupsAndResources(all) // no group is stale
	switch len(path) {
	case 0:
		groups.Kind, groups.APIVersion = "APIGroupList", "v1"
		return groups
	case 2:
		list, ok := resources[schema.GroupVersion{Group: path[0], Version: path[1]}]
		if !ok {
			return nil
		}
		list.Kind, list.APIVersion = "APIResourceList", "v1"
		return list
	}
	for _, group := range groups.Groups {
		switch group.Name {
		case "":
			core := &metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}}
			for _, version := range group.Versions {
				core.Versions = append(core.Versions, version.Version)
			}
			return core
		case path[0]:
			group.Kind, group.APIVersion = "APIGroup", "v1"
			return &group
		}
	}
	return nil
}

// servedVersion is the version of Kubernetes whose API is simulated.
var servedVersion = version.Info{
	Major: "1", Minor: "37", GitVersion: "v1.37.1-apisim", Platform: "apisim",
}

// servedLocked returns the resources in the order of discovery.
func (s *Server) servedLocked() []*resource {
	return slices.SortedFunc(maps.Values(s.resources), func(a, b *resource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group),
			version.CompareKubeAwareVersionStrings(b.Version, a.Version), cmp.Compare(a.Name, b.Name))
	})
}

// subresource is an endpoint below an object.
type subresource struct {
	name  string
	gvk   schema.GroupVersionKind
	verbs metav1.Verbs
}

func (r *resource) verbs() metav1.Verbs {
	if r.isReview {
		return metav1.Verbs{"create"}
	}
	verbs := metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}
	if r.isBuiltin("namespaces") {
		return verbs
	}
	return slices.Insert(verbs, 2, "deletecollection")
}

// bodies are the kinds in the bodies of subresources that do not have the kind of the object.
var bodies = map[string]schema.GroupVersionKind{
	"binding":  corev1.SchemeGroupVersion.WithKind("Binding"),
	"eviction": policyv1.SchemeGroupVersion.WithKind("Eviction"),
	"scale":    autoscalingv1.SchemeGroupVersion.WithKind("Scale"),
}

func (r *resource) subresources() (all []subresource) {
	add := func(name string, verbs ...string) {
		kind, ok := bodies[name]
		if !ok {
			kind = r.gvk()
		}
		all = append(all, subresource{name, kind, verbs})
	}
	if r.isBuiltin("pods") {
		add("binding", "create")
		add("eviction", "create")
	}
	if r.isBuiltin("namespaces") {
		add("finalize", "update")
	}
	if r.scale != nil {
		add("scale", "get", "patch", "update")
	}
	if r.HasStatus {
		add("status", "get", "patch", "update")
	}
	return all
}

func (s *Server) discovery() []apidiscoveryv2.APIGroupDiscovery {
	s.mu.Lock()
	defer s.mu.Unlock()
	var groups []apidiscoveryv2.APIGroupDiscovery
	for _, res := range s.servedLocked() {
		if n := len(groups); n == 0 || groups[n-1].Name != res.Group {
			groups = append(groups, apidiscoveryv2.APIGroupDiscovery{})
			groups[n].Name = res.Group
		}
		group := &groups[len(groups)-1]
		if n := len(group.Versions); n == 0 || group.Versions[n-1].Version != res.Version {
			group.Versions = append(group.Versions, apidiscoveryv2.APIVersionDiscovery{
				Version: res.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent,
			})
		}
		version := &group.Versions[len(group.Versions)-1]
		version.Resources = append(version.Resources, res.discovery())
	}
	return groups
}

func (r *resource) discovery() apidiscoveryv2.APIResourceDiscovery {
	d := apidiscoveryv2.APIResourceDiscovery{
		Resource: r.Name, ResponseKind: new(metav1.GroupVersionKind(r.gvk())),
		Scope: apidiscoveryv2.ScopeCluster, SingularResource: r.Singular, ShortNames: r.ShortNames,
		Categories: r.Categories, Verbs: r.verbs(),
	}
	if r.Namespaced {
		d.Scope = apidiscoveryv2.ScopeNamespace
	}
	for _, sub := range r.subresources() {
		d.Subresources = append(d.Subresources, apidiscoveryv2.APISubresourceDiscovery{
			Subresource: sub.name, Verbs: sub.verbs, ResponseKind: new(metav1.GroupVersionKind(sub.gvk)),
		})
	}
	return d
}
