package guard

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/apisim"
)

// status is the answer to writes of some subresources.
const status = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}`

func answering(code int, body string) apisim.Fault {
	return apisim.Answer(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		io.WriteString(w, body)
	})
}

// page is the answer of a proxy, not of the API server.
func page(code int) apisim.Fault {
	return apisim.Answer(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "<html>a page</html>", code)
	})
}

// inTime is the time after the sending at which a write without an answer may be resolved.
const inTime = defaultTimeout + grace

// outcome is the outcome of a create under a fault.
type outcome struct {
	name      string
	fault     apisim.Fault
	none      bool // no entry
	known     bool
	notBefore time.Duration // of an unknown write, from its sending
	wait      time.Duration // the time until the client has its answer
}

// TestC03_EachOutcomeIsNoted creates a config map under faults.
func TestC03_EachOutcomeIsNoted(t *testing.T) {
	for _, c := range []outcome{
		{name: "cut before the answer", fault: apisim.CutBefore(0), notBefore: inTime},
		{name: "cut before the body", fault: apisim.CutBefore(1)},
		{name: "cut within the metadata", fault: apisim.CutWithin(1)},
		{name: "cut after the body", fault: apisim.CutAfter(1), known: true},
		{name: "half an answer", fault: apisim.Truncate(1)},
		{name: "noise", fault: apisim.Garble(1)},
		{name: "drop", fault: apisim.Drop(), notBefore: inTime},
		{name: "slow", fault: apisim.Delay(30 * time.Second), known: true, wait: 30 * time.Second},
		{name: "too slow", fault: apisim.Delay(time.Hour), notBefore: inTime, wait: defaultTimeout},
		{name: "a stall of the answer", fault: apisim.Stall(0, 0), notBefore: inTime, wait: defaultTimeout},
		{name: "a stall within the answer", fault: apisim.Stall(1, 0), notBefore: defaultTimeout, wait: defaultTimeout},
		{name: "400", fault: apisim.Refuse(400, 0), none: true},
		{name: "403", fault: apisim.Refuse(403, 0), none: true},
		{name: "404", fault: apisim.Refuse(404, 0), none: true},
		{name: "422", fault: apisim.Refuse(422, 0), none: true},
		{name: "429", fault: apisim.Refuse(429, 0), none: true},
		{name: "500", fault: apisim.Refuse(500, 0), notBefore: grace},
		{name: "502", fault: apisim.Refuse(502, 0), notBefore: inTime},
		{name: "503", fault: apisim.Refuse(503, 0), notBefore: grace},
		{name: "504", fault: apisim.Refuse(504, 0), notBefore: inTime},
		{name: "no answer of a server", fault: answering(200, "<html>")},
		{name: "a page with 400", fault: page(400), notBefore: grace},
		{name: "a page with 403", fault: page(403), notBefore: grace},
		{name: "a page with 404", fault: page(404), notBefore: grace},
		{name: "a page with 409", fault: page(409), notBefore: grace},
		{name: "a page with 500", fault: page(500), notBefore: inTime},
		{name: "a page with 503", fault: page(503), notBefore: inTime},
		{name: "no body", fault: answering(200, "")},
	} {
		for _, mediaType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
			t.Run(c.name+" of "+mediaType, func(t *testing.T) {
				inBubble(t, Options{}, func(r *rig) {
					r.speak(mediaType)
					r.server.Inject(apisim.Match{Verb: "create"}, c.fault)
					c.check(r)
				})
			})
		}
	}
}

// check creates a config map, and compares the recorded write.
func (c *outcome) check(r *rig) {
	ctx, call := r.guard.Begin(r.Context(), nil)
	began := time.Now()
	obj := configMap("a")
	obj.Annotations = map[string]string{"large": strings.Repeat("x", 1000)}
	_, err := r.maps().Create(ctx, obj, metav1.CreateOptions{})
	if waited := time.Since(began); waited != c.wait {
		r.Errorf("the client waited %v, want %v", waited, c.wait)
	}
	if c.wait > 0 && (err == nil) != c.known {
		r.Errorf("the client's error is %v", err)
	}
	writes := call.End()
	select {
	case <-call.Done():
	default:
		r.Error("the call is not done")
	}
	if c.none {
		if len(writes) > 0 {
			r.Errorf("it is noted as %+v", writes)
		}
		return
	}
	w := writes[0]
	want := Write{
		Resource: configMaps.GroupResource(), Namespace: "default", Name: "a", Sent: began,
	}
	if c.known {
		stored := r.stored(configMaps, "a")
		want.UID, want.Version = stored.GetUID(), stored.GetResourceVersion()
	} else {
		want.Unknown, want.NotBefore = true, began.Add(c.notBefore)
	}
	if w != want {
		r.Errorf("it is noted as\n%+v, want\n%+v", w, want)
	}
}

// TestC03_EachAttemptIsNoted makes client-go send a write again.
func TestC03_EachAttemptIsNoted(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		r.server.Inject(apisim.Match{Verb: "create"}.Nth(1), apisim.Refuse(429, time.Second))
		r.server.Inject(apisim.Match{Verb: "create"}.Nth(2), apisim.Refuse(503, time.Second))
		began := time.Now()
		ctx, call := r.guard.Begin(r.Context(), nil)
		made, err := r.maps().Create(ctx, configMap("a"), metav1.CreateOptions{})
		r.must(err)
		writes := call.End()
		if len(writes) != 2 || !writes[0].Unknown || !writes[0].Sent.Equal(began.Add(time.Second)) ||
			writes[1].Version != made.ResourceVersion || !writes[1].Sent.Equal(began.Add(2*time.Second)) {
			r.Errorf("the attempts are noted as %+v", writes)
		}
		want := Stats{Sent: 3, Unknown: 1}
		if got := r.guard.Stats(); got != want {
			r.Errorf("the counts are %+v, want %+v", got, want)
		}
	})
}

// TestC03_NothingSentIsNotNoted writes to a server that cannot be reached, and with a context
// that has ended.
func TestC03_NothingSentIsNotNoted(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		r.server.SetAvailable(false)
		ctx, call := r.guard.Begin(r.Context(), nil)
		if _, err := r.maps().Create(ctx, configMap("a"), metav1.CreateOptions{}); err == nil {
			r.Error("a create has succeeded")
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, err := r.maps().Create(ended, configMap("a"), metav1.CreateOptions{})
		if !errors.Is(err, context.Canceled) {
			r.Errorf("the error is %v", err)
		}
		if writes := call.End(); len(writes) > 0 {
			r.Errorf("it is noted as %+v", writes)
		}
	})
}

// TestC03_NoConnectionIsNotNoted has each way in which a connection cannot be made.
func TestC03_NoConnectionIsNotNoted(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	nowhere := &url.URL{Scheme: "http", Host: "127.0.0.1:1"}
	for name, config := range map[string]*rest.Config{
		"refused":                   {Host: nowhere.String()},
		"a dialer's own error":      {Host: server.URL, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, io.ErrUnexpectedEOF }},
		"a proxy that is down":      {Host: server.URL, Proxy: http.ProxyURL(nowhere)},
		"a handshake without trust": {Host: server.URL},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := New(config, Options{})
			if err != nil {
				t.Fatal(err)
			}
			client, err := kubernetes.NewForConfig(g.Config())
			if err != nil {
				t.Fatal(err)
			}
			ctx, call := g.Begin(t.Context(), nil)
			if _, err = client.CoreV1().ConfigMaps("default").Create(ctx, configMap("a"), metav1.CreateOptions{}); err == nil {
				t.Error("a create has succeeded")
			}
			if writes := call.End(); len(writes) > 0 {
				t.Errorf("it is noted as %+v, with the error %v", writes, err)
			}
		})
	}
}

func TestC03_ConflictsAreNoted(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		old := create(r, configMap("a"))
		changed := configMap("a")
		changed.Labels = map[string]string{"changed": "yes"}
		_, err := r.server.Update(r.Context(), changed)
		r.must(err)
		apply := applycore.ConfigMap("a", "default").WithLabels(map[string]string{"changed": "no"})
		for name, c := range map[string]struct {
			write   func(ctx context.Context) error
			version string
			uid     types.UID
			none    bool
		}{
			"update": {version: old.ResourceVersion, uid: old.UID, write: func(ctx context.Context) error {
				_, err := r.maps().Update(ctx, old, metav1.UpdateOptions{})
				return err
			}},
			"patch": {version: old.ResourceVersion, write: func(ctx context.Context) error {
				patch := `{"metadata":{"resourceVersion":"` + old.ResourceVersion + `","labels":{"a":"b"}}}`
				_, err := r.maps().Patch(ctx, "a", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
				return err
			}},
			"create": {write: func(ctx context.Context) error {
				_, err := r.maps().Create(ctx, configMap("a"), metav1.CreateOptions{})
				return err
			}},
			"delete": {version: old.ResourceVersion, write: func(ctx context.Context) error {
				o := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &old.ResourceVersion}}
				return r.maps().Delete(ctx, "a", o)
			}},
			"delete of another one": {uid: "another", write: func(ctx context.Context) error {
				uid := types.UID("another")
				return r.maps().Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
			}},
			"apply": {none: true, write: func(ctx context.Context) error {
				_, err := r.maps().Apply(ctx, apply, metav1.ApplyOptions{FieldManager: "one", Force: true})
				r.must(err)
				ctx2, other := r.guard.Begin(ctx, nil)
				defer other.End()
				apply.Labels["changed"] = "maybe"
				_, err = r.maps().Apply(ctx2, apply, metav1.ApplyOptions{FieldManager: "two"})
				if writes := other.End(); len(writes) > 0 {
					r.Errorf("an apply that conflicts is noted as %+v", writes)
				}
				return err
			}},
		} {
			ctx, call := r.guard.Begin(r.Context(), nil)
			if err := c.write(ctx); err == nil {
				r.Errorf("%s: there is no conflict", name)
			}
			if c.none {
				continue
			}
			w := r.only(call)
			want := Write{
				Resource: w.Resource, Namespace: "default", Name: "a", Conflict: true,
				Version: c.version, UID: c.uid, Sent: w.Sent,
			}
			if w != want {
				r.Errorf("%s: it is noted as\n%+v, want\n%+v", name, w, want)
			}
		}
		if got := r.guard.Stats().Conflicts; got != 5 {
			r.Errorf("%d conflicts are counted, want 5", got)
		}
	})
}

// TestC03_Subresources writes subresources, which count for their parents.
func TestC03_Subresources(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		grace := int64(30)
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}}
		pod.Spec.NodeName, pod.Spec.TerminationGracePeriodSeconds = "n", &grace
		pod = create(r, pod)
		r.server.Inject(apisim.Match{Resource: "pods/eviction"}, answering(201, status))
		r.server.Inject(apisim.Match{Resource: "pods/binding"}, answering(201, status))
		r.server.Inject(apisim.Match{Resource: "bindings"}, answering(201, status))
		client := r.typed.CoreV1().Pods("default")
		binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}}
		for name, c := range map[string]struct {
			write func(ctx context.Context) error
			known bool
		}{
			"status": {known: true, write: func(ctx context.Context) error {
				pod.ResourceVersion, pod.Status.Message = "", "changed"
				_, err := client.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
				return err
			}},
			"a delete with a grace period": {known: true, write: func(ctx context.Context) error {
				return client.Delete(ctx, "p", metav1.DeleteOptions{})
			}},
			"eviction": {write: func(ctx context.Context) error {
				return client.EvictV1(ctx, &policyv1.Eviction{ObjectMeta: pod.ObjectMeta})
			}},
			"binding": {write: func(ctx context.Context) error {
				return client.Bind(ctx, binding, metav1.CreateOptions{})
			}},
			"a binding of the old path": {write: func(ctx context.Context) error {
				return r.typed.CoreV1().RESTClient().Post().Namespace("default").Resource("bindings").Body(binding).Do(ctx).Error()
			}},
		} {
			ctx, call := r.guard.Begin(r.Context(), nil)
			r.must(c.write(ctx))
			w := r.only(call)
			stored := r.stored(pods, "p")
			if c.known && (w.UID != stored.GetUID() || w.Version != stored.GetResourceVersion()) ||
				w.Unknown == c.known || w.Gone || w.Resource.Resource != "pods" || w.Name != "p" {
				r.Errorf("%s: it is noted as %+v", name, w)
			}
			w, err := r.guard.Resolve(r.Context(), pods, w)
			r.must(err)
			if w.UID != stored.GetUID() || w.Version != stored.GetResourceVersion() || w.Unknown {
				r.Errorf("%s: it is resolved as %+v", name, w)
			}
		}
	})
}

// TestC03_NamespacesAreAsked deletes a namespace: its finalizers are not in the metadata.
func TestC03_NamespacesAreAsked(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		create(r, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
		r.server.Inject(apisim.Match{Verb: "delete"}, answering(200, `{"kind":"Namespace",
			"metadata":{"name":"n","uid":"u","resourceVersion":"7","deletionTimestamp":"2000-01-01T00:00:00Z"},
			"spec":{"finalizers":["kubernetes"]}}`))
		ctx, call := r.guard.Begin(r.Context(), nil)
		r.must(r.typed.CoreV1().Namespaces().Delete(ctx, "n", metav1.DeleteOptions{}))
		w := r.only(call)
		if !w.Unknown || w.Gone || !w.NotBefore.Equal(time.Now()) {
			r.Errorf("it is noted as %+v", w)
		}
		namespaces := corev1.SchemeGroupVersion.WithResource("namespaces")
		if w, err := r.guard.Resolve(r.Context(), namespaces, w); err != nil || w.Gone || w.Version == "" {
			r.Errorf("it is resolved as %+v, %v", w, err)
		}
	})
}

// TestC03_WhatStoresNothing sends requests that are not recorded.
func TestC03_WhatStoresNothing(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		create(r, configMap("a"))
		ctx, call := r.guard.Begin(r.Context(), nil)
		dry := []string{metav1.DryRunAll}
		_, err := r.maps().Create(ctx, configMap("b"), metav1.CreateOptions{DryRun: dry})
		r.must(err)
		r.must(r.maps().Delete(ctx, "a", metav1.DeleteOptions{DryRun: dry}))
		_, err = r.maps().Get(ctx, "a", metav1.GetOptions{})
		r.must(err)
		review := &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/", Verb: "get"},
			},
		}
		_, err = r.typed.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		r.must(err)
		if writes, got := call.End(), r.guard.Stats(); len(writes) > 0 || got != (Stats{}) {
			r.Errorf("noted: %+v, counted: %+v", writes, got)
		}
	})
}

// TestC03_ScaleHasTheVersionOfItsParent reads the answer of the scale subresource.
func TestC03_ScaleHasTheVersionOfItsParent(t *testing.T) {
	inBubble(t, Options{}, func(r *rig) {
		deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "d"}}
		deployment.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		deployment.Spec.Template.Labels = deployment.Spec.Selector.MatchLabels
		deployment = create(r, deployment)
		ctx, call := r.guard.Begin(r.Context(), nil)
		scale := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "d"}}
		scale.Spec.Replicas = 3
		scaled, err := r.typed.AppsV1().Deployments("default").UpdateScale(ctx, "d", scale,
			metav1.UpdateOptions{})
		r.must(err)
		w := r.only(call)
		if w.UID != deployment.UID || w.Version != scaled.ResourceVersion || w.Unknown {
			r.Errorf("it is noted as %+v", w)
		}
	})
}
