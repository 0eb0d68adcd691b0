package apisim

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
)

// merge sends a merge patch to a config map.
func (b *bench) merge(name, patch string) (*corev1.ConfigMap, error) {
	return b.typed.CoreV1().ConfigMaps("default").Patch(b.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
}

func TestFinalizersKeepADeletedObject(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		given := configMap("a")
		given.Finalizers = []string{"example.com/one", "example.com/two"}
		made, err := Create(b.ctx, b.server, given)
		b.must(err)
		events := b.follow(at(made.ResourceVersion))
		maps := b.typed.CoreV1().ConfigMaps("default")
		b.must(maps.Delete(b.ctx, "a", metav1.DeleteOptions{}))
		marked, err := maps.Get(b.ctx, "a", metav1.GetOptions{})
		if err != nil || marked.DeletionTimestamp == nil || !marked.DeletionTimestamp.Time.Equal(time.Now()) || *marked.DeletionGracePeriodSeconds != 0 {
			b.Fatalf("the deleted object is %+v, %v", marked, err)
		}
		time.Sleep(time.Minute)
		if err := maps.Delete(b.ctx, "a", metav1.DeleteOptions{}); err != nil {
			b.Errorf("a second delete: %v", err)
		}
		if _, err := maps.Create(b.ctx, configMap("a"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) || !strings.HasPrefix(err.Error(), "object is being deleted: ") {
			b.Errorf("a create meanwhile: %v", err)
		}
		if _, err := b.merge("a", `{"metadata":{"finalizers":["example.com/one","example.com/three"]}}`); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "no new finalizers can be added") {
			b.Errorf("a new finalizer: %v", err)
		}
		one, err := b.merge("a", `{"metadata":{"finalizers":["example.com/one"],"deletionTimestamp":null}}`)
		if err != nil || !one.DeletionTimestamp.Equal(marked.DeletionTimestamp) {
			b.Fatalf("without the second finalizer: %+v, %v", one, err)
		}
		last, err := b.merge("a", `{"metadata":{"finalizers":null}}`)
		if err != nil || len(last.Finalizers) != 0 {
			b.Fatalf("the update that ends it answers %+v, %v", last, err)
		}
		if _, err := maps.Get(b.ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			b.Errorf("the object is still there: %v", err)
		}
		b.want("events", events(), "MODIFIED a@"+marked.ResourceVersion, "MODIFIED a@"+one.ResourceVersion, "DELETED a@"+b.version())
	})
}

func TestDeletePreconditions(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		made := b.create("a")
		maps := b.typed.CoreV1().ConfigMaps("default")
		otherUID, otherVersion := types.UID("another"), "1"
		for _, p := range []metav1.Preconditions{
			{UID: &otherUID}, {ResourceVersion: &otherVersion}, {UID: new(types.UID(""))},
			{UID: &made.UID, ResourceVersion: &otherVersion},
		} {
			err := maps.Delete(b.ctx, "a", metav1.DeleteOptions{Preconditions: &p})
			if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "cannot be fulfilled on ConfigMap \"a\": the ") ||
				!strings.Contains(err.Error(), "in the precondition (") {
				b.Errorf("%+v: %v", p, err)
			}
		}
		right := &metav1.Preconditions{UID: &made.UID, ResourceVersion: &made.ResourceVersion}
		b.must(maps.Delete(b.ctx, "a", metav1.DeleteOptions{Preconditions: right}))
	})
}

func TestPodsAreDeletedGracefully(t *testing.T) {
	seconds := func(n int64) *int64 { return &n }
	type pod struct {
		node  string
		grace *int64
		phase corev1.PodPhase
	}
	for name, test := range map[string]struct {
		pod  pod
		ask  *int64
		want time.Duration // negative: it goes at once
	}{
		"on a node":          {pod{"n", seconds(30), corev1.PodRunning}, nil, 30 * time.Second},
		"asked for less":     {pod{"n", seconds(30), corev1.PodRunning}, seconds(5), 5 * time.Second},
		"asked for no time":  {pod{"n", seconds(30), corev1.PodRunning}, seconds(0), -1},
		"asked for nonsense": {pod{"n", seconds(30), corev1.PodRunning}, seconds(-7), time.Second},
		"on no node":         {pod{"", seconds(30), corev1.PodPending}, nil, -1},
		"failed":             {pod{"n", seconds(30), corev1.PodFailed}, nil, -1},
		"without a period":   {pod{"n", nil, corev1.PodRunning}, nil, -1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{}, func(b *bench) {
				given := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
				given.Spec.NodeName, given.Spec.TerminationGracePeriodSeconds, given.Status.Phase = test.pod.node, test.pod.grace, test.pod.phase
				b.done(b.server.Create(b.ctx, given))
				pods := b.typed.CoreV1().Pods("default")
				b.must(pods.Delete(b.ctx, "a", metav1.DeleteOptions{GracePeriodSeconds: test.ask}))
				left, err := pods.Get(b.ctx, "a", metav1.GetOptions{})
				if test.want < 0 {
					if !apierrors.IsNotFound(err) {
						b.Errorf("it is still there: %v", err)
					}
					return
				}
				if err != nil || time.Until(left.DeletionTimestamp.Time) != test.want || *left.DeletionGracePeriodSeconds != int64(test.want/time.Second) || left.Generation != 2 {
					b.Fatalf("it is %+v, %v", left, err)
				}
				time.Sleep(500 * time.Millisecond)
				longer, shorter := int64(100), int64(0)
				b.must(pods.Delete(b.ctx, "a", metav1.DeleteOptions{GracePeriodSeconds: &longer}))
				if same, err := pods.Get(b.ctx, "a", metav1.GetOptions{}); err != nil || same.ResourceVersion != left.ResourceVersion {
					b.Errorf("a longer period changed it: %+v, %v", same, err)
				}
				b.must(pods.Delete(b.ctx, "a", metav1.DeleteOptions{GracePeriodSeconds: &shorter}))
				if _, err := pods.Get(b.ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
					b.Errorf("it is still there after the kubelet's delete: %v", err)
				}
			})
		})
	}
}

func TestWhatADeleteAnswers(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		held := configMap("held")
		held.Finalizers = []string{"example.com/one"}
		b.done(b.server.Create(b.ctx, held))
		b.done(b.server.Create(b.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}}))
		b.create("a")
		const path = "DELETE /api/v1/namespaces/default/"
		b.ask("",
			ask{path + "configmaps/a?gracePeriodSeconds=0&propagationPolicy=Background", "", 200,
				`"status":"Success","details":{"name":"a","kind":"configmaps","uid"`},
			ask{path + "configmaps/held", "", 200, `"finalizers":["example.com/one"]`},
			ask{path + "pods/p", "", 200, `"kind":"Pod"`},
			ask{path + "configmaps/held", `{"propagationPolicy":"Nonsense"}`, 422, ""},
			ask{path + "configmaps/held", `{"gracePeriodSeconds":"x"}`, 400, ""},
			ask{path + "configmaps/held", "{", 400, ""}, ask{path + "configmaps/held", "[]", 400, ""},
			ask{path + "configmaps/held", `{"kind":"ConfigMap","apiVersion":"v1"}`, 400, ""})
		b.ask(mediaYAML, ask{path + "configmaps/held", "preconditions: {uid: x}", 409, ""})
		b.ask("text/html", ask{path + "configmaps/held", "", 200, ""})
	})
}

func TestDeleteCollection(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.create("a", "app=web")
		b.create("b", "app=db")
		held := configMap("c", "app=web")
		held.Finalizers = []string{"example.com/one"}
		b.done(b.server.Create(b.ctx, held))
		elsewhere := configMap("d", "app=web")
		elsewhere.Namespace = "kube-system"
		b.done(b.server.Create(b.ctx, elsewhere))
		code, text := b.get("DELETE", "/api/v1/namespaces/default/configmaps?labelSelector=app%3Dweb", "")
		if code != 200 || !strings.Contains(text, `"kind":"ConfigMapList"`) || strings.Count(text, `"name":`) != 2 {
			b.Errorf("the answer is %d %s", code, text)
		}
		names, list, err := b.list(metav1.ListOptions{})
		if err != nil || list.Items[1].DeletionTimestamp == nil {
			b.Errorf("the object with a finalizer is %+v, %v", list.Items, err)
		}
		b.want("left in the namespace", names, "b", "c")
		b.must(b.typed.CoreV1().ConfigMaps("kube-system").DeleteCollection(b.ctx, metav1.DeleteOptions{DryRun: []string{"All"}}, metav1.ListOptions{}))
		if _, err := b.typed.CoreV1().ConfigMaps("kube-system").Get(b.ctx, "d", metav1.GetOptions{}); err != nil {
			b.Errorf("in another namespace, after a dry run: %v", err)
		}
		b.must(b.typed.CoreV1().ConfigMaps("kube-system").DeleteCollection(b.ctx, metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=d"}))
		if _, err := b.typed.CoreV1().ConfigMaps("kube-system").Get(b.ctx, "d", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			b.Errorf("selected by name: %v", err)
		}
	})
}

func TestNamespaceFinalizes(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		all := b.typed.CoreV1().Namespaces()
		team, err := all.Create(b.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}, metav1.CreateOptions{})
		if err != nil || team.Status.Phase != corev1.NamespaceActive || team.Labels["kubernetes.io/metadata.name"] != "team" || team.Generation != 0 || fmt.Sprint(team.Spec.Finalizers) != "[kubernetes]" {
			b.Fatalf("made %+v, %v", team, err)
		}
		maps := b.typed.CoreV1().ConfigMaps("team")
		for _, name := range []string{"a", "held"} {
			given := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
			if name == "held" {
				given.Finalizers = []string{"example.com/one"}
			}
			b.done(maps.Create(b.ctx, given, metav1.CreateOptions{}))
		}
		b.create("elsewhere")
		w, err := all.Watch(b.ctx, metav1.ListOptions{ResourceVersion: team.ResourceVersion})
		b.must(err)
		events := b.collect(w)
		b.must(all.Delete(b.ctx, "team", metav1.DeleteOptions{}))
		terminating, err := all.Get(b.ctx, "team", metav1.GetOptions{})
		if err != nil || terminating.Status.Phase != corev1.NamespaceTerminating || terminating.DeletionTimestamp == nil {
			b.Fatalf("after the delete: %+v, %v", terminating, err)
		}
		_, err = maps.Create(b.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}}, metav1.CreateOptions{})
		if !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			b.Errorf("a create meanwhile: %v", err)
		}
		if err := all.Delete(b.ctx, "team", metav1.DeleteOptions{}); !apierrors.IsConflict(err) {
			b.Errorf("a second delete: %v", err)
		}
		if _, err := maps.Get(b.ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			b.Errorf("the content: %v", err)
		}
		b.done(maps.Patch(b.ctx, "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}))
		if _, err := all.Get(b.ctx, "team", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			b.Errorf("after the content is gone: %v", err)
		}
		b.want("events", events(), "MODIFIED team@"+terminating.ResourceVersion, "DELETED team@"+b.version())
		if names, _, err := b.list(metav1.ListOptions{}); err != nil || fmt.Sprint(names) != "[elsewhere]" {
			b.Errorf("elsewhere is left %v, %v", names, err)
		}
		if _, err := maps.Create(b.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}}, metav1.CreateOptions{}); !apierrors.IsNotFound(err) {
			b.Errorf("a create in no namespace: %v", err)
		}
	})
}

func TestNamespaceWithFinalizersOfOthers(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		given := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", Finalizers: []string{"example.com/one"}}}
		given.Spec.Finalizers = []corev1.FinalizerName{"example.com/two"}
		all := b.typed.CoreV1().Namespaces()
		b.done(all.Create(b.ctx, given, metav1.CreateOptions{}))
		b.must(all.Delete(b.ctx, "team", metav1.DeleteOptions{}))
		left, err := all.Get(b.ctx, "team", metav1.GetOptions{})
		if err != nil || fmt.Sprint(left.Spec.Finalizers) != "[example.com/two]" {
			b.Fatalf("an empty namespace is left with %+v, %v", left, err)
		}
		left.Spec.Finalizers = nil
		if left, err = all.Update(b.ctx, left, metav1.UpdateOptions{}); err != nil || len(left.Spec.Finalizers) != 1 {
			b.Errorf("an update may not change them: %+v, %v", left, err)
		}
		left.Spec.Finalizers = nil
		if left, err = all.Finalize(b.ctx, left, metav1.UpdateOptions{}); err != nil || len(left.Spec.Finalizers) != 0 {
			b.Errorf("finalize answers %+v, %v", left, err)
		}
		if err := all.Delete(b.ctx, "team", metav1.DeleteOptions{}); err != nil {
			b.Errorf("a delete that waits for the last finalizer: %v", err)
		}
		b.done(all.Patch(b.ctx, "team", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}))
		if _, err := all.Get(b.ctx, "team", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			b.Errorf("it is still there: %v", err)
		}
	})
}

func TestNamespacesHaveTheirNameAsALabel(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		all := b.typed.CoreV1().Namespaces()
		made, err := all.Create(b.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "team-"}}, metav1.CreateOptions{})
		if b.must(err); made.Labels[corev1.LabelMetadataName] != made.Name {
			b.Errorf("a generated name has the labels %v", made.Labels)
		}
		bare := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: made.Name, GenerateName: made.GenerateName}}
		same, err := all.Update(b.ctx, bare, metav1.UpdateOptions{})
		if b.must(err); same.Labels[corev1.LabelMetadataName] != made.Name || same.ResourceVersion != made.ResourceVersion {
			b.Errorf("an update without labels leaves %v at %s", same.Labels, same.ResourceVersion)
		}
	})
}

func TestSomeNamespacesStand(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		for _, name := range protectedNamespaces {
			b.ask("", ask{"DELETE /api/v1/namespaces/" + name, "", 403, "may not be deleted"})
		}
		b.ask("", ask{"DELETE /api/v1/namespaces/kube-node-lease?dryRun=All", "", 200, "Terminating"},
			ask{"GET /api/v1/namespaces/kube-node-lease", "", 200, "Active"})
	})
}

func TestDryRunStoresNothing(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		a := b.create("a")
		events := b.follow(at(a.ResourceVersion))
		const path, query = " " + mapsPath, "?dryRun=All"
		b.ask("",
			ask{"POST" + path + query, `{"metadata":{"name":"b"}}`, 201, `"uid":`},
			ask{"POST" + path + query, `{"metadata":{"name":"a"}}`, 409, "already exists"},
			ask{"PUT" + path + "/a" + query, `{"metadata":{"name":"a"},"data":{"k":"v"}}`, 200, `{"k":"v"}`},
			ask{"DELETE" + path + "/a" + query, "", 200, "Success"},
			ask{"DELETE" + path + query, "", 200, `"name":"a"`})
		b.ask("application/merge-patch+json",
			ask{"PATCH" + path + "/a" + query, `{"data":{"k":"v"}}`, 200, `{"k":"v"}`})
		b.want("events", events())
		names, list, err := b.list(metav1.ListOptions{})
		if err != nil || fmt.Sprint(names) != "[a]" || list.Items[0].ResourceVersion != a.ResourceVersion {
			b.Errorf("left are %+v, %v", list, err)
		}
	})
}

// TestDeleteOptionsMayBeOfAnyGroup sends options of the groups that clients name: that of
// the resource, meta.k8s.io, the core group or none.
func TestDeleteOptionsMayBeOfAnyGroup(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.define()
		b.seed(widget("v1", "a"))
		b.deployment("a", "x")
		inProtobuf := protobuf.NewSerializer(nil, nil)
		for _, path := range []string{
			"/apis/example.com/v1/namespaces/default/widgets/a", "/apis/apps/v1/namespaces/default/deployments/a",
		} {
			for _, group := range []string{"example.com/v1", "apps/v1", "meta.k8s.io/v1", "v1", ""} {
				o := &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("another")}
				o.Kind, o.APIVersion = "DeleteOptions", group
				asJSON, err := json.Marshal(o)
				b.must(err)
				for mediaType, body := range map[string]string{
					mediaJSON: string(asJSON), mediaProtobuf: runtime.EncodeOrDie(inProtobuf, o),
				} {
					code, text := b.get("DELETE", path, body, "Content-Type", mediaType)
					if code != 409 || !strings.Contains(text, "the UID in the precondition (another) does not match the UID in record (") {
						b.Errorf("%s, %s of %q: %d %s", path, mediaType, group, code, text)
					}
				}
			}
		}
	})
}
