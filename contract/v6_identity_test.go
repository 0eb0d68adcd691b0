package contract_test

import (
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/source"
)

// statusView is a view of Deployments and of ReplicaSets: its fields have other numbers in the two.
type statusView struct {
	tidings.Meta `json:"metadata"`
	Spec         struct {
		Replicas *int32 `json:"replicas"`
	} `json:"spec"`
	Status struct {
		Replicas           int32             `json:"replicas"`
		ReadyReplicas      int32             `json:"readyReplicas"`
		AvailableReplicas  int32             `json:"availableReplicas"`
		ObservedGeneration int64             `json:"observedGeneration"`
		Conditions         []statusCondition `json:"conditions"`
	} `json:"status"`
}

// statusCondition is a part of several API types.
type statusCondition struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	Reason  string `json:"reason"`
}

// TestV6_OneStructForTwoTypes reads one struct from two API types in turn. The two share a table, and
// number their fields differently.
func TestV6_OneStructForTwoTypes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, tidings.FactoryOptions{}, apisim.Options{})
		defer w.end()
		deployments, err := tidings.View[*statusView, *appsv1.Deployment](w.factory, tidings.Selection{})
		w.must(err)
		sets, err := tidings.View[*statusView, *appsv1.ReplicaSet](w.factory, tidings.Selection{})
		w.must(err)
		w.start()
		for n := range int32(40) {
			d := &appsv1.Deployment{}
			d.Namespace, d.Name, d.Spec.Replicas = "default", "x", new(n)
			d.Status = appsv1.DeploymentStatus{
				Replicas: n + 1, ReadyReplicas: n + 2, AvailableReplicas: n + 3, ObservedGeneration: 4,
				Conditions: []appsv1.DeploymentCondition{{Type: "Progressing", Message: "m", Reason: "r"}},
			}
			rs := &appsv1.ReplicaSet{}
			rs.Namespace, rs.Name, rs.Spec.Replicas = "default", "x", new(n)
			rs.Status = appsv1.ReplicaSetStatus{
				Replicas: n + 1, ReadyReplicas: n + 2, AvailableReplicas: n + 3, ObservedGeneration: 4,
				Conditions: []appsv1.ReplicaSetCondition{{Type: "Progressing", Message: "m", Reason: "r"}},
			}
			write := apisim.Update[*appsv1.Deployment]
			writeSet := apisim.Update[*appsv1.ReplicaSet]
			if n == 0 {
				write, writeSet = apisim.Create[*appsv1.Deployment], apisim.Create[*appsv1.ReplicaSet]
			}
			_, err := write(t.Context(), w.server, d)
			w.must(err)
			_, err = writeSet(t.Context(), w.server, rs)
			w.must(err)
			synctest.Wait()
			for _, i := range []*tidings.Informer[*statusView]{deployments, sets} {
				got, err := i.Lister().Namespace("default").Get("x")
				w.must(err)
				s := got.Status
				if *got.Spec.Replicas != n || s.Replicas != n+1 || s.ReadyReplicas != n+2 ||
					s.AvailableReplicas != n+3 || s.ObservedGeneration != 4 || len(s.Conditions) != 1 ||
					s.Conditions[0] != (statusCondition{"Progressing", "m", "r"}) {
					t.Fatalf("%s at %d: %+v %+v", i.Name(), n, got.Spec, s)
				}
			}
		}
	})
}

// TestV6_TypesOfOneName: two types that print alike are two informers, a type that is asked for again
// is one.
func TestV6_TypesOfOneName(t *testing.T) {
	f := mistakesFactory(t)
	one, again, other := askForPod(t, f), askForPod(t, f), askForOtherPod(t, f)
	if one != again {
		t.Error("the same view is another informer")
	}
	if len(f.Health()) != 2 || other == nil {
		t.Errorf("%d informers, want one for each type", len(f.Health()))
	}
	for _, h := range f.Health() {
		if h.Name != "View[contract_test.Pod] pods.v1" {
			t.Errorf("the informer is called %q", h.Name)
		}
	}
}

// synced returns a channel that handles of one informer have in common.
func synced[T tidings.Object](t *testing.T, i *tidings.Informer[T], err error) any {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return i.Synced()
}

func askForPod(t *testing.T, f *tidings.Factory) any {
	t.Helper()
	type Pod struct {
		tidings.Meta `json:"metadata"`
	}
	i, err := tidings.View[*Pod, *corev1.Pod](f, tidings.Selection{})
	return synced(t, i, err)
}

func askForOtherPod(t *testing.T, f *tidings.Factory) any {
	t.Helper()
	type Pod struct {
		tidings.Meta `json:"metadata"`
		Status       struct {
			Phase corev1.PodPhase `json:"phase"`
		} `json:"status"`
	}
	i, err := tidings.View[*Pod, *corev1.Pod](f, tidings.Selection{})
	return synced(t, i, err)
}

// TestV4_AnInformerOfASourceOfViews has no factory, and says which fields its objects have.
func TestV4_AnInformerOfASourceOfViews(t *testing.T) {
	pods := source.Resource{Version: "v1", Name: "pods", Kind: "Pod"}
	src := source.NewView(nil, pods, func() *phaseView { return new(phaseView) }, new(corev1.Pod), source.RESTOptions{})
	i, err := tidings.NewInformer(src, tidings.InformerOptions[*phaseView]{})
	if err != nil {
		t.Fatal(err)
	}
	inspected, err := i.Inspect()
	if err != nil {
		t.Fatal(err)
	}
	if declares := i.Health().Declares; len(declares) != 5 || inspected.IsWhole() {
		t.Errorf("it declares %q, whole %v", declares, inspected.IsWhole())
	}
}
