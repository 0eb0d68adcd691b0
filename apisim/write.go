package apisim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// writeMode says what a write may change.
type writeMode uint8

const (
	// wholeObject is a write past the API, which seeds and tests use: object and
	// status in one.
	wholeObject writeMode = iota
	// mainResource leaves the status of a resource that has one as it is.
	mainResource
	// statusOnly changes nothing but the status.
	statusOnly
)

var (
	namespaces  = corev1.SchemeGroupVersion.WithResource("namespaces")
	errStanding = errors.New("this namespace may not be deleted")
	errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")
)

// checkMetadata refuses what no object of a resource may have.
func checkMetadata(r *resource, obj object) error {
	problems := validation.ValidateObjectMetaAccessor(obj, r.Namespaced, nameRule(r), field.NewPath("metadata"))
	if len(problems) > 0 {
		return apierrors.NewInvalid(r.gvk().GroupKind(), obj.GetName(), problems)
	}
	return nil
}

// nameRule returns what names a resource allows: nearly all a DNS subdomain,
// namespaces a DNS label, and those of access control any segment of a path.
func nameRule(r *resource) validation.ValidateNameFunc {
	switch {
	case r.gvr() == namespaces:
		return validation.ValidateNamespaceName
	case r.Group == "rbac.authorization.k8s.io":
		return func(name string, _ bool) []string { return content.IsPathSegmentName(name) }
	default:
		return validation.NameIsDNSSubdomain
	}
}

func (s *Server) get(r *resource, namespace, name string) (object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	obj, ok := r.objects.Get(keyOf(namespace, name))
	if !ok || r.removed {
		return nil, apierrors.NewNotFound(r.groupResource(), name)
	}
	return obj, nil
}

func (s *Server) create(r *resource, given object, mode writeMode) (object, error) {
	obj := clone(given)
	if obj.GetResourceVersion() != "" {
		return nil, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	if obj.GetName() == "" && obj.GetGenerateName() != "" {
		obj.SetName(obj.GetGenerateName() + rand.String(5))
	}
	if err := checkMetadata(r, obj); err != nil {
		return nil, err
	}
	if r.typed {
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	if r.HasStatus && mode != wholeObject {
		clearStatus(obj)
	}
	obj.SetUID(uuid.NewUUID())
	obj.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	obj.SetDeletionTimestamp(nil)
	obj.SetGeneration(0)
	if r.countsGenerations() {
		obj.SetGeneration(1)
	}
	if namespace, ok := obj.(*corev1.Namespace); ok {
		activate(namespace)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if r.removed {
		return nil, errNoResource()
	}
	key := keyOf(obj.GetNamespace(), obj.GetName())
	if _, exists := r.objects.Get(key); exists {
		return nil, apierrors.NewAlreadyExists(r.groupResource(), obj.GetName())
	}
	if r.Namespaced && !s.namespaceExistsLocked(obj.GetNamespace()) {
		return nil, apierrors.NewNotFound(namespaces.GroupResource(), obj.GetNamespace())
	}
	s.commitLocked(r, key, nil, obj)
	return obj, nil
}

// activate gives a namespace what every one has.
func activate(n *corev1.Namespace) {
	if n.Labels == nil {
		n.Labels = make(map[string]string, 1)
	}
	n.Labels[corev1.LabelMetadataName] = n.Name
	n.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes}
	n.Status.Phase = corev1.NamespaceActive
}

func (s *Server) namespaceExistsLocked(name string) bool {
	r, ok := s.resources[namespaces]
	if !ok || r.removed {
		return true // where there are no namespaces, none is missing
	}
	_, ok = r.objects.Get(name)
	return ok
}

// commitLocked stores a new state, or none for a delete, and records the event. The
// state is not shared yet: it gets the version of the write.
func (s *Server) commitLocked(r *resource, key string, before, after object) {
	s.advanceLocked()
	if after != nil {
		after.SetResourceVersion(versionString(s.version))
		r.objects.Set(key, after)
	} else {
		r.objects.Delete(key)
	}
	r.record(newEvent(s.version, key, before, after), s.o.HistoryLimit)
}

// advanceLocked begins the next version.
func (s *Server) advanceLocked() {
	s.version++
	close(s.advanced)
	s.advanced = make(chan struct{})
}

func (s *Server) update(r *resource, given object, mode writeMode) (object, error) {
	if err := checkMetadata(r, given); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := keyOf(given.GetNamespace(), given.GetName())
	before, exists := r.objects.Get(key)
	if !exists || r.removed {
		return nil, apierrors.NewNotFound(r.groupResource(), given.GetName())
	}
	if err := checkPreconditions(r, before, string(given.GetUID()), given.GetResourceVersion()); err != nil {
		return nil, err
	}
	after := merge(r, before, given, mode)
	if equality.Semantic.DeepEqual(before, after) {
		return before, nil
	}
	s.commitLocked(r, key, before, after)
	return after, nil
}

// checkPreconditions refuses a write that was meant for another state. Empty
// conditions are none.
func checkPreconditions(r *resource, stored object, uid, version string) error {
	if uid != "" && uid != string(stored.GetUID()) {
		return apierrors.NewConflict(r.groupResource(), stored.GetName(), fmt.Errorf("the UID in the precondition is %s, that of the object is %s", uid, stored.GetUID()))
	}
	if version != "" && version != stored.GetResourceVersion() {
		return apierrors.NewConflict(r.groupResource(), stored.GetName(), errModified)
	}
	return nil
}

// merge returns the next state of an object: what a client may change from given,
// the rest from before.
func merge(r *resource, before, given object, mode writeMode) object {
	if mode == statusOnly {
		after := clone(before)
		setStatus(after, clone(given))
		return after
	}
	after := clone(given)
	if r.typed {
		after.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	if r.HasStatus && mode == mainResource {
		setStatus(after, clone(before))
	}
	after.SetUID(before.GetUID())
	after.SetCreationTimestamp(before.GetCreationTimestamp())
	after.SetDeletionTimestamp(before.GetDeletionTimestamp())
	after.SetGenerateName(before.GetGenerateName())
	after.SetResourceVersion(before.GetResourceVersion())
	after.SetGeneration(before.GetGeneration())
	if before.GetGeneration() > 0 && !equality.Semantic.DeepEqual(counted(before), counted(after)) {
		after.SetGeneration(before.GetGeneration() + 1)
	}
	return after
}

func (s *Server) delete(r *resource, namespace, name string, o *metav1.DeleteOptions) (object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := keyOf(namespace, name)
	before, exists := r.objects.Get(key)
	if !exists || r.removed {
		return nil, apierrors.NewNotFound(r.groupResource(), name)
	}
	if o != nil && o.Preconditions != nil {
		var uid, version string
		if o.Preconditions.UID != nil {
			uid = string(*o.Preconditions.UID)
		}
		if o.Preconditions.ResourceVersion != nil {
			version = *o.Preconditions.ResourceVersion
		}
		if err := checkPreconditions(r, before, uid, version); err != nil {
			return nil, err
		}
	}
	if r.gvr() == namespaces {
		if slices.Contains(standingNamespaces, name) {
			return nil, apierrors.NewForbidden(r.groupResource(), name, errStanding)
		}
		s.emptyNamespaceLocked(name)
	}
	s.commitLocked(r, key, before, nil)
	return atVersion(before, s.version), nil
}

// emptyNamespaceLocked deletes what a namespace holds, as its controller would.
func (s *Server) emptyNamespaceLocked(namespace string) {
	for _, r := range s.resources {
		if !r.Namespaced {
			continue
		}
		prefix := namespace + "/"
		var held []object
		r.objects.Ascend(prefix, func(key string, obj object) bool {
			if !strings.HasPrefix(key, prefix) {
				return false
			}
			held = append(held, obj)
			return true
		})
		for _, obj := range held {
			s.commitLocked(r, prefix+obj.GetName(), obj, nil)
		}
	}
}
