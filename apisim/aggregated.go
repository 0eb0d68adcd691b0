package apisim

import (
	"encoding/json"
	"mime"
	"net/http"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// mediaAggregated is the type of discovery in one answer, as clients compare it.
const mediaAggregated = mediaJSON + ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// wantsAggregated reports whether the first media type that a client would take, and
// the server has, is the one of discovery in one answer.
func wantsAggregated(r *http.Request) bool {
	for clause := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		mediaType, params, err := mime.ParseMediaType(clause)
		if err != nil || mediaType != mediaJSON {
			continue
		}
		if params["as"] == "" {
			return false
		}
		if params["as"] == "APIGroupDiscoveryList" && params["g"] == apidiscoveryv2.GroupName && params["v"] == "v2" {
			return true
		}
	}
	return false
}

// subresource is something below an object.
type subresource struct {
	name  string
	gvk   schema.GroupVersionKind
	verbs metav1.Verbs
}

func (r *resource) verbs() metav1.Verbs {
	if !r.deletesCollections() {
		return metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}
	}
	return metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
}

func (r *resource) subresources() []subresource {
	var subs []subresource
	if r.gvr() == namespaces {
		subs = append(subs, subresource{"finalize", r.gvk(), metav1.Verbs{"update"}})
	}
	if r.scale != nil {
		subs = append(subs, subresource{"scale", scales().gvk(), metav1.Verbs{"get", "patch", "update"}})
	}
	if r.HasStatus {
		subs = append(subs, subresource{"status", r.gvk(), metav1.Verbs{"get", "patch", "update"}})
	}
	return subs
}

// serveAggregated answers with all groups, versions and resources: those of the core
// group, or the others.
func (s *Server) serveAggregated(w http.ResponseWriter, core bool) {
	list := &apidiscoveryv2.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: apidiscoveryv2.SchemeGroupVersion.String()}}
	for _, res := range s.served() {
		if (res.Group == "") != core {
			continue
		}
		if n := len(list.Items); n == 0 || list.Items[n-1].Name != res.Group {
			list.Items = append(list.Items, apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: res.Group}})
		}
		group := &list.Items[len(list.Items)-1]
		if n := len(group.Versions); n == 0 || group.Versions[n-1].Version != res.Version {
			group.Versions = append(group.Versions, apidiscoveryv2.APIVersionDiscovery{Version: res.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent})
		}
		version := &group.Versions[len(group.Versions)-1]
		version.Resources = append(version.Resources, res.discovered())
	}
	data, err := json.Marshal(list)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	write(w, mediaAggregated, http.StatusOK, data)
}

func (r *resource) discovered() apidiscoveryv2.APIResourceDiscovery {
	gvk := r.gvk()
	d := apidiscoveryv2.APIResourceDiscovery{
		Resource: r.Name, ResponseKind: &metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}, Scope: apidiscoveryv2.ScopeCluster,
		SingularResource: r.Singular, ShortNames: r.ShortNames, Categories: r.Categories, Verbs: r.verbs(),
	}
	if r.Namespaced {
		d.Scope = apidiscoveryv2.ScopeNamespace
	}
	for _, sub := range r.subresources() {
		d.Subresources = append(d.Subresources, apidiscoveryv2.APISubresourceDiscovery{
			Subresource: sub.name, Verbs: sub.verbs, ResponseKind: &metav1.GroupVersionKind{Group: sub.gvk.Group, Version: sub.gvk.Version, Kind: sub.gvk.Kind},
		})
	}
	return d
}
