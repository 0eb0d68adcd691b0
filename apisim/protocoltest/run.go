package protocoltest

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Server is the server under test.
type Server struct {
	// Config is the configuration of a client with all permissions.
	Config *rest.Config
	// Forget drops the history of all resources, so that older versions are 410 Gone; nil leaves
	// out the tests that need it.
	Forget func() error
	// EventTimeout is the time for which a test waits for an event; 0 means 30 seconds.
	EventTimeout time.Duration
}

// Run tests a server that all tests share. In a testing/synctest bubble a test cannot have
// subtests: use Tests there, with a bubble for each.
func Run(t *testing.T, s Server) {
	for name, test := range Tests() {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

// Tests returns the tests by name. All but "forms" are there in JSON and in protobuf.
func Tests() iter.Seq2[string, func(t *testing.T, s Server)] {
	return func(yield func(string, func(t *testing.T, s Server)) bool) {
		for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
			encoding := contentType[strings.LastIndexAny(contentType, "/.")+1:]
			for _, test := range tests {
				run := func(t *testing.T, s Server) { s.run(t, contentType, test.run) }
				if !yield(encoding+"/"+test.name, run) {
					return
				}
			}
		}
		yield("forms", func(t *testing.T, s Server) { s.run(t, "", forms) })
	}
}

var tests = []struct {
	name string
	run  func(r *rig)
}{
	{"list/versions", listVersions}, {"list/matches", listMatches}, {"list/future", listFuture},
	{"list/pages", listPages}, {"list/selectors", listSelectors}, {"watch/events", watchEvents},
	{"watch/selection", watchSelection}, {"watch/initial", watchInitial},
	{"watch/bookmarks", watchBookmarks}, {"watch/timeout", watchTimeout},
	{"watch/future", watchFuture}, {"watch/forgotten", watchForgotten}, {"stream/list", streamList},
	{"stream/version", streamVersion}, {"stream/future", streamFuture},
	{"stream/refused", streamRefused},
}

// rig is a test with a namespace of its own and a client.
type rig struct {
	*testing.T
	server    Server
	config    *rest.Config
	client    kubernetes.Interface
	namespace string
	ctx       context.Context
}

func (s Server) run(t *testing.T, contentType string, test func(r *rig)) {
	if s.EventTimeout == 0 {
		s.EventTimeout = 30 * time.Second
	}
	config := rest.CopyConfig(s.Config)
	if contentType != "" {
		config.ContentType, config.AcceptContentTypes = contentType, contentType+",application/json"
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	given := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "protocol-"}}
	namespace, err := client.CoreV1().Namespaces().Create(ctx, given, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		err := client.CoreV1().Namespaces().Delete(ctx, namespace.Name, metav1.DeleteOptions{})
		if err != nil {
			t.Errorf("deleting the namespace of the test: %v", err)
		}
	}()
	test(&rig{T: t, server: s, config: config, client: client, namespace: namespace.Name, ctx: ctx})
}

// must fails the test at once if there is an error.
func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// labelled returns a config map with labels in the form "key=value".
func labelled(name string, labels ...string) *corev1.ConfigMap {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for _, label := range labels {
		key, value, _ := strings.Cut(label, "=")
		c.Labels[key] = value
	}
	return c
}

func (r *rig) create(name string, labels ...string) *corev1.ConfigMap {
	r.Helper()
	maps := r.client.CoreV1().ConfigMaps(r.namespace)
	made, err := maps.Create(r.ctx, labelled(name, labels...), metav1.CreateOptions{})
	r.must(err)
	return made
}

func (r *rig) update(name string, labels ...string) *corev1.ConfigMap {
	r.Helper()
	maps := r.client.CoreV1().ConfigMaps(r.namespace)
	made, err := maps.Update(r.ctx, labelled(name, labels...), metav1.UpdateOptions{})
	r.must(err)
	return made
}

func (r *rig) remove(name string) {
	r.Helper()
	r.must(r.client.CoreV1().ConfigMaps(r.namespace).Delete(r.ctx, name, metav1.DeleteOptions{}))
}

// list returns the names of the objects of a list, and the list.
func (r *rig) list(o metav1.ListOptions) (string, *corev1.ConfigMapList, error) {
	list, err := r.client.CoreV1().ConfigMaps(r.namespace).List(r.ctx, o)
	if err != nil {
		return "", nil, err
	}
	var names []string
	for _, item := range list.Items {
		if item.Name != "kube-root-ca.crt" { // a controller puts it into every namespace
			names = append(names, item.Name)
		}
	}
	return strings.Join(names, " "), list, nil
}

// selected is a field selector that leaves out the objects that controllers create in each
// namespace.
const selected = "metadata.name!=kube-root-ca.crt"

func (r *rig) watch(o metav1.ListOptions) watch.Interface {
	r.Helper()
	if o.FieldSelector == "" {
		o.FieldSelector = selected
	}
	w, err := r.client.CoreV1().ConfigMaps(r.namespace).Watch(r.ctx, o)
	r.must(err)
	r.Cleanup(w.Stop)
	return w
}

// receive returns the next event of a watch, and false if the watch has ended.
func (r *rig) receive(w watch.Interface) (e watch.Event, open bool) {
	r.Helper()
	timer := time.NewTimer(r.server.EventTimeout)
	defer timer.Stop()
	select {
	case e, open = <-w.ResultChan():
	case <-timer.C:
		r.Fatalf("no event came for %v", r.server.EventTimeout)
	}
	return e, open
}

// next returns the next event that is not a periodic bookmark, as TYPE name@version.
func (r *rig) next(w watch.Interface) string {
	r.Helper()
	for {
		e, open := r.receive(w)
		if !open {
			return "END"
		}
		if text := describe(e); text != "" {
			return text
		}
	}
}

// expect checks the next events of a watch.
func (r *rig) expect(w watch.Interface, want ...string) {
	r.Helper()
	for _, text := range want {
		if got := r.next(w); got != text {
			r.Errorf("the next event is %q, want %q", got, text)
		}
	}
}

// describe describes an event; it returns "" for a periodic bookmark.
func describe(e watch.Event) string {
	if status, ok := e.Object.(*metav1.Status); ok {
		return fmt.Sprintf("%s %d", e.Type, status.Code)
	}
	obj, ok := e.Object.(metav1.Object)
	switch {
	case !ok:
		return fmt.Sprintf("%s of a %T", e.Type, e.Object)
	case e.Type != watch.Bookmark:
		return fmt.Sprintf("%s %s@%s", e.Type, obj.GetName(), obj.GetResourceVersion())
	case obj.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true":
		return "BOOKMARK that ends the initial events"
	default:
		return ""
	}
}
