package apisim

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// part is what a write may change.
type part uint8

const (
	// wholeObject is a write past the API, which seeds and tests use: object and
	// status in one.
	wholeObject part = iota
	// seeded is a wholeObject that keeps the system's metadata it was given.
	seeded
	// mainResource leaves the status of a resource that has one as it is.
	mainResource
	// statusOnly changes nothing but the status, and with some types the metadata.
	statusOnly
	// finalizersOnly changes nothing but the finalizers of a namespace's content.
	finalizersOnly
)

// writing says how something is written.
type writing struct {
	part   part
	dryRun bool // answer as if, and store nothing
}

var errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

// now is the time as the API writes it, in seconds.
func now() metav1.Time { return metav1.NewTime(time.Now().Truncate(time.Second)) }

// checkMetadata refuses what no object of a resource may have.
func checkMetadata(r *resource, obj object) error {
	problems := validation.ValidateObjectMetaAccessor(obj, r.Namespaced, r.nameRule(), field.NewPath("metadata"))
	if len(problems) > 0 {
		return apierrors.NewInvalid(r.gvk().GroupKind(), obj.GetName(), problems)
	}
	return nil
}

// asStored gives an object the form it is stored in: a typed one without a kind, as
// its resource says it, and a map in the one version that all are stored in.
func asStored(r *resource, obj object) {
	if r.typed {
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		if secret, ok := obj.(*corev1.Secret); ok {
			mergeStringData(secret)
		}
		return
	}
	obj.GetObjectKind().SetGroupVersionKind(r.storedAs.WithKind(r.Kind))
}

// mergeStringData moves the data of a secret that was given as text to where it is
// kept.
func mergeStringData(secret *corev1.Secret) {
	for key, value := range secret.StringData {
		if secret.Data == nil {
			secret.Data = make(map[string][]byte)
		}
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
}

// checkObject refuses what a resource cannot hold, beyond its metadata.
func checkObject(r *resource, obj object) error {
	if r.gvr() != definitions {
		return nil
	}
	_, err := parseDefinition(obj)
	return err
}

// commitLocked stores a new state, or none for a delete, and records the event. The
// state is not shared yet: it gets the version of the write.
func (s *Server) commitLocked(r *resource, key string, before, after object) {
	s.advanceLocked()
	s.storeLocked(r, key, before, after)
}

// storeLocked is commitLocked for one of several writes of one version.
func (s *Server) storeLocked(r *resource, key string, before, after object) {
	if r.gvr() == definitions {
		s.defineLocked(before, after)
	}
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

// checkPreconditions refuses a write that was meant for another state. Empty
// conditions are none.
func checkPreconditions(r *resource, stored object, uid, version string) error {
	if uid != "" && uid != string(stored.GetUID()) {
		return apierrors.NewConflict(r.groupResource(), stored.GetName(), fmt.Errorf("%s: UID in precondition: %s, UID in object meta: %s", "Precondition failed", uid, stored.GetUID()))
	}
	if version != "" && version != stored.GetResourceVersion() {
		return apierrors.NewConflict(r.groupResource(), stored.GetName(), errModified)
	}
	return nil
}

// finishLocked goes on with the deletion of what an object that is gone was held in.
func (s *Server) finishLocked(r *resource, namespace string) {
	s.finishNamespaceLocked(namespace)
	s.finishDefinitionLocked(r.definition)
}

// checkNamespaceLocked refuses to create something in a namespace that is missing or
// about to go.
func (s *Server) checkNamespaceLocked(r *resource, obj object) error {
	all, ok := s.resources[namespaces]
	if !r.Namespaced || !ok || all.removed {
		return nil // where there are no namespaces, none is missing
	}
	name := obj.GetNamespace()
	namespace, ok := all.objects.Get(name)
	if !ok {
		return apierrors.NewNotFound(namespaces.GroupResource(), name)
	}
	if namespace.GetDeletionTimestamp() == nil {
		return nil
	}
	err := apierrors.NewForbidden(r.groupResource(), obj.GetName(), fmt.Errorf("unable to create new content in namespace %s because it is being terminated", name))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Message: fmt.Sprintf("namespace %s is being terminated", name), Field: "metadata.namespace",
	})
	return err
}
