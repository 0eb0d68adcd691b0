package apisim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestGenerationsCountWhatIsWanted(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		web := b.deployment("web", "a")
		deployments := b.typed.AppsV1().Deployments("default")
		generation := int64(1)
		steps := []struct {
			what   string
			change func(d *appsv1.Deployment)
			more   int64
			status bool
		}{
			{"labels", func(d *appsv1.Deployment) { d.Labels = map[string]string{"a": "b"} }, 0, false},
			{"spec", func(d *appsv1.Deployment) { d.Spec.Paused = true }, 1, false},
			{"annotations, which a deployment hands on", func(d *appsv1.Deployment) { d.Annotations = map[string]string{"a": "b"} }, 1, false},
			{"status through the object", func(d *appsv1.Deployment) { d.Status.Replicas = 7 }, 0, false},
			{"status", func(d *appsv1.Deployment) { d.Status.Replicas = 7; d.Spec.Paused = false }, 0, true},
			{"a generation that was made up", func(d *appsv1.Deployment) { d.Generation = 99 }, 0, false},
		}
		for _, step := range steps {
			given := web.DeepCopy()
			step.change(given)
			write := deployments.Update
			if step.status {
				write = deployments.UpdateStatus
			}
			got, err := write(b.ctx, given, metav1.UpdateOptions{})
			if err != nil {
				b.Fatalf("%s: %v", step.what, err)
			}
			if generation += step.more; got.Generation != generation {
				b.Errorf("%s: generation %d, want %d", step.what, got.Generation, generation)
			}
			if (got.Status.Replicas == 7) != (web.Status.Replicas == 7 || step.status) || !got.Spec.Paused && generation > 1 {
				b.Errorf("%s: it is %+v %+v", step.what, got.Spec, got.Status)
			}
			web = got
		}
	})
}

func TestStatusWritesOfOldTypesMayChangeMetadata(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		owner := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "u"}
		pod, err := b.typed.CoreV1().Pods("default").Create(b.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}, metav1.CreateOptions{})
		b.must(err)
		pod.Labels, pod.OwnerReferences, pod.Status.Phase = map[string]string{"a": "b"}, []metav1.OwnerReference{owner}, corev1.PodRunning
		if pod, err = b.typed.CoreV1().Pods("default").UpdateStatus(b.ctx, pod, metav1.UpdateOptions{}); err != nil || pod.Labels["a"] != "b" || pod.OwnerReferences != nil || pod.Status.Phase != corev1.PodRunning {
			b.Errorf("the pod is %+v, %v", pod, err)
		}
		web := b.deployment("web", "a").DeepCopy()
		web.Labels, web.Annotations, web.OwnerReferences = map[string]string{"a": "b"}, map[string]string{"a": "b"}, []metav1.OwnerReference{owner}
		if web, err = b.typed.AppsV1().Deployments("default").UpdateStatus(b.ctx, web, metav1.UpdateOptions{}); err != nil || web.Labels != nil || web.Annotations["a"] != "b" || len(web.OwnerReferences) != 1 || web.Generation != 1 {
			b.Errorf("the deployment is %+v, %v", web, err)
		}
		node, err := b.typed.CoreV1().Nodes().Create(b.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Phase: "Running"}}, metav1.CreateOptions{})
		if err != nil || node.Status.Phase != "Running" {
			b.Errorf("a node is registered with its status: %+v, %v", node, err)
		}
		node.Annotations, node.OwnerReferences, node.Spec.Unschedulable = map[string]string{"a": "b"}, []metav1.OwnerReference{owner}, true
		if node, err = b.typed.CoreV1().Nodes().UpdateStatus(b.ctx, node, metav1.UpdateOptions{}); err != nil || node.Annotations["a"] != "b" || len(node.OwnerReferences) != 1 || node.Spec.Unschedulable {
			b.Errorf("the node is %+v, %v", node, err)
		}
	})
}

func TestWhatAnUpdateCannotChange(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		made := b.create("a")
		time.Sleep(time.Hour)
		maps := b.typed.CoreV1().ConfigMaps("default")
		given := configMap("a", "n=1")
		given.CreationTimestamp, given.Generation = metav1.Now(), 7
		got, err := maps.Update(b.ctx, given, metav1.UpdateOptions{})
		if err != nil || got.UID != made.UID || !got.CreationTimestamp.Equal(&made.CreationTimestamp) || got.Generation != 0 || got.Labels["n"] != "1" {
			b.Errorf("an update that says nothing of the system's metadata: %+v, %v", got, err)
		}
		given.UID = "another"
		if _, err := maps.Update(b.ctx, given, metav1.UpdateOptions{}); !apierrors.IsConflict(err) || !strings.Contains(err.Error(), "UID in precondition: another") {
			b.Errorf("another UID: %v", err)
		}
		given.UID = ""
		soon := metav1.Now()
		given.DeletionTimestamp = &soon
		if _, err := maps.Update(b.ctx, given, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "metadata.deletionTimestamp") {
			b.Errorf("a deletion timestamp: %v", err)
		}
		if fresh, err := maps.Create(b.ctx, func() *corev1.ConfigMap { given.Name = "b"; return given }(), metav1.CreateOptions{}); err != nil || fresh.DeletionTimestamp != nil {
			b.Errorf("a create with a deletion timestamp: %+v, %v", fresh, err)
		}
	})
}

func TestGeneratedNamesAreFreeOnesAndComeFromTheSeed(t *testing.T) {
	names := func() (names []string) {
		inBubble(t, Options{Seed: 7}, func(b *bench) {
			for _, prefix := range []string{"web-", "web-", strings.Repeat("x", 100)} {
				given := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}}
				made, err := b.typed.CoreV1().ConfigMaps("default").Create(b.ctx, given, metav1.CreateOptions{})
				b.must(err)
				names = append(names, made.Name, string(made.UID))
				b.server.random = newRandom(b.server.Seed()) // the next name would be the same
			}
		})
		return names
	}
	first, second := names(), names()
	if fmt.Sprint(first) != fmt.Sprint(second) || len(first[0]) != len("web-")+suffixLength || len(first[4]) != 63 {
		t.Errorf("one seed made %v and %v", first, second)
	}
	if first[0] == first[2] {
		t.Errorf("the name %s was given twice", first[0])
	}
}

func TestUnknownFields(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		const path = "/api/v1/namespaces/default/configmaps"
		body := func(name string) string {
			return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"date":{},"data":{"a":"1","a":"2"}}`, name)
		}
		if code, text := b.get("POST", path+"?fieldValidation=Strict", body("a")); code != 400 || !strings.Contains(text, `strict decoding error: unknown field \"date\", duplicate field \"data.a\"`) {
			b.Errorf("Strict: %d %s", code, text)
		}
		for name, want := range map[string]int{"ignore": 0, "warn": 2} {
			query := map[string]string{"ignore": "?fieldValidation=Ignore"}[name]
			response := b.do("POST", path+query, body(name))
			if warnings := response.Header.Values("Warning"); response.StatusCode != 201 || len(warnings) != want || want > 0 && !strings.Contains(warnings[0], `unknown field`) {
				b.Errorf("%s: %d, warnings %q", name, response.StatusCode, warnings)
			}
		}
		response := b.do("PATCH", path+"/warn", `{"date":1}`, "Content-Type", "application/merge-patch+json")
		if warnings := response.Header.Values("Warning"); response.StatusCode != 200 || len(warnings) != 1 {
			b.Errorf("patch: %d, warnings %q", response.StatusCode, warnings)
		}
	})
}

func TestBodiesInYAML(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.register()
		for path, kind := range map[string]string{
			mapsPath: "v1\nkind: ConfigMap",
			"/apis/example.com/v1/namespaces/default/widgets": "example.com/v1\nkind: Widget",
		} {
			body := "apiVersion: " + kind + "\nmetadata: {name: a}\ndata: {k: v}\n"
			b.ask(mediaYAML, ask{"POST " + path, body, 201, `{"k":"v"}`},
				ask{"POST " + path, "a: b: c", 400, ""})
			for get, want := range map[string]string{
				path + "/a": "200 \n  name: a\n", path: "200 items:\n- ", path + "?watch=1": "406 ",
			} {
				code, text := b.get("GET", get, "", "Accept", mediaYAML)
				if want, says, _ := strings.Cut(want, " "); fmt.Sprint(code) != want || !strings.Contains(text, says) {
					b.Errorf("%s in YAML: %d %s", get, code, text)
				}
			}
		}
	})
}
