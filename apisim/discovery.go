package apisim

import (
	"cmp"
	"mime"
	"net/http"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// mediaAggregated is the type of discovery in one answer, as clients compare it.
const mediaAggregated = mediaJSON + ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// wantsAggregated reports whether the first media type in Accept that the server has is
// that of discovery in one answer.
func wantsAggregated(r *http.Request) bool {
	for clause := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		mediaType, params, err := mime.ParseMediaType(clause)
		if err != nil || mediaType != mediaJSON {
			continue
		}
		if params["as"] == "" {
			return false
		}
		if params["as"] == "APIGroupDiscoveryList" && params["g"] == apidiscoveryv2.GroupName &&
			params["v"] == "v2" {
			return true
		}
	}
	return false
}

// serveDiscovery answers a request about versions, groups and resources, and reports
// whether the request was one.
func (s *Server) serveDiscovery(w http.ResponseWriter, r *http.Request) bool {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if r.Method != http.MethodGet || len(parts) > 3 {
		return false
	}
	var found any
	switch {
	case parts[0] == "version" && len(parts) == 1:
		found = servedVersion
	case parts[0] == "api" && len(parts) == 1:
		if wantsAggregated(r) {
			writeJSON(w, mediaAggregated, s.aggregated(func(group string) bool { return group == "" }))
			return true
		}
		versions := &metav1.APIVersions{Versions: s.versions("")}
		versions.Kind = "APIVersions"
		found = versions
	case parts[0] == "apis" && len(parts) == 1:
		if wantsAggregated(r) {
			writeJSON(w, mediaAggregated, s.aggregated(func(group string) bool { return group != "" }))
			return true
		}
		found = s.groups()
	case parts[0] == "apis" && len(parts) == 2:
		if group := s.group(parts[1]); len(group.Versions) > 0 {
			found = &group
		}
	case parts[0] == "api" && len(parts) == 2:
		found = s.resourcesOf(schema.GroupVersion{Version: parts[1]})
	case parts[0] == "apis" && len(parts) == 3:
		found = s.resourcesOf(schema.GroupVersion{Group: parts[1], Version: parts[2]})
	default:
		return false
	}
	if found == nil {
		writeError(w, r, errNoResource())
	} else {
		writeJSON(w, mediaJSON, found)
	}
	return true
}

// servedVersion is the version of Kubernetes whose API is simulated.
var servedVersion = version.Info{
	Major: "1", Minor: "37", GitVersion: "v1.37.1-apisim", Platform: "apisim",
}

// served returns the resources that are not removed, sorted.
func (s *Server) served() []*resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.servedLocked()
}

func (s *Server) servedLocked() []*resource {
	var all []*resource
	for _, r := range s.resources {
		if !r.removed {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b *resource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group),
			version.CompareKubeAwareVersionStrings(b.Version, a.Version), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// versions returns the versions of a group, the preferred one first.
func (s *Server) versions(group string) []string {
	var versions []string
	for _, r := range s.served() {
		if r.Group == group && !slices.Contains(versions, r.Version) {
			versions = append(versions, r.Version)
		}
	}
	return versions
}

func (s *Server) groups() *metav1.APIGroupList {
	list := &metav1.APIGroupList{}
	list.Kind, list.APIVersion = "APIGroupList", "v1"
	last := ""
	for _, r := range s.served() {
		if r.Group != last {
			last = r.Group
			list.Groups = append(list.Groups, s.group(r.Group))
		}
	}
	return list
}

func (s *Server) group(name string) metav1.APIGroup {
	group := metav1.APIGroup{Name: name}
	group.Kind, group.APIVersion = "APIGroup", "v1"
	for _, v := range s.versions(name) {
		group.Versions = append(group.Versions,
			metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + v, Version: v})
	}
	if len(group.Versions) > 0 {
		group.PreferredVersion = group.Versions[0]
	}
	return group
}

// subresource is an endpoint below an object.
type subresource struct {
	name  string
	gvk   schema.GroupVersionKind
	verbs metav1.Verbs
}

func (r *resource) verbs() metav1.Verbs {
	verbs := metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}
	if r.isBuiltin("namespaces") {
		return verbs
	}
	return slices.Insert(verbs, 2, "deletecollection")
}

func (r *resource) subresources() []subresource {
	var subs []subresource
	if r.isBuiltin("namespaces") {
		subs = append(subs, subresource{"finalize", r.gvk(), metav1.Verbs{"update"}})
	}
	if r.scale != nil {
		verbs := metav1.Verbs{"get", "patch", "update"}
		subs = append(subs, subresource{"scale", scales().gvk(), verbs})
	}
	if r.HasStatus {
		subs = append(subs, subresource{"status", r.gvk(), metav1.Verbs{"get", "patch", "update"}})
	}
	return subs
}

// resourcesOf returns the resources of a version of a group, nil if there are none.
func (s *Server) resourcesOf(gv schema.GroupVersion) any {
	list := &metav1.APIResourceList{GroupVersion: gv.String()}
	list.Kind, list.APIVersion = "APIResourceList", "v1"
	for _, res := range s.served() {
		if res.gv() != gv {
			continue
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: res.Name, SingularName: res.Singular, Namespaced: res.Namespaced, Kind: res.Kind,
			ShortNames: res.ShortNames, Categories: res.Categories, Verbs: res.verbs(),
		})
		for _, sub := range res.subresources() {
			entry := metav1.APIResource{
				Name: res.Name + "/" + sub.name, Namespaced: res.Namespaced, Kind: sub.gvk.Kind,
				Verbs: sub.verbs,
			}
			if sub.gvk != res.gvk() {
				entry.Group, entry.Version = sub.gvk.Group, sub.gvk.Version
			}
			list.APIResources = append(list.APIResources, entry)
		}
	}
	if len(list.APIResources) == 0 {
		return nil
	}
	return list
}

// aggregated returns all versions and resources of some groups.
func (s *Server) aggregated(includes func(group string) bool) any {
	list := &apidiscoveryv2.APIGroupDiscoveryList{}
	list.Kind, list.APIVersion = "APIGroupDiscoveryList", apidiscoveryv2.SchemeGroupVersion.String()
	var group *apidiscoveryv2.APIGroupDiscovery
	var last schema.GroupVersion
	for _, res := range s.served() {
		if !includes(res.Group) {
			continue
		}
		if group == nil || last.Group != res.Group {
			list.Items = append(list.Items, apidiscoveryv2.APIGroupDiscovery{})
			group = &list.Items[len(list.Items)-1]
			group.Name, last = res.Group, schema.GroupVersion{}
		}
		if last != res.gv() {
			group.Versions = append(group.Versions, apidiscoveryv2.APIVersionDiscovery{
				Version: res.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent,
			})
		}
		last = res.gv()
		version := &group.Versions[len(group.Versions)-1]
		version.Resources = append(version.Resources, res.discovery())
	}
	return list
}

// discovery returns the resource as discovery in one answer has it.
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
