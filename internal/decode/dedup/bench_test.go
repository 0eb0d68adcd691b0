package dedup

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"syscall"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cbor "k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apimachinery/pkg/types"
)

// cpu returns the CPU time of the process in nanoseconds, the garbage collector's included:
// other work on the machine moves it less than the clock.
func cpu() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return float64(u.Utime.Nano() + u.Stime.Nano())
}

// memory returns the bytes that live in the heap after a collection, and the allocations so far.
func memory() (live, mallocs uint64) {
	for range 6 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, m.Mallocs
}

// measured is the cost of decoding an object and keeping it.
type measured struct{ cpu, heap, mallocs float64 }

// keepAll decodes a population, each object once, and keeps it while it measures, as a cache
// does, so that the garbage collector has as much to do as it would have there.
func keepAll(all [][]byte, open func() (decode func(data []byte) any)) measured {
	kept := make([]any, len(all))
	liveBefore, mallocsBefore := memory()
	decode := open()
	spent := -cpu()
	for i, data := range all {
		kept[i] = decode(data)
	}
	spent += cpu()
	live, mallocs := memory()
	runtime.KeepAlive(kept)
	runtime.KeepAlive(decode)
	n := float64(len(all))
	return measured{spent / n, float64(live-liveBefore) / n, float64(mallocs-mallocsBefore) / n}
}

// benchEach measures with each kind of sharing. One operation is one population, the figures
// are for one object. Others share nothing.
func benchEach(b *testing.B, all [][]byte, open func(Sharing) func() func([]byte) any) {
	for i, name := range []string{"all", "strings", "nothing"} {
		b.Run(fmt.Sprintf("%d bytes, sharing %s", size(all), name), func(b *testing.B) {
			benchKept(b, all, open(Sharing(i)))
		})
	}
}

func benchKept(b *testing.B, all [][]byte, open func() func([]byte) any) {
	var total measured
	for b.Loop() {
		m := keepAll(all, open)
		total.cpu, total.heap = total.cpu+m.cpu, total.heap+m.heap
		total.mallocs += m.mallocs
	}
	n := float64(b.N)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(total.cpu/n, "cpu-ns/obj")
	b.ReportMetric(total.heap/n, "heap-B/obj")
	b.ReportMetric(total.mallocs/n, "allocs/obj")
}

func size(all [][]byte) int {
	total := 0
	for _, data := range all {
		total += len(data)
	}
	return total / len(all)
}

// decodeMessages decodes with a Decoder, or with the generated code if nothing is shared.
func decodeMessages(tb testing.TB, example Message, drop ...string) func(Sharing) func() func([]byte) any {
	return func(sharing Sharing) func() func([]byte) any {
		return func() func([]byte) any {
			d, err := NewDecoder(new(Table), example, sharing).Without(drop...)
			if err != nil {
				tb.Fatal(err)
			}
			return decodeWith(tb, d)
		}
	}
}

func decodeWith(tb testing.TB, d *Decoder) func([]byte) any {
	return func(data []byte) any {
		into := newObject(d.typ.Elem())
		if err := d.Unmarshal(data, into); err != nil {
			tb.Error(err)
		}
		return into
	}
}

// decodeMaps decodes with a MapDecoder, or with the API machinery if nothing is shared.
func decodeMaps(tb testing.TB, sharing Sharing) func() func([]byte) any {
	return func() func([]byte) any {
		return decodeMapsWith(tb, NewMapDecoder(new(Table), widgets, sharing, nil))
	}
}

func decodeMapsWith(tb testing.TB, d *MapDecoder) func([]byte) any {
	return func(data []byte) any {
		object, err := d.Unmarshal(data)
		if err != nil {
			tb.Error(err)
		}
		return object
	}
}

// shareDecodedPods decodes with the generated code, with a Sharer behind it.
func shareDecodedPods(tb testing.TB) func(Sharing) func() func([]byte) any {
	return func(sharing Sharing) func() func([]byte) any {
		return func() func([]byte) any {
			s := NewSharer(new(Table), SharerOptions{Sharing: sharing})
			return func(data []byte) any { return s.Share(decodedPod(tb, data)) }
		}
	}
}

// inRandomOrder returns all in another order.
func inRandomOrder(all [][]byte) [][]byte {
	shuffled := slices.Clone(all)
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(len(all), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	return shuffled
}

// BenchmarkDecode decodes protobuf, some of it without some of the fields.
func BenchmarkDecode(b *testing.B) {
	c := newCorpus(1, 40)
	pods, few := c.pods(500), newCorpus(2, 3).pods(3000)
	run := func(name string, all [][]byte, example Message, drop ...string) {
		b.Run(name, func(b *testing.B) { benchEach(b, all, decodeMessages(b, example, drop...)) })
	}
	run("pods", pods, &corev1.Pod{})
	run("pods without managed fields", pods, &corev1.Pod{}, "metadata.managedFields")
	run("pods in random order", inRandomOrder(pods), &corev1.Pod{})
	run("pods in threes in random order", inRandomOrder(few), &corev1.Pod{})
	var scrambled, deployments, configMaps [][]byte
	for i := range 8000 {
		scrambled = append(scrambled, encode(c.scrambled()))
		w := c.workload(i)
		deployments = append(deployments, encode(c.deployment(w)))
		configMaps = append(configMaps, encode(c.configMap(w, i)))
	}
	run("pods without repetition", scrambled, &corev1.Pod{})
	run("deployments", deployments, &appsv1.Deployment{})
	run("config maps", configMaps, &corev1.ConfigMap{})
}

// BenchmarkCompile makes a decoder and decodes its first object: each informer of a type does.
func BenchmarkCompile(b *testing.B) {
	pods := newCorpus(1, 1).pods(1)
	into := &corev1.Pod{}
	for b.Loop() {
		if err := NewDecoder(new(Table), into, ShareAll).Unmarshal(pods[0], into); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMaps decodes custom resources into maps.
func BenchmarkMaps(b *testing.B) {
	c := newCorpus(1, 100)
	run := func(name string, all [][]byte) {
		b.Run(name, func(b *testing.B) {
			benchEach(b, all, func(s Sharing) func() func([]byte) any { return decodeMaps(b, s) })
		})
	}
	all := c.widgets(200)
	run("widgets", all)
	run("widgets in random order", inRandomOrder(all))
	run("widgets each of its own", newCorpus(2, 1).widgets(8000))
	var scrambled [][]byte
	for range 8000 {
		scrambled = append(scrambled, c.scrambledWidget())
	}
	run("widgets without repetition", scrambled)
}

// decodeStructs decodes with a StructDecoder, or with the API machinery if nothing is shared.
func decodeStructs(tb testing.TB, typ reflect.Type) func(Sharing) func() func([]byte) any {
	return func(sharing Sharing) func() func([]byte) any {
		return func() func([]byte) any {
			return decodeStructsWith(tb, newStructDecoder(new(Table), typ, sharing))
		}
	}
}

func decodeStructsWith(tb testing.TB, d *StructDecoder) func([]byte) any {
	return func(data []byte) any {
		into := reflect.New(d.typ.Elem()).Interface()
		if _, err := d.Unmarshal(data, into); err != nil {
			tb.Error(err)
		}
		return into
	}
}

// BenchmarkStructs decodes pods and custom resources from JSON into Go structs.
func BenchmarkStructs(b *testing.B) {
	c := newCorpus(1, 40)
	run := func(name string, typ reflect.Type, all [][]byte) {
		b.Run(name, func(b *testing.B) { benchEach(b, all, decodeStructs(b, typ)) })
	}
	pod := reflect.TypeFor[corev1.Pod]()
	var scrambled, scrambledWidgets [][]byte
	for range 4000 {
		scrambled = append(scrambled, encodeJSON(c.scrambled()))
		scrambledWidgets = append(scrambledWidgets, encodeJSON(c.scrambledWidgetStruct()))
	}
	pods := c.population(100, func(w *workload) []byte { return encodeJSON(c.pod(w)) })
	run("pods", pod, pods)
	run("pods in random order", pod, inRandomOrder(pods))
	run("pods without repetition", pod, scrambled)
	widgets := c.widgets(100)
	run("widgets", reflect.TypeFor[typedWidget](), widgets)
	run("widgets in random order", reflect.TypeFor[typedWidget](), inRandomOrder(widgets))
	run("widgets without repetition", reflect.TypeFor[typedWidget](), scrambledWidgets)
}

// BenchmarkCBOR decodes the custom resources of BenchmarkMaps and BenchmarkStructs from CBOR, as
// the API machinery does: the decoders of this package read no CBOR.
func BenchmarkCBOR(b *testing.B) {
	var all [][]byte
	for _, data := range newCorpus(1, 40).widgets(100) {
		object, _ := decodeMaps(b, ShareNothing)()(data).(map[string]any)
		encoded, err := cbor.Marshal(object)
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, encoded)
	}
	for name, newObject := range map[string]func() any{
		"maps": func() any { return new(map[string]any) }, "structs": func() any { return new(typedWidget) },
	} {
		b.Run(fmt.Sprintf("%s, %d bytes", name, size(all)), func(b *testing.B) {
			benchKept(b, all, func() func([]byte) any {
				return func(data []byte) any {
					object := newObject()
					if err := cbor.Unmarshal(data, object); err != nil {
						b.Error(err)
					}
					return object
				}
			})
		})
	}
}

// BenchmarkShare shares pods that the generated code has decoded.
func BenchmarkShare(b *testing.B) {
	c := newCorpus(1, 40)
	run := func(name string, all [][]byte) {
		b.Run(name, func(b *testing.B) { benchEach(b, all, shareDecodedPods(b)) })
	}
	pods := c.pods(500)
	run("pods", pods)
	run("pods in random order", inRandomOrder(pods))
	var scrambled [][]byte
	for range 8000 {
		scrambled = append(scrambled, encode(c.scrambled()))
	}
	run("pods without repetition", scrambled)
}

// ViewMeta are the fields of metadata that every view has.
type ViewMeta struct {
	Name              string                  `json:"name"`
	Namespace         string                  `json:"namespace"`
	UID               types.UID               `json:"uid"`
	ResourceVersion   string                  `json:"resourceVersion"`
	Generation        int64                   `json:"generation"`
	DeletionTimestamp *metav1.Time            `json:"deletionTimestamp"`
	Labels            map[string]string       `json:"labels"`
	OwnerReferences   []metav1.OwnerReference `json:"ownerReferences"`
	Finalizers        []string                `json:"finalizers"`
}

type podView struct {
	ViewMeta `json:"metadata"`
	Spec     struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
	Status struct {
		Phase      corev1.PodPhase `json:"phase"`
		PodIP      string          `json:"podIP"`
		Conditions []struct {
			Type   corev1.PodConditionType `json:"type"`
			Status corev1.ConditionStatus  `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

type widgetView struct {
	ViewMeta `json:"metadata"`
	Spec     struct {
		Replicas *int32 `json:"replicas"`
	} `json:"spec"`
	Status struct {
		Phase              string `json:"phase"`
		ObservedGeneration int64  `json:"observedGeneration"`
		Conditions         []struct {
			Type   string                 `json:"type"`
			Status metav1.ConditionStatus `json:"status"`
		} `json:"conditions"`
	} `json:"status"`
}

// BenchmarkViews decodes pods and custom resources as views of a dozen fields.
func BenchmarkViews(b *testing.B) {
	pods, few := newCorpus(1, 40).pods(500), newCorpus(2, 3).pods(3000)
	inProtobuf := func(sharing Sharing) func() func([]byte) any {
		return func() func([]byte) any {
			d, err := NewDecoder(new(Table), &corev1.Pod{}, sharing).View(&podView{})
			if err != nil {
				b.Fatal(err)
			}
			return func(data []byte) any {
				into := new(podView)
				if err := d.Unmarshal(data, into); err != nil {
					b.Error(err)
				}
				return into
			}
		}
	}
	b.Run("pods", func(b *testing.B) { benchEach(b, pods, inProtobuf) })
	b.Run("pods in threes in random order", func(b *testing.B) { benchEach(b, inRandomOrder(few), inProtobuf) })
	widgets := newCorpus(1, 40).widgets(100)
	b.Run("widgets", func(b *testing.B) {
		benchEach(b, widgets, func(sharing Sharing) func() func([]byte) any {
			return func() func([]byte) any {
				d, err := newStructDecoder(new(Table), reflect.TypeFor[widgetView](), sharing).Unchecked()
				if err != nil {
					b.Fatal(err)
				}
				d.kind = kindOf{"example.com/v1", "Widget"}
				return decodeStructsWith(b, d)
			}
		})
	})
}
