package guard

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

const merge = `{"metadata":{"labels":{"patched":"yes"}}}`

// steps are the writes of a client to the config map "a", by their verbs. Each is one request.
type steps map[string]func(ctx context.Context) error

var stepOrder = []string{"create", "update", "patch", "apply", "mark", "finish", "delete", "collection"}

// mapClient is a client of config maps, of any kind.
type mapClient[T any] interface {
	Patch(
		ctx context.Context, name string, kind types.PatchType, patch []byte,
		o metav1.PatchOptions, subresources ...string,
	) (T, error)
	DeleteCollection(ctx context.Context, o metav1.DeleteOptions, of metav1.ListOptions) error
}

// commonSteps are the writes that clients of all kinds have. The methods with which they delete
// have different parameters.
func commonSteps[T any](maps mapClient[T], remove func(context.Context) error) steps {
	patch := func(body string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := maps.Patch(ctx, "a", types.MergePatchType, []byte(body), metav1.PatchOptions{})
			return err
		}
	}
	return steps{
		"patch": patch(merge), "finish": patch(`{"metadata":{"finalizers":null}}`),
		"mark": remove, "delete": remove,
		"collection": func(ctx context.Context) error {
			return maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		},
	}
}

func typedSteps(r *rig, config *rest.Config) steps {
	client, err := kubernetes.NewForConfig(config)
	r.must(err)
	maps := client.CoreV1().ConfigMaps("default")
	all := commonSteps(maps, func(ctx context.Context) error {
		return maps.Delete(ctx, "a", metav1.DeleteOptions{})
	})
	all["create"] = func(ctx context.Context) error {
		_, err := maps.Create(ctx, configMap("a"), metav1.CreateOptions{})
		return err
	}
	all["update"] = func(ctx context.Context) error {
		obj := r.stored(configMaps, "a").(*corev1.ConfigMap)
		obj.Data = map[string]string{"key": "value"}
		_, err := maps.Update(ctx, obj, metav1.UpdateOptions{})
		return err
	}
	all["apply"] = func(ctx context.Context) error {
		obj := applycore.ConfigMap("a", "default").WithData(map[string]string{"applied": "yes"})
		_, err := maps.Apply(ctx, obj, metav1.ApplyOptions{FieldManager: "test"})
		return err
	}
	return all
}

func dynamicSteps(r *rig, config *rest.Config) steps {
	client, err := dynamic.NewForConfig(config)
	r.must(err)
	maps := client.Resource(configMaps).Namespace("default")
	given := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"},
		}}
	}
	all := commonSteps(maps, func(ctx context.Context) error {
		return maps.Delete(ctx, "a", metav1.DeleteOptions{})
	})
	all["create"] = func(ctx context.Context) error {
		_, err := maps.Create(ctx, given(), metav1.CreateOptions{})
		return err
	}
	all["update"] = func(ctx context.Context) error {
		obj := given()
		stored := r.stored(configMaps, "a")
		obj.SetResourceVersion(stored.GetResourceVersion())
		obj.SetFinalizers(stored.GetFinalizers())
		obj.SetLabels(map[string]string{"updated": "yes"})
		_, err := maps.Update(ctx, obj, metav1.UpdateOptions{})
		return err
	}
	return all
}

func metadataSteps(r *rig, config *rest.Config) steps {
	client, err := metadata.NewForConfig(config)
	r.must(err)
	maps := client.Resource(configMaps).Namespace("default")
	return commonSteps(maps, func(ctx context.Context) error {
		return maps.Delete(ctx, "a", metav1.DeleteOptions{})
	})
}

// TestC03_EachClientIsNoted makes each client write in each encoding that it supports, and
// compares the recorded writes with the state of the server.
func TestC03_EachClientIsNoted(t *testing.T) {
	for _, c := range []struct {
		name, contentType string
		cbor              bool
		steps             func(*rig, *rest.Config) steps
	}{
		{"typed JSON", runtime.ContentTypeJSON, false, typedSteps},
		{"typed protobuf", runtime.ContentTypeProtobuf, false, typedSteps},
		{"typed CBOR", runtime.ContentTypeCBOR, true, typedSteps},
		{"dynamic JSON", "", false, dynamicSteps},
		{"dynamic CBOR", "", true, dynamicSteps},
		{"metadata protobuf", "", false, metadataSteps},
		{"metadata JSON", runtime.ContentTypeJSON, false, metadataSteps},
	} {
		t.Run(c.name, func(t *testing.T) {
			featurestesting.SetFeatureDuringTest(t, features.ClientsAllowCBOR, c.cbor)
			featurestesting.SetFeatureDuringTest(t, features.ClientsPreferCBOR, c.cbor)
			inBubble(t, Options{}, func(r *rig) {
				config := r.guard.Config()
				config.ContentType, config.AcceptContentTypes = c.contentType, c.contentType
				if c.contentType == runtime.ContentTypeJSON { // whatever the client prefers
					config.Wrap(acceptsJSON)
				}
				checkSteps(r, c.steps(r, config))
			})
		})
	}
}

// acceptsJSON takes protobuf out of the media types that a client accepts.
func acceptsJSON(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		req = req.Clone(req.Context())
		accept := req.Header.Get("Accept")
		req.Header.Set("Accept", strings.ReplaceAll(accept, runtime.ContentTypeProtobuf, "none/none"))
		resp, err := next.RoundTrip(req)
		if err == nil && !strings.HasSuffix(resp.Header.Get("Content-Type"), "json") {
			return nil, fmt.Errorf("the answer is in %s", resp.Header.Get("Content-Type"))
		}
		return resp, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func checkSteps(r *rig, all steps) {
	for _, name := range stepOrder {
		step := all[name]
		if step == nil {
			continue
		}
		var before metav1.Object
		switch name {
		case "create", "collection":
		case "mark", "finish":
			before = finalized(r, name == "finish")
		default:
			before = ensured(r)
		}
		ctx, call := r.guard.Begin(r.Context(), nil)
		r.must(step(ctx))
		w := r.only(call)
		want := Write{
			Resource: configMaps.GroupResource(), Namespace: "default", Name: "a", Sent: w.Sent,
		}
		switch name {
		case "finish", "delete":
			want.UID, want.Gone = before.GetUID(), true
			if name == "finish" { // the server answers with the version before
				want.Version = before.GetResourceVersion()
			}
		case "collection":
			want.Name, want.Unknown, want.NotBefore = "", true, w.Sent
		default:
			stored := r.stored(configMaps, "a")
			want.UID, want.Version = stored.GetUID(), stored.GetResourceVersion()
			if before != nil && want.Version == before.GetResourceVersion() {
				r.Errorf("%s: it has changed nothing", name)
			}
		}
		if w != want {
			r.Errorf("%s: it is noted as\n%+v, want\n%+v", name, w, want)
		}
	}
}

// ensured returns the config map "a", and creates it first where it is missing.
func ensured(r *rig) metav1.Object {
	if _, err := r.server.Get(r.Context(), configMaps, "default", "a"); err != nil {
		create(r, configMap("a"))
	}
	return r.stored(configMaps, "a")
}

// finalized returns a config map "a" with a finalizer, in deletion or not.
func finalized(r *rig, deleted bool) metav1.Object {
	obj := ensured(r).(*corev1.ConfigMap)
	if obj.DeletionTimestamp == nil {
		obj.Finalizers = []string{"example.com/wait"}
		_, err := r.server.Update(r.Context(), obj)
		r.must(err)
	}
	if deleted && obj.DeletionTimestamp == nil {
		_, err := r.server.Delete(r.Context(), configMaps, "default", "a")
		r.must(err)
	}
	return r.stored(configMaps, "a")
}
