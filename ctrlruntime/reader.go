package ctrlruntime

import (
	"net/http"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	tidingscache "github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/source"
)

// reader makes the sources of a cache.
type reader struct {
	config     *rest.Config
	httpClient *http.Client
	set        *InformerSet // the informers that read the sources
	// All sources share objects through table, and the memory for lists in budget.
	table  source.Table
	budget source.Budget
}

func newReader(config *rest.Config, httpClient *http.Client, set *InformerSet) *reader {
	return &reader{config: rest.CopyConfig(config), httpClient: httpClient, set: set}
}

// listWatch is a cache.ListerWatcher with the source that an informer reads in its place.
type listWatch struct {
	cache.ListerWatcher
	client   *source.Client
	resource source.Resource
	options  source.RESTOptions
}

// Reading returns the source. Package clientgo/cache calls it.
func (l *listWatch) Reading() (*source.Client, source.Resource, source.RESTOptions) {
	return l.client, l.resource, l.options
}

// readable returns lw with the source of its objects. If the source is not known, the result has
// the shared table only. key identifies the objects.
func (r *reader) readable(lw cache.ListerWatcher,
	example runtime.Object) (readable cache.ListerWatcher, key informerKey) {
	key.form = formOf(example)
	list, watch := requestsOf(lw)
	l := &listWatch{ListerWatcher: lw}
	if list != nil && watch != nil && r.read(l, list, watch, example) {
		key.kind = l.resource.GroupVersion().WithKind(l.resource.Kind)
		key.namespace, key.name = l.options.Namespace, nameOf(key.form, l.resource, l.options)
		key.resource = l.resource.Name
		key.labels, key.fields = l.options.Labels, l.options.Fields
		key.without = leftOut(key.fields)
		return l, key
	}
	key.kind = example.GetObjectKind().GroupVersionKind()
	return tidingscache.WithSharing(lw, tidingscache.SharingOptions{Among: &r.table}), key
}

// leftOut returns the namespaces that a field selector excludes. The selector of cache.AllNamespaces
// excludes those that have a cache of their own.
func leftOut(selector string) (namespaces []string) {
	parsed, err := fields.ParseSelector(selector)
	if err != nil {
		return nil // not reached: the options were checked
	}
	for _, r := range parsed.Requirements() {
		if r.Field == "metadata.namespace" && r.Operator == selection.NotEquals {
			namespaces = append(namespaces, r.Value)
		}
	}
	return namespaces
}

// nameOf returns the name of an informer, as in Metadata pods.v1 [in shop, labels app=web].
func nameOf(of form, resource source.Resource, o source.RESTOptions) string {
	name := resource.String()
	switch of {
	case untyped:
		name = "Dynamic " + name
	case metadata:
		name = "Metadata " + name
	}
	var parts []string
	for _, part := range []struct{ what, text string }{
		{"in", o.Namespace}, {"labels", o.Labels}, {"fields", o.Fields},
	} {
		if part.text != "" {
			parts = append(parts, part.what+" "+part.text)
		}
	}
	if len(parts) > 0 {
		name += " [" + strings.Join(parts, ", ") + "]"
	}
	return name
}

// read fills in the source of the objects that two requests ask for. It reports whether it is
// known.
func (r *reader) read(l *listWatch, list, watch *http.Request, example runtime.Object) bool {
	if _, ok := example.(source.Object); !ok || list.URL.Path != watch.URL.Path {
		return false
	}
	query := list.URL.Query()
	for name := range query {
		if name != "labelSelector" && name != "fieldSelector" {
			return false
		}
	}
	var err error
	if l.client, err = r.client(list.Header.Get("Accept")); err != nil {
		return false
	}
	server, err := url.Parse(l.client.Server())
	if err != nil {
		return false
	}
	path, ok := strings.CutPrefix(list.URL.Path, server.Path)
	if !ok {
		return false
	}
	resource, namespace, ok := resourceOf(path)
	if !ok {
		return false
	}
	if resource.Kind, ok = r.kindOf(example, resource.GroupVersion()); !ok {
		return false
	}
	l.resource = resource
	l.options = source.RESTOptions{
		Namespace: namespace,
		Labels:    query.Get("labelSelector"), Fields: query.Get("fieldSelector"),
		Transport: source.Transport{
			Table: &r.table, ListBudget: &r.budget, ConsistentFirstList: r.set.readNewest.Load(),
		},
	}
	if watch.URL.Query().Get("allowWatchBookmarks") != "true" {
		l.options.Tweak = withoutBookmarks
	}
	return l.options.Check("cache.Options") == nil
}

// withoutBookmarks asks for no bookmarks, except in a streamed list, which ends with one.
func withoutBookmarks(o *metav1.ListOptions) {
	if o.Watch && o.SendInitialEvents == nil {
		o.AllowWatchBookmarks = false
	}
}

// client returns a client with a rate limit of its own, as each informer of controller-runtime
// has. It asks for protobuf only if accept has it.
func (r *reader) client(accept string) (*source.Client, error) {
	config := rest.CopyConfig(r.config)
	config.APIPath, config.GroupVersion, config.AcceptContentTypes = "/", nil, accept
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion() // required, and not used
	client, err := rest.UnversionedRESTClientForConfigAndClient(config, r.httpClient)
	if err != nil {
		return nil, err
	}
	return source.NewClientFromREST(client)
}

// resourceOf reads the path of a collection, as in /apis/apps/v1/namespaces/shop/deployments.
func resourceOf(path string) (resource source.Resource, namespace string, ok bool) {
	segments := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case segments[0] == "api" && len(segments) > 2:
		resource.Version, segments = segments[1], segments[2:]
	case segments[0] == "apis" && len(segments) > 3:
		resource.Group, resource.Version, segments = segments[1], segments[2], segments[3:]
	default:
		return resource, "", false
	}
	if len(segments) == 3 && segments[0] == "namespaces" {
		namespace, segments = segments[1], segments[2:]
		resource.Scope = source.ScopeNamespaced
	}
	if len(segments) != 1 {
		return resource, "", false
	}
	resource.Name = segments[0]
	return resource, namespace, true
}

// kindOf returns the kind of an example in a group and version. ok is false if it has no kind
// there, or several.
func (r *reader) kindOf(example runtime.Object, gv schema.GroupVersion) (kind string, ok bool) {
	if form := formOf(example); form != typed {
		gvk := example.GetObjectKind().GroupVersionKind()
		return gvk.Kind, form != otherForm && gvk.Kind != "" && gvk.GroupVersion() == gv
	}
	kinds, _, err := r.set.scheme.ObjectKinds(example)
	if err != nil {
		return "", false
	}
	for _, gvk := range kinds {
		if gvk.GroupVersion() == gv {
			if ok {
				return "", false
			}
			kind, ok = gvk.Kind, true
		}
	}
	return kind, ok
}

// form is one of the forms in which a cache holds objects, each with informers of its own.
type form int

const (
	typed form = iota
	untyped
	metadata
	otherForm // maps of another Go type
)

// formOf returns the form of an object, or that of the objects in a list.
func formOf(obj runtime.Object) form {
	switch obj.(type) {
	case *unstructured.Unstructured, *unstructured.UnstructuredList:
		return untyped
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return metadata
	case runtime.Unstructured:
		return otherForm
	default:
		return typed
	}
}
