package dedup

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A corpus is a cluster's worth of objects, the same for the same seed: pods, deployments and
// custom resources of many workloads, as their controllers, the scheduler and the kubelet leave
// them. Values that repeat in a cluster repeat here, and unique ones are unique. The objects
// are in testdata, with placeholders such as $UID.
type corpus struct {
	random   *rand.Rand
	replicas int
	begin    time.Time
	version  int
}

func newCorpus(seed uint64, replicas int) *corpus {
	return &corpus{
		random:   rand.New(rand.NewPCG(seed, seed)),
		replicas: replicas,
		begin:    time.Unix(1_760_000_000, 0),
		version:  48_000_000,
	}
}

// of returns n random characters of an alphabet.
func (c *corpus) of(alphabet string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[c.random.IntN(len(alphabet))]
	}
	return string(b)
}

// text returns n random characters as names have them.
func (c *corpus) text(n int) string { return c.of("bcdfghjklmnpqrstvwxz2456789", n) }

func (c *corpus) hex(n int) string { return c.of("0123456789abcdef", n) }

func (c *corpus) uid() string {
	return fmt.Sprintf("%s-%s-4%s-a%s-%s", c.hex(8), c.hex(4), c.hex(3), c.hex(3), c.hex(12))
}

// moment returns a time up to a week after the beginning.
func (c *corpus) moment() time.Time {
	return c.begin.Add(time.Duration(c.random.IntN(7*24*3600)) * time.Second)
}

// A workload is the common part of the pods of one Deployment.
type workload struct {
	name, namespace string
	placeholders    []string // each with its value
}

func (c *corpus) workload(i int) *workload {
	name := fmt.Sprintf("%s-service-%03d", []string{"checkout", "catalog", "billing", "search", "gateway"}[i%5], i)
	namespace := fmt.Sprintf("team-%02d", i%30)
	return &workload{name, namespace, []string{
		"$WORKLOAD", name, "$NAMESPACE", namespace, "$HASH", c.text(10), "$OWNER", c.uid(),
		"$CHECKSUM", c.hex(64), "$DIGEST1", c.hex(64), "$DIGEST2", c.hex(64),
		"$MINOR", fmt.Sprint(i % 17), "$PATCH", fmt.Sprint(i % 5), "$TIMEOUT", fmt.Sprint(1 + i%3),
		"$REPLICAS", fmt.Sprint(c.replicas),
	}}
}

//go:embed testdata/pod.json
var podTemplate []byte

//go:embed testdata/deployment.json
var deploymentTemplate []byte

//go:embed testdata/widget.json
var widgetTemplate []byte

// fill returns an object of a workload in JSON without white space: FieldsV1 keeps it.
func (c *corpus) fill(template []byte, w *workload) []byte {
	created, node := c.moment(), fmt.Sprintf("%d-%d", c.random.IntN(4), c.random.IntN(250))
	started := created.Add(time.Duration(3+c.random.IntN(20)) * time.Second)
	c.version += 1 + c.random.IntN(40)
	text := strings.NewReplacer(append(w.placeholders,
		"$SUFFIX", c.text(5), "$UID", c.uid(), "$VERSION", fmt.Sprint(c.version),
		"$CREATED", created.UTC().Format(time.RFC3339), "$STARTED", started.UTC().Format(time.RFC3339),
		"$IP", fmt.Sprintf("10.%d.%d.%d", c.random.IntN(250), c.random.IntN(250), c.random.IntN(250)),
		"$HOST", "192.168."+strings.ReplaceAll(node, "-", "."), "$NODE", "node-192-168-"+node,
		"$TOKEN", "kube-api-access-"+c.text(5), "$CONTAINER1", c.hex(64), "$CONTAINER2", c.hex(64),
	)...).Replace(string(template))
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(text)); err != nil {
		panic(err)
	}
	return compact.Bytes()
}

func decodeJSON[T any](data []byte) *T {
	object := new(T)
	if err := json.Unmarshal(data, object); err != nil {
		panic(err)
	}
	return object
}

func (c *corpus) pod(w *workload) *corev1.Pod { return decodeJSON[corev1.Pod](c.fill(podTemplate, w)) }

func (c *corpus) deployment(w *workload) *appsv1.Deployment {
	return decodeJSON[appsv1.Deployment](c.fill(deploymentTemplate, w))
}

// widget returns a custom resource that runs a container of a workload, in JSON.
func (c *corpus) widget(w *workload) []byte { return c.fill(widgetTemplate, w) }

// configMap returns a config map of a workload; one in three holds the
// certificate that every namespace has.
func (c *corpus) configMap(w *workload, i int) *corev1.ConfigMap {
	m := &corev1.ConfigMap{ObjectMeta: c.pod(w).ObjectMeta}
	m.OwnerReferences, m.ManagedFields, m.Annotations = nil, nil, nil
	if i%3 == 0 {
		m.Data = map[string]string{"ca.crt": strings.Repeat("MIIDBTCCAe2gAwIBAgIIXxYdXrp2Pj0wDQYJKoZIhvcNAQELBQAwFTETMBEGA1UE\n", 16)}
		return m
	}
	m.Data = map[string]string{
		"config.yaml": "listen: :8080\nlog: json\ntoken: " + c.hex(40) + "\nbackends:\n" + strings.Repeat("- http://backend."+w.name+".svc:8080\n", 12),
	}
	return m
}

// scrambled returns a pod in which nothing is as in any other pod.
func (c *corpus) scrambled() *corev1.Pod {
	pod := c.pod(c.workload(c.random.IntN(1 << 20)))
	pod.ManagedFields[0].FieldsV1.SetRawString(`{"f:` + c.text(100) + `":{}}`)
	c.scramble(reflect.ValueOf(pod).Elem())
	return pod
}

// scramble replaces all strings, numbers and times in v that are set.
func (c *corpus) scramble(v reflect.Value) {
	switch at := v.Addr().Interface().(type) {
	case *metav1.Time:
		at.Time = c.moment()
		return
	case *resource.Quantity:
		*at = *resource.NewQuantity(c.random.Int64N(1<<40), resource.DecimalSI)
		return
	case *intstr.IntOrString:
		*at = intstr.FromInt32(c.random.Int32())
		return
	case *metav1.FieldsV1:
		return
	}
	if v.IsZero() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(c.text(max(5, v.Len())))
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(c.random.Int32()))
	case reflect.Pointer:
		c.scramble(v.Elem())
	case reflect.Struct:
		for _, field := range v.Fields() {
			c.scramble(field)
		}
	case reflect.Slice:
		for i := range v.Len() {
			c.scramble(v.Index(i))
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
		for _, old := range keys {
			key, value := reflect.New(old.Type()).Elem(), reflect.New(v.Type().Elem()).Elem()
			key.Set(old)
			value.Set(v.MapIndex(old))
			v.SetMapIndex(old, reflect.Value{})
			c.scramble(key)
			c.scramble(value)
			v.SetMapIndex(key, value)
		}
	}
}

// A typedWidget is the Go type of the custom resources.
type typedWidget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   widgetSpec   `json:"spec"`
	Status widgetStatus `json:"status"`
}

type widgetSpec struct {
	Ratio    float64           `json:"ratio,omitempty"`
	Replicas *int32            `json:"replicas,omitempty"`
	Selector map[string]string `json:"selector,omitempty"`
	Template corev1.PodSpec    `json:"template"`
	Weights  []float64         `json:"weights,omitempty"`
}

type widgetStatus struct {
	Address            string             `json:"address,omitempty"`
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Phase              string             `json:"phase,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// scrambledWidgetStruct returns a widget in which nothing is as in any other widget.
func (c *corpus) scrambledWidgetStruct() *typedWidget {
	w := decodeJSON[typedWidget](c.widget(c.workload(c.random.IntN(1 << 20))))
	w.ManagedFields[0].FieldsV1.SetRawString(`{"f:` + c.text(100) + `":{}}`)
	c.scramble(reflect.ValueOf(w).Elem())
	return w
}

// scrambledWidget returns a custom resource that has nothing in common with any other,
// except the names of its fields.
func (c *corpus) scrambledWidget() []byte {
	var scramble func(v any) any
	scramble = func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			for key := range v {
				v[key] = scramble(v[key])
			}
		case []any:
			for i := range v {
				v[i] = scramble(v[i])
			}
		case string:
			return c.text(max(len(v), 6))
		case float64:
			return c.random.Int64()
		}
		return v
	}
	object := *decodeJSON[map[string]any](c.widget(c.workload(c.random.IntN(1000))))
	scramble(object)
	object["apiVersion"], object["kind"] = "example.com/v1", "Widget"
	meta := object["metadata"].(map[string]any)
	meta["labels"] = map[string]any{"name": c.text(12), "id": fmt.Sprint(c.random.Uint64())}
	meta["managedFields"] = []any{map[string]any{"manager": c.text(9), "time": metav1.Now().Format("2006")}}
	return encodeJSON(object)
}

// population returns the encoded objects of n workloads, in the order in which a server lists
// them.
func (c *corpus) population(workloads int, object func(*workload) []byte) [][]byte {
	var all [][]byte
	for i := range workloads {
		w := c.workload(i)
		for range c.replicas {
			all = append(all, object(w))
		}
	}
	return all
}

func (c *corpus) pods(workloads int) [][]byte {
	return c.population(workloads, func(w *workload) []byte { return encode(c.pod(w)) })
}

func (c *corpus) widgets(workloads int) [][]byte { return c.population(workloads, c.widget) }

func encode(m interface{ Marshal() ([]byte, error) }) []byte {
	data, err := m.Marshal()
	if err != nil {
		panic(err)
	}
	return data
}

func encodeJSON(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
