package informers

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// TestGroupsHaveAll walks the accessors of every group and version down to the informers,
// as programs do, and requests each a second time by its resource.
func TestGroupsHaveAll(t *testing.T) {
	f := NewSharedInformerFactory(fake.NewClientset(), 0)
	visited := 0
	groups := reflect.TypeFor[SharedInformerFactory]()
	for group := range groups.Methods() {
		if group.Type.NumOut() != 1 || !strings.HasPrefix(group.Type.Out(0).PkgPath(), "k8s.io/client-go/informers/") {
			continue
		}
		versions := reflect.ValueOf(f).MethodByName(group.Name).Call(nil)[0]
		for version := range group.Type.Out(0).Methods() {
			accessors := versions.MethodByName(version.Name).Call(nil)[0]
			for accessor := range version.Type.Out(0).Methods() {
				one := accessors.MethodByName(accessor.Name).Call(nil)[0].Interface()
				store := one.(interface {
					Informer() cache.SharedIndexInformer
				}).Informer().GetStore()
				if !madeForRow(t, f, strings.ToLower(accessor.Name), store) {
					t.Errorf("%s().%s().%s() has an informer that ForResource does not have under that name", group.Name, version.Name, accessor.Name)
				}
				visited++
			}
		}
	}
	if visited != len(resources) {
		t.Errorf("the groups have %d resources, the table %d", visited, len(resources))
	}
}

// madeForRow reports whether ForResource has a store under the name of a resource.
func madeForRow(t *testing.T, f SharedInformerFactory, name string, store cache.Store) bool {
	t.Helper()
	for _, r := range resources {
		if r.gvr.Resource != name {
			continue
		}
		generic, err := f.ForResource(r.gvr)
		if err != nil {
			t.Fatal(err)
		}
		if generic.Informer().GetStore() == store {
			return true
		}
	}
	return false
}

// TestFactoryHasEveryGroup fails for a group that a newer client-go has and the generated files
// lack. The compiler reports it too.
func TestFactoryHasEveryGroup(t *testing.T) {
	ours := reflect.TypeFor[*sharedInformerFactory]()
	for m := range reflect.TypeFor[SharedInformerFactory]().Methods() {
		if _, ok := ours.MethodByName(m.Name); !ok {
			t.Errorf("client-go's factory has the method %s: run go generate in this directory", m.Name)
		}
	}
}

// TestTableReadsItsResource lists and watches every row through a fake and checks the requests to
// the fake.
func TestTableReadsItsResource(t *testing.T) {
	for _, r := range resources {
		client := fake.NewClientset()
		lw := r.open(client, "a")
		list, err := lw.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Errorf("%v: %v", r.gvr, err)
			continue
		}
		w, err := lw.Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Errorf("%v: %v", r.gvr, err)
			continue
		}
		w.Stop()
		if want := r.kind + "List"; reflect.TypeOf(list).Elem().Name() != want {
			t.Errorf("%v is listed as %T, want a %s", r.gvr, list, want)
		}
		namespace := ""
		if r.namespaced {
			namespace = "a"
		}
		for i, verb := range []string{"list", "watch"} {
			action := client.Actions()[i]
			if action.GetVerb() != verb || action.GetResource() != r.gvr || action.GetNamespace() != namespace {
				t.Errorf("the client is asked to %s %v in %q, want to %s %v in %q",
					action.GetVerb(), action.GetResource(), action.GetNamespace(), verb, r.gvr, namespace)
			}
		}
		checkKind(t, r)
	}
}

// checkKind compares a row with the scheme.
func checkKind(t *testing.T, r resource) {
	t.Helper()
	kinds, _, err := scheme.Scheme.ObjectKinds(r.goType.example())
	if err != nil {
		t.Error(err)
		return
	}
	if want := r.gvr.GroupVersion().WithKind(r.kind); kinds[0] != want {
		t.Errorf("the objects of %v are of kind %v, want %v", r.gvr, kinds[0], want)
	}
	if found, ok := resourceOf(r.goType.example()); !ok || found.gvr != r.gvr {
		t.Errorf("the type of %v is not found", r.gvr)
	}
}

// unknownObject is of a type that the table does not have.
type unknownObject struct{ metav1.PartialObjectMetadata }

// TestGroupOfNewerClientGo: a type that the table lacks has the informer of the group's own
// function. It is logged once.
func TestGroupOfNewerClientGo(t *testing.T) {
	var log strings.Builder
	klog.SetLogger(funcr.New(func(_, line string) { log.WriteString(line) }, funcr.Options{}))
	defer klog.ClearLogger()
	f := NewSharedInformerFactory(fake.NewClientset(), 0).(*sharedInformerFactory)
	made := NewFilteredFor[*corev1.Pod](f.client, "", 0, nil, nil)
	for range 2 {
		got := groups{f}.InformerFor(&unknownObject{}, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return made })
		if got != made {
			t.Error("the group's own informer is not used")
		}
	}
	if n := strings.Count(log.String(), "the informer is client-go's"); n != 1 {
		t.Errorf("it is logged %d times: %s", n, log.String())
	}
}
