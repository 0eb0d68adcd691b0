package flight_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/flight"
)

const (
	benchPods    = 2_000
	benchUpdates = 100_000
)

// benchPod has about 1.6 KB in protobuf.
func benchPod(i int) *corev1.Pod {
	p := &corev1.Pod{}
	p.APIVersion, p.Kind = "v1", "Pod"
	p.Namespace, p.Name, p.UID = "default", fmt.Sprint("pod-", i), types.UID(fmt.Sprint("uid-", i))
	p.ResourceVersion = firstVersion
	p.Labels = map[string]string{"app": "web", "pod-template-hash": "5f7d8c9b4"}
	p.Spec.NodeName = fmt.Sprint("node-", i%100)
	for c := range 2 {
		const image = "registry.example.com/team/app:v1"
		container := corev1.Container{Name: fmt.Sprint("c-", c), Image: image}
		for e := range 8 {
			container.Env = append(container.Env, corev1.EnvVar{
				Name: fmt.Sprint("VARIABLE_", e), Value: fmt.Sprint("https://service-", e, ".example.com"),
			})
		}
		p.Spec.Containers = append(p.Spec.Containers, container)
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, ContainerID: fmt.Sprintf("containerd://%064d", i),
		})
	}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	return p
}

// firstVersion has as many digits as all others, so that a frame is changed in place.
const firstVersion = "1000000"

// envelope returns an object in Kubernetes' protobuf encoding.
func envelope(b *testing.B, kind string, message interface{ Marshal() ([]byte, error) }) []byte {
	raw, err := message.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: raw}
	encoded, err := unknown.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	return append([]byte("k8s\x00"), encoded...)
}

// benchServer answers with a list of pods and a watch of benchUpdates updates of them, whose
// frames come one at a time.
type benchServer struct {
	list     []byte
	frames   [][]byte
	versions []int // where the version is in each frame
}

func newBenchServer(b *testing.B) *benchServer {
	s := &benchServer{}
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: firstVersion}}
	for i := range benchPods {
		pod := benchPod(i)
		list.Items = append(list.Items, *pod)
		event := metav1.WatchEvent{Type: "MODIFIED"}
		event.Object.Raw = envelope(b, "Pod", pod)
		encoded, err := event.Marshal()
		if err != nil {
			b.Fatal(err)
		}
		frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(encoded))), encoded...)
		s.frames = append(s.frames, frame)
		s.versions = append(s.versions, bytes.Index(frame, []byte(firstVersion)))
	}
	s.list = envelope(b, "PodList", list)
	return s
}

func (s *benchServer) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Request: r}
	answer.Header.Set("Content-Type", "application/vnd.kubernetes.protobuf")
	answer.Body = io.NopCloser(bytes.NewReader(s.list))
	if strings.Contains(r.URL.RawQuery, "watch=true") {
		frames := make([][]byte, len(s.frames))
		for i := range frames {
			frames[i] = slices.Clone(s.frames[i])
		}
		answer.Body = &benchWatch{ctx: r.Context(), server: s, frames: frames}
	}
	return answer, nil
}

type benchWatch struct {
	ctx    context.Context
	server *benchServer
	frames [][]byte
	sent   int
	rest   []byte
}

func (w *benchWatch) Read(p []byte) (int, error) {
	if len(w.rest) == 0 {
		if w.sent == benchUpdates {
			<-w.ctx.Done()
			return 0, w.ctx.Err()
		}
		w.sent++
		// In an order in which the same pod does not come again soon.
		i := w.sent * 7919 % benchPods
		w.rest = w.frames[i]
		copy(w.rest[w.server.versions[i]:], fmt.Sprint(1_000_000+w.sent))
	}
	n := copy(p, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

func (w *benchWatch) Close() error { return nil }

// BenchmarkUpdates applies 100,000 updates of 2,000 pods, which come one at a time, with a
// handler, and reports the processor time of the whole process.
func BenchmarkUpdates(b *testing.B) {
	server := newBenchServer(b)
	for _, name := range []string{"without", "with"} {
		b.Run(name, func(b *testing.B) {
			var used time.Duration
			for b.Loop() {
				var o tidings.FactoryOptions
				o.HTTPClient, o.Logger = &http.Client{Transport: server}, quiet
				o.Transport.NoStreamedLists = true
				if name == "with" {
					recorder, err := flight.New(flight.Options{})
					if err != nil {
						b.Fatal(err)
					}
					o.Transport.Recorder = recorder
				}
				used += runUpdates(b, o)
			}
			b.ReportMetric(float64(used)/float64(b.N)/benchUpdates, "cpu-ns/update")
		})
	}
}

func runUpdates(b *testing.B, o tidings.FactoryOptions) time.Duration {
	factory, err := tidings.NewFactory(&rest.Config{Host: "http://bench"}, o)
	if err != nil {
		b.Fatal(err)
	}
	pods, err := tidings.For[*corev1.Pod](factory, tidings.Selection{})
	if err != nil {
		b.Fatal(err)
	}
	last, done := fmt.Sprint(1_000_000+benchUpdates), make(chan struct{})
	_, err = pods.AddHandler(tidings.Funcs[*corev1.Pod]{
		OnUpdate: func(_, p *corev1.Pod) {
			if p.ResourceVersion == last {
				close(done)
			}
		},
	}, tidings.HandlerOptions{})
	if err != nil {
		b.Fatal(err)
	}
	before := processorTime(b)
	if err := factory.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	<-done
	used := processorTime(b) - before
	if err := factory.Shutdown(context.Background()); err != nil {
		b.Fatal(err)
	}
	return used
}
