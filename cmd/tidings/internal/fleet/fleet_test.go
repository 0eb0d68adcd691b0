package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings/cmd/tidings/internal/fleet"
)

// memory is a cluster that holds objects in a map and refuses what a server would.
type memory struct {
	version int
	objects map[string]fleet.Object
	// told is told of every write; nil is nobody.
	told func(obj fleet.Object, deleted bool)
}

func newMemory() *memory {
	return &memory{objects: make(map[string]fleet.Object), told: func(fleet.Object, bool) {}}
}

func keyOf(obj fleet.Object) string {
	return fmt.Sprintf("%T %s/%s", obj, obj.GetNamespace(), obj.GetName())
}

func (m *memory) put(obj fleet.Object) fleet.Object {
	m.version++
	stored := obj.DeepCopyObject().(fleet.Object)
	stored.SetResourceVersion(strconv.Itoa(m.version))
	m.objects[keyOf(obj)] = stored
	m.told(stored, false)
	return stored
}

func missing(obj fleet.Object) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", obj)}, obj.GetName())
}

func (m *memory) Get(_ context.Context, obj fleet.Object) (fleet.Object, error) {
	stored, ok := m.objects[keyOf(obj)]
	if !ok {
		return nil, missing(obj)
	}
	return stored, nil
}

func (m *memory) Create(_ context.Context, obj fleet.Object) (fleet.Object, error) {
	if _, ok := m.objects[keyOf(obj)]; ok {
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{}, obj.GetName())
	}
	if obj.GetResourceVersion() != "" {
		return nil, fmt.Errorf("%s is created with a version", keyOf(obj))
	}
	obj = obj.DeepCopyObject().(fleet.Object)
	obj.SetUID(types.UID(fmt.Sprintf("uid-%d", m.version)))
	return m.put(obj), nil
}

func (m *memory) Update(_ context.Context, obj fleet.Object) (fleet.Object, error) {
	old, ok := m.objects[keyOf(obj)]
	if !ok {
		return nil, missing(obj)
	}
	if old.GetResourceVersion() != obj.GetResourceVersion() || old.GetUID() != obj.GetUID() {
		return nil, apierrors.NewConflict(schema.GroupResource{}, obj.GetName(), errors.New("modified"))
	}
	return m.put(obj), nil
}

func (m *memory) Delete(_ context.Context, obj fleet.Object) (fleet.Object, error) {
	last, ok := m.objects[keyOf(obj)]
	if !ok {
		return nil, missing(obj)
	}
	delete(m.objects, keyOf(obj))
	m.version++
	last = last.DeepCopyObject().(fleet.Object)
	last.SetResourceVersion(strconv.Itoa(m.version))
	m.told(last, true)
	return last, nil
}

// story is a fleet after a number of steps, with its cluster and the changes made.
func story(t *testing.T, seed uint64, pods, steps int) (*memory, *fleet.Fleet, []string) {
	t.Helper()
	var changes []string
	cluster := newMemory()
	f := fleet.New(cluster, fleet.Options{Seed: seed, Pods: pods, Made: func(c fleet.Change) {
		changes = append(changes, keyOf(c.Object)+" "+c.Object.GetResourceVersion())
	}})
	cluster.told = f.Hear // also what it writes itself
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := f.Populate(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	for i := range steps {
		if err := f.Step(t.Context(), now.Add(time.Duration(i)*100*time.Millisecond)); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	return cluster, f, changes
}

func TestFleetIsDecidedByItsSeed(t *testing.T) {
	encoded := func(seed uint64) string {
		cluster, _, changes := story(t, seed, 120, 2000)
		text, err := json.Marshal(cluster.objects)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(string(text), changes)
	}
	once, again := encoded(7), encoded(7)
	if once != again {
		t.Error("two fleets with seed 7 differ after 2,000 steps")
	}
	if once == encoded(8) {
		t.Error("the fleets with seeds 7 and 8 are the same")
	}
}

func TestModelIsWhatTheClusterHolds(t *testing.T) {
	cluster, f, changes := story(t, 1, 200, 5000)
	if len(changes) != 5000 {
		t.Errorf("5000 steps made %d changes", len(changes))
	}
	count := 0
	for obj := range f.Objects() {
		count++
		stored, ok := cluster.objects[keyOf(obj)]
		if !ok {
			t.Fatalf("%s is in the model and not in the cluster", keyOf(obj))
		}
		if stored.GetResourceVersion() != obj.GetResourceVersion() {
			t.Errorf("%s: the model has version %s, the cluster %s", keyOf(obj), obj.GetResourceVersion(), stored.GetResourceVersion())
		}
	}
	if count != len(cluster.objects) {
		t.Errorf("the model has %d objects, the cluster %d", count, len(cluster.objects))
	}
}

func TestPodsStayAboutAsMany(t *testing.T) {
	cluster, _, _ := story(t, 3, 300, 10_000)
	pods, owned := 0, 0
	for _, obj := range cluster.objects {
		if pod, ok := obj.(*corev1.Pod); ok {
			pods++
			for _, other := range cluster.objects {
				if set, ok := other.(*appsv1.ReplicaSet); ok && set.UID == pod.OwnerReferences[0].UID {
					owned++
					break
				}
			}
		}
	}
	if pods < 270 || pods > 330 {
		t.Errorf("300 pods became %d after 10,000 steps", pods)
	}
	if owned != pods {
		t.Errorf("%d of %d pods have an owner that exists", owned, pods)
	}
}

func TestFleetOfOnePod(t *testing.T) {
	for _, pods := range []int{-1, 0, 1, 2} {
		cluster, _, _ := story(t, 5, pods, 500)
		if len(cluster.objects) == 0 {
			t.Errorf("a fleet of %d pods is empty", pods)
		}
	}
}

func TestPaceKeepsToItsRate(t *testing.T) {
	began := time.Now()
	for _, rate := range []float64{0.5, 1, 50, 3000} {
		pace := fleet.NewPace(rate, began)
		made := 0
		for elapsed := time.Duration(0); elapsed <= 20*time.Second; elapsed += 10 * time.Millisecond {
			made += pace.Due(began.Add(elapsed))
		}
		if want := int(rate * 20); made != want {
			t.Errorf("%v a second: %d writes were due in 20 s, want %d", rate, made, want)
		}
	}
	late := fleet.NewPace(100, began)
	if due := late.Due(began.Add(time.Minute)); due > 101 {
		t.Errorf("after a minute of standing still %d writes are due at once, more than those of a second", due)
	}
}

// TestNothingIsOlderThanTheFleet asks that pods and nodes tell of no time before the
// server made them: kubectl shows both beside each other.
func TestNothingIsOlderThanTheFleet(t *testing.T) {
	now := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	cluster := newMemory()
	if err := fleet.New(cluster, fleet.Options{Seed: 1, Pods: 50}).Populate(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	for key, obj := range cluster.objects {
		switch obj := obj.(type) {
		case *corev1.Pod:
			if obj.Status.StartTime.Time.Before(now) || obj.Status.Conditions[0].LastTransitionTime.Time.Before(now) {
				t.Errorf("%s began at %s", key, obj.Status.StartTime)
			}
		case *corev1.Node:
			if obj.Status.Conditions[0].LastTransitionTime.Time.Before(now) {
				t.Errorf("%s is as it is since %s", key, obj.Status.Conditions[0].LastTransitionTime)
			}
		}
	}
}
