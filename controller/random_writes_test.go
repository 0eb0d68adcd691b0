package controller_test

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/tidings-go/tidings/controller"
)

// answered keeps a write that was answered, unless the server was set back since the call began.
func (s *subject) answered(
	r request, history int64, of schema.GroupVersionResource, o metav1.Object, err error, gone bool, how string,
) error {
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.history.Load() == history {
		gone = gone || o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0
		s.wrote[r.Key] = append(s.wrote[r.Key], wrote{
			of, o.GetNamespace() + "/" + o.GetName(), o.GetUID(), o.GetResourceVersion(), gone, how})
	}
	return nil
}

// write makes a write of a random kind, of the object or of a secret.
func (s *subject) write(ctx context.Context, r request, history int64) error {
	name := fmt.Sprint(r.Name(), "-", s.number(2))
	have, err := controller.Read(ctx, s.secrets).Get(r.Namespace() + "/" + name)
	exists := err == nil
	switch {
	case r.Gone && exists:
		return s.deleteWithUID(ctx, r, history, have)
	case r.Gone:
		return nil
	case s.chance(3):
		return s.writeObject(ctx, r, history)
	}
	return s.writeSecret(ctx, r, history, name, have, exists)
}

func (s *subject) writeObject(ctx context.Context, r request, history int64) error {
	client := s.client.CoreV1().ConfigMaps(r.Namespace())
	noted := func(o metav1.Object, err error, how string) error {
		return s.answered(r, history, configMapsOf, o, err, false, how)
	}
	switch s.number(6) {
	case 0:
		next := known(r).DeepCopy()
		next.Annotations = map[string]string{"seen": known(r).Data["state"]}
		o, err := client.Update(ctx, next, updateNow)
		return noted(o, err, "update")
	case 1:
		o, err := client.Update(ctx, known(r).DeepCopy(), updateNow)
		return noted(o, err, "update that changes nothing")
	case 2:
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"patched":%q}}}`, s.text())
		o, err := client.Patch(ctx, r.Name(), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return noted(o, err, "merge patch")
	case 3:
		patch := fmt.Sprintf(`[{"op":"add","path":"/data/json","value":%q}]`, s.text())
		o, err := s.dynamic.Resource(configMapsOf).Namespace(r.Namespace()).Patch(ctx, r.Name(), types.JSONPatchType,
			[]byte(patch), metav1.PatchOptions{})
		if err != nil {
			return err
		}
		return noted(o, nil, "JSON patch")
	case 4:
		apply := applycorev1.ConfigMap(r.Name(), r.Namespace()).WithData(map[string]string{"applied": fmt.Sprint(s.number(3))})
		o, err := client.Apply(ctx, apply, metav1.ApplyOptions{FieldManager: "subject", Force: true})
		return noted(o, err, "apply")
	}
	for range 20 + s.number(80) {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{"many":%q}}}`, s.text())
		o, err := client.Patch(ctx, r.Name(), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err := noted(o, err, "many patches"); err != nil {
			return err
		}
	}
	return nil
}

func (s *subject) writeSecret(
	ctx context.Context, r request, history int64, name string, have *corev1.Secret, exists bool,
) error {
	client := s.client.CoreV1().Secrets(r.Namespace())
	noted := func(o metav1.Object, err error, gone bool, how string) error {
		return s.answered(r, history, secretsOf, o, err, gone, how)
	}
	fresh := ownedBy(secret(r.Namespace(), name), known(r), "v1", "ConfigMap")
	switch n := s.number(10); {
	case n == 0:
		fresh.Name, fresh.GenerateName = "", r.Name()+"-generated-"
		o, err := client.Create(ctx, fresh, createNow)
		return noted(o, err, false, "create with a generated name")
	case n == 1: // in one call
		fresh.Name = r.Name() + "-brief"
		made, err := client.Create(ctx, fresh, createNow)
		if err != nil {
			return err
		}
		made.Labels = map[string]string{"brief": "yes"}
		if made, err = client.Update(ctx, made, updateNow); err != nil {
			return err
		}
		return noted(made, client.Delete(ctx, made.Name, deleteNow), true, "create, update and delete")
	case n == 2:
		return client.DeleteCollection(ctx, deleteNow, metav1.ListOptions{LabelSelector: fmt.Sprint("state=", s.number(100))})
	case n == 3:
		return s.toggleDynamic(ctx, r, history)
	case n == 4:
		for key, generated := range controller.Read(ctx, s.secrets).All() {
			if metav1.IsControlledBy(generated, known(r)) && strings.Contains(key, "-generated-") {
				return noted(generated, client.Delete(ctx, generated.Name, deleteNow), true, "delete of a generated name")
			}
		}
		return nil
	case !exists:
		o, err := client.Create(ctx, fresh, createNow)
		return noted(o, err, false, "create")
	case n == 5:
		return s.deleteWithUID(ctx, r, history, have)
	case n == 6:
		return client.Delete(ctx, name, deleteNow)
	}
	next := have.DeepCopy()
	next.Labels = map[string]string{"state": fmt.Sprint(s.number(100))}
	o, err := client.Update(ctx, next, updateNow)
	return noted(o, err, false, "update")
}

func (s *subject) deleteWithUID(ctx context.Context, r request, history int64, have *corev1.Secret) error {
	err := s.client.CoreV1().Secrets(have.Namespace).Delete(ctx, have.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &have.UID},
	})
	return s.answered(r, history, secretsOf, have, err, true, "delete with a UID")
}

// toggleDynamic creates a secret with the dynamic client, or deletes it.
func (s *subject) toggleDynamic(ctx context.Context, r request, history int64) error {
	client, name := s.dynamic.Resource(secretsOf).Namespace(r.Namespace()), r.Name()+"-dynamic"
	made, err := client.Create(ctx, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{"namespace": r.Namespace(), "name": name}}}, createNow)
	switch {
	case apierrors.IsAlreadyExists(err):
		return client.Delete(ctx, name, deleteNow)
	case err != nil:
		return err
	}
	return s.answered(r, history, secretsOf, made, nil, false, "dynamic create")
}
