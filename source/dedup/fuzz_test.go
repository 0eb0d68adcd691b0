package dedup

import (
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fuzz compares a decoder with the generated code. The table lives as long as the
// process, so that one input meets what earlier ones have left there.
func fuzz(f *testing.F, t reflect.Type, seeds ...[]byte) {
	filler := newFiller(1)
	for range 20 {
		seeds = append(seeds, randomObject(f, filler, t))
	}
	for _, data := range seeds {
		f.Add(data)
	}
	table := new(Table)
	d := NewDecoder(table, newObject(t), ShareAll)
	own := NewDecoder(table, newObject(t), ShareStrings)
	f.Fuzz(func(t *testing.T, data []byte) {
		for range 3 {
			same(t, d, data)
			same(t, own, data)
			keen(d)
			keen(own)
		}
		if s := table.Stats(); s.Bytes > s.Budget {
			t.Fatalf("the table has %d bytes, its budget is %d", s.Bytes, s.Budget)
		}
	})
}

func FuzzPod(f *testing.F) {
	c := newCorpus(1, 1)
	fuzz(f, reflect.TypeFor[corev1.Pod](), encode(c.pod(c.workload(1))), encode(podWithQuantities()))
}

func FuzzDeployment(f *testing.F) {
	c := newCorpus(1, 3)
	fuzz(f, reflect.TypeFor[appsv1.Deployment](), encode(c.deployment(c.workload(1))))
}

func FuzzConfigMap(f *testing.F) {
	c := newCorpus(1, 3)
	fuzz(f, reflect.TypeFor[corev1.ConfigMap](), encode(c.configMap(c.workload(1), 0)), encode(c.configMap(c.workload(1), 1)))
}

func FuzzMetadata(f *testing.F) {
	fuzz(f, reflect.TypeFor[metav1.PartialObjectMetadata]())
}

// FuzzEveryType decodes as any type of client-go's scheme: the number says which.
func FuzzEveryType(f *testing.F) {
	types := everyType(f)
	filler := newFiller(2)
	table := new(Table)
	decoders := make([]*Decoder, len(types))
	for i, t := range types {
		decoders[i] = NewDecoder(table, newObject(t), ShareAll)
		f.Add(uint16(i), randomObject(f, filler, t))
	}
	f.Fuzz(func(t *testing.T, number uint16, data []byte) {
		d := decoders[int(number)%len(decoders)]
		for range 3 {
			same(t, d, data)
			keen(d)
		}
	})
}
