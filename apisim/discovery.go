package apisim

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// serveDiscovery answers what clients ask before they know any resource, and reports
// whether the path was such a thing.
func (s *Server) serveDiscovery(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet {
		return false
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) == 1 && parts[0] == "version":
		writeVersion(w)
	case len(parts) == 1 && (parts[0] == "api" || parts[0] == "apis") && wantsAggregated(r):
		s.serveAggregated(w, parts[0] == "api")
	case len(parts) == 1 && parts[0] == "api":
		writeJSON(w, &metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: s.versions("")})
	case len(parts) == 1 && parts[0] == "apis":
		writeJSON(w, s.groups())
	case len(parts) == 2 && parts[0] == "apis":
		s.serveGroup(w, r, parts[1])
	case len(parts) == 2 && parts[0] == "api":
		s.serveGroupVersion(w, r, schema.GroupVersion{Version: parts[1]})
	case len(parts) == 3 && parts[0] == "apis":
		s.serveGroupVersion(w, r, schema.GroupVersion{Group: parts[1], Version: parts[2]})
	default:
		return false
	}
	return true
}

// isHealth reports whether a path is one where a server says that it is well.
func isHealth(path string) bool {
	return slices.Contains([]string{"healthz", "livez", "readyz"}, strings.Trim(path, "/"))
}

// servedVersion is the version of Kubernetes whose API is simulated.
var servedVersion = version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.1-apisim", Platform: "apisim"}

func writeVersion(w http.ResponseWriter) {
	data, err := json.Marshal(servedVersion)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	write(w, mediaJSON, http.StatusOK, data)
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
		return cmp.Or(cmp.Compare(a.Group, b.Group), version.CompareKubeAwareVersionStrings(b.Version, a.Version), cmp.Compare(a.Name, b.Name))
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
	list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	var last string
	for _, r := range s.served() {
		if r.Group != "" && r.Group != last {
			last = r.Group
			list.Groups = append(list.Groups, s.group(r.Group))
		}
	}
	return list
}

func (s *Server) group(name string) metav1.APIGroup {
	group := metav1.APIGroup{TypeMeta: metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}, Name: name}
	for _, v := range s.versions(name) {
		group.Versions = append(group.Versions, metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + v, Version: v})
	}
	if len(group.Versions) > 0 {
		group.PreferredVersion = group.Versions[0]
	}
	return group
}

func (s *Server) serveGroup(w http.ResponseWriter, r *http.Request, name string) {
	group := s.group(name)
	if len(group.Versions) == 0 {
		writeError(w, r, errNoResource())
		return
	}
	writeJSON(w, &group)
}

func (s *Server) serveGroupVersion(w http.ResponseWriter, r *http.Request, gv schema.GroupVersion) {
	list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv.String()}
	for _, res := range s.served() {
		if res.Group != gv.Group || res.Version != gv.Version {
			continue
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: res.Name, SingularName: res.Singular, Namespaced: res.Namespaced, Kind: res.Kind, ShortNames: res.ShortNames, Categories: res.Categories,
			Verbs: res.verbs(),
		})
		for _, sub := range res.subresources() {
			entry := metav1.APIResource{Name: res.Name + "/" + sub.name, Namespaced: res.Namespaced, Kind: sub.gvk.Kind, Verbs: sub.verbs}
			if sub.gvk != res.gvk() {
				entry.Group, entry.Version = sub.gvk.Group, sub.gvk.Version
			}
			list.APIResources = append(list.APIResources, entry)
		}
	}
	if len(list.APIResources) == 0 {
		writeError(w, r, errNoResource())
		return
	}
	writeJSON(w, list)
}
