package tidingstest

import (
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/internal/test/follow"
	"github.com/tidings-go/tidings/source"
)

// key returns the key of the object of a name. Names are spread over the namespaces,
// in the order in which they come up; those of the form "name.0" are in the first.
func (r *rig) key(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	namespace, ok := r.places[name]
	if !ok {
		namespace = r.namespaces[len(r.places)%len(r.namespaces)]
		if strings.HasSuffix(name, ".0") {
			namespace = r.namespaces[0]
		}
		r.places[name] = namespace
	}
	return source.Key(namespace, name)
}

func (r *rig) object(key string, labels map[string]string) *corev1.ConfigMap {
	namespace, name, _ := strings.Cut(key, "/")
	r.mu.Lock()
	r.written++
	all := map[string]string{labelNumber: strconv.Itoa(r.written), labelSuite: r.setting.suite()}
	r.mu.Unlock()
	maps.Copy(all, labels)
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: all},
		Data:       map[string]string{"n": all[labelNumber]},
	}
}

// suite returns the value of the label that informers select.
func (s Setting) suite() string {
	_, value, _ := strings.Cut(s.Labels, "=")
	return value
}

// note records the result of a write.
func (r *rig) note(obj *corev1.ConfigMap) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := keyOf(obj)
	r.truth[key] = follow.StateOf(obj)
	r.version = obj.GetResourceVersion()
}

// tryCreate, tryUpdate and tryRemove write, and return errors. One key must not be
// written by two goroutines at once.
func (r *rig) tryCreate(key string, labels map[string]string) error {
	obj := r.object(key, labels)
	made, err := r.client.CoreV1().ConfigMaps(obj.Namespace).Create(r.ctx, obj,
		metav1.CreateOptions{})
	if err != nil {
		return err
	}
	r.note(made)
	return nil
}

func (r *rig) tryUpdate(key string, labels map[string]string) error {
	obj := r.object(key, labels)
	made, err := r.client.CoreV1().ConfigMaps(obj.Namespace).Update(r.ctx, obj,
		metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	r.note(made)
	return nil
}

func (r *rig) tryRemove(key string) error {
	namespace, name, _ := strings.Cut(key, "/")
	err := r.client.CoreV1().ConfigMaps(namespace).Delete(r.ctx, name, metav1.DeleteOptions{})
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.truth, key)
	return nil
}

// create, update and remove write and return the number of the write.
func (r *rig) create(name string) int {
	r.Helper()
	r.must(r.tryCreate(r.key(name), nil))
	return number(r.holds(name))
}

func (r *rig) update(name string) int {
	r.Helper()
	r.must(r.tryUpdate(r.key(name), nil))
	return number(r.holds(name))
}

func (r *rig) remove(name string) {
	r.Helper()
	r.must(r.tryRemove(r.key(name)))
}

// holds returns the state that the informer should hold for a name.
func (r *rig) holds(name string) string {
	key := r.key(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.truth[key]
}

// world returns the states that the informer should hold, in a namespace or, with "", in
// all.
func (r *rig) world(namespace string) map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return within(r.truth, namespace)
}

func within(state map[string]string, namespace string) map[string]string {
	state = maps.Clone(state)
	if namespace != "" {
		maps.DeleteFunc(state,
			func(key, _ string) bool { return !strings.HasPrefix(key, namespace+"/") })
	}
	return state
}
