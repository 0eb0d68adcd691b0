package source

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/internal/dedup"
)

// heavy returns a pod that has fields to be left out, and lighter without them.
func heavy(name, version string) *corev1.Pod {
	p := replica(name, version)
	p.Annotations = map[string]string{"a": "b"}
	p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "B"}}
	p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: "Memory"}}}}
	return p
}

var heavyDrop = []string{"metadata.annotations", "spec.containers.env", "spec.volumes.emptyDir.medium"}

func lighter(p *corev1.Pod) *corev1.Pod {
	p.Annotations, p.Spec.Containers[0].Env = nil, nil
	p.Spec.Volumes[0].EmptyDir.Medium = ""
	return p
}

func inJSON(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestDropFromEveryEncoding lists and watches typed pods in JSON and in protobuf. The end
// of the initial events is known by an annotation, which is left out of the pods alone.
func TestDropFromEveryEncoding(t *testing.T) {
	end := pod("", "9")
	end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	kind := func(p *corev1.Pod) *corev1.Pod {
		p.APIVersion, p.Kind = "v1", "Pod"
		return p
	}
	asJSON := func(event string, p *corev1.Pod) string {
		return inJSON(t, map[string]any{"type": event, "object": kind(p)})
	}
	asProtobuf := func(event string, p *corev1.Pod) string { return watchFrame(t, event, envelopeOf(t, "v1", "Pod", p)) }
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []corev1.Pod{*heavy("listed", "3")}}
	named := list.DeepCopy()
	named.APIVersion, named.Kind = "v1", "PodList"
	for name, as := range map[string]struct {
		mediaType, list string
		event           func(string, *corev1.Pod) string
		stats           DecodingStats
	}{
		"json":     {jsonType, inJSON(t, named), asJSON, DecodingStats{JSON: 4, After: dedup.SharerStats{Shared: 4}}},
		"protobuf": {protobufType, string(envelopeOf(t, "v1", "PodList", list)), asProtobuf, DecodingStats{Shared: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			events := as.event("ADDED", heavy("watched", "4")) + as.event("DELETED", heavy("listed", "5")) + as.event("BOOKMARK", end)
			client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("watch") == "true" {
					answerWith(200, as.mediaType+";stream=watch", events)(w, r)
				} else {
					answerWith(200, as.mediaType, as.list)(w, r)
				}
			})
			s := NewTyped(client, pods, newPod, RESTOptions{Drop: heavyDrop})
			page, err := s.List(t.Context(), ListOptions{})
			if err != nil || len(page.Items) != 1 || !reflect.DeepEqual(page.Items[0].Object, lighter(heavy("listed", "3"))) {
				t.Fatalf("listed %+v, %v", page, err)
			}
			stream, err := s.Watch(t.Context(), WatchOptions{SendInitialEvents: true})
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Close()
			var got []Event[*corev1.Pod]
			for {
				batch, err := stream.Next()
				if err != nil {
					break
				}
				got = append(got, batch...)
			}
			if len(got) != 3 || got[0].Type != Added || got[1].Type != Deleted || got[2].Type != InitialEventsEnd || got[2].Version != "9" {
				t.Fatalf("watched %+v", got)
			}
			if !reflect.DeepEqual(got[0].Object, lighter(heavy("watched", "4"))) || !reflect.DeepEqual(got[1].Object, lighter(heavy("listed", "5"))) {
				t.Errorf("watched %+v and %+v", got[0].Object, got[1].Object)
			}
			if stats := s.DecodingStats(); stats != as.stats {
				t.Errorf("counted %+v, want %+v", stats, as.stats)
			}
		})
	}
}

// TestDropThatIsRefused has every request fail that would read objects of which nobody
// knows what to leave out.
func TestDropThatIsRefused(t *testing.T) {
	asked := 0
	client := serve(t, func(http.ResponseWriter, *http.Request) { asked++ })
	for name, s := range map[string]interface {
		check(t *testing.T) error
	}{
		`"spec.container.env"`: refused[*corev1.Pod]{NewTyped(client, pods, newPod, RESTOptions{Drop: []string{"spec.container.env"}})},
		`"spec"`:               refused[*metav1.PartialObjectMetadata]{NewMetadata(client, pods, RESTOptions{Drop: []string{"spec"}})},
		`"metadata.name"`:      refused[*corev1.Pod]{NewTyped(client, pods, newPod, RESTOptions{Drop: []string{"metadata.name"}})},
	} {
		if err := s.check(t); err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "RESTOptions.Drop") {
			t.Errorf("%s: %v", name, err)
		}
	}
	dynamic := NewDynamic(client, pods, RESTOptions{Drop: []string{"metadata.label"}})
	if _, err := dynamic.List(t.Context(), ListOptions{}); err == nil || !strings.Contains(err.Error(), `"metadata.label"`) {
		t.Errorf("got %v", err)
	}
	if asked != 0 {
		t.Errorf("the server was asked %d times", asked)
	}
}

type refused[T Object] struct{ *REST[T] }

// check returns the error of a list, if a watch has the same.
func (r refused[T]) check(t *testing.T) error {
	t.Helper()
	_, err := r.List(t.Context(), ListOptions{})
	_, watchErr := r.Watch(t.Context(), WatchOptions{})
	if err == nil || watchErr == nil || strings.TrimPrefix(err.Error(), "list") != strings.TrimPrefix(watchErr.Error(), "watch") {
		t.Errorf("list: %v, watch: %v", err, watchErr)
	}
	return err
}
