package ctrlruntime

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
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
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

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

// readable returns lw with the source of its objects, and a key that identifies them. If the source
// is not known, the result has the shared table only, and key.fallback says why.
func (r *reader) readable(lw cache.ListerWatcher,
	example runtime.Object) (readable cache.ListerWatcher, key informerKey) {
	l := &listWatch{ListerWatcher: lw}
	err := r.read(l, example)
	key = r.keyOf(l, example)
	if err != nil {
		key.fallback = fmt.Sprintf("it is read by controller-runtime's client: %v", err)
		lw = tidingscache.WithSharing(r.newest(lw), tidingscache.SharingOptions{Among: &r.table})
		return lw, key
	}
	return l, key
}

// keyOf returns the key of the objects of l, as far as it is known.
func (r *reader) keyOf(l *listWatch, example runtime.Object) informerKey {
	key := informerKey{
		resource: l.resource.Name, namespace: l.options.Namespace,
		labels: l.options.Labels, fields: l.options.Fields, without: leftOut(l.options.Fields),
	}
	key.form = formOf(example)
	key.kind, _ = apiutil.GVKForObject(example, r.set.scheme) // as the cache finds the informer
	key.name = key.kind.String()
	if key.resource != "" {
		key.name = nameOf(key.form, l.resource, l.options)
	}
	return key
}

// newest returns a ListerWatcher whose first list is the newest state of the server, if reads wait
// for writes.
func (r *reader) newest(lw cache.ListerWatcher) cache.ListerWatcher {
	of := cache.ToListerWatcherWithContext(lw)
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		r.askNewest(&o)
		return of.ListWithContext(ctx, o)
	}
	newest := &cache.ListWatch{ListWithContextFunc: list, WatchFuncWithContext: of.WatchWithContext}
	return cache.ToListWatcherWithWatchListSemantics(newest, lw)
}

// askNewest makes a first list, which may be of an old state, one of the newest if reads wait for
// writes. Drop-in informers have no option for that.
func (r *reader) askNewest(o *metav1.ListOptions) {
	if !o.Watch && o.ResourceVersion == "0" && r.set.readNewest.Load() {
		o.ResourceVersion, o.ResourceVersionMatch = "", ""
	}
}

// leftOut returns the namespaces that a field selector excludes. The selector of
// cache.AllNamespaces excludes those that have a cache of their own.
func leftOut(selector string) (namespaces []string) {
	parsed, err := fields.ParseSelector(selector)
	if err != nil {
		return nil // the source refuses it, which is logged
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

// read fills in the source of the objects of l, or what is known of it. The error says why it
// cannot be read.
func (r *reader) read(l *listWatch, example runtime.Object) error {
	list, watch := requestsOf(l.ListerWatcher)
	if list == nil || watch == nil || list.URL.Path != watch.URL.Path {
		return errors.New("it does not list and watch one collection")
	}
	client, err := r.client(list.Header.Get("Accept"))
	if err != nil {
		return err
	}
	server, err := url.Parse(client.Server())
	if err != nil {
		return err
	}
	path, isUnder := strings.CutPrefix(list.URL.Path, server.Path)
	resource, namespace, ok := resourceOf(path)
	if !isUnder || !ok {
		return fmt.Errorf("%s is not the path of a collection", list.URL.Path)
	}
	query := list.URL.Query()
	l.client, l.resource = client, resource
	l.options = source.RESTOptions{
		Namespace: namespace,
		Labels:    query.Get("labelSelector"), Fields: query.Get("fieldSelector"),
		Transport: source.Transport{Table: &r.table, ListBudget: &r.budget},
	}
	hasBookmarks := watch.URL.Query().Get("allowWatchBookmarks") == "true"
	l.options.Tweak = func(o *metav1.ListOptions) {
		r.askNewest(o)
		// The end of a streamed list is a bookmark.
		o.AllowWatchBookmarks = o.AllowWatchBookmarks && (hasBookmarks || o.SendInitialEvents != nil)
	}
	for name := range query {
		if !slices.Contains([]string{"labelSelector", "fieldSelector", "timeout"}, name) {
			return fmt.Errorf("its list has the parameter %s", name)
		}
	}
	if l.resource.Kind, ok = r.kindOf(example, resource.GroupVersion()); !ok {
		return fmt.Errorf("a %T is no object of %v", example, resource.GroupVersion())
	}
	return l.options.Check("cache.Options")
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
// there, or several, or if its objects cannot be decoded into its Go type.
func (r *reader) kindOf(example runtime.Object, gv schema.GroupVersion) (kind string, ok bool) {
	switch example.(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		gvk := example.GetObjectKind().GroupVersionKind()
		return gvk.Kind, gvk.Kind != "" && gvk.GroupVersion() == gv
	}
	_, isObject := example.(source.Object)
	kinds, _, err := r.set.scheme.ObjectKinds(example)
	if err != nil || !isObject || formOf(example) != typed {
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
)

// formOf returns the form of an object, or that of the objects in a list, as controller-runtime's
// cache tells them apart.
func formOf(obj runtime.Object) form {
	switch obj.(type) {
	case runtime.Unstructured:
		return untyped
	case *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadataList:
		return metadata
	default:
		return typed
	}
}
