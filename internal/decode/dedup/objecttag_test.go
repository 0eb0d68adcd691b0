package dedup

import (
	"bytes"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// taggedPod is a pod with strings of its own, in a state.
func taggedPod(uid string, state int, node string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "pod-" + uid, Namespace: "namespace-of-" + uid, UID: types.UID(uid), ResourceVersion: fmt.Sprint(1_000_000 + state)},
		Spec:       corev1.PodSpec{NodeName: node, Hostname: "host-of-" + uid},
		Status:     corev1.PodStatus{Message: "the last words of " + uid, PodIP: "10.0.0." + uid},
	}
}

// TestOwnStrings shows each decoder many states of one object, which must leave nothing
// in the table, and then a state of another one, with which it has a string in common.
func TestOwnStrings(t *testing.T) {
	for name, see := range map[string]func(t *testing.T, table *Table, pod *corev1.Pod){
		"Decoder": func(t *testing.T, table *Table, pod *corev1.Pod) {
			if err := NewDecoder(table, pod, ShareAll).Unmarshal(encode(pod), &corev1.Pod{}); err != nil {
				t.Fatal(err)
			}
		},
		"MapDecoder": func(t *testing.T, table *Table, pod *corev1.Pod) {
			if _, err := NewMapDecoder(table, corev1.SchemeGroupVersion.WithKind("Pod"), ShareAll, nil).Unmarshal(encodeJSON(pod)); err != nil {
				t.Fatal(err)
			}
		},
		"Sharer of structs": func(_ *testing.T, table *Table, pod *corev1.Pod) {
			NewSharer(table, SharerOptions{}).Share(pod)
		},
		"Sharer of maps": func(t *testing.T, table *Table, pod *corev1.Pod) {
			NewSharer(table, SharerOptions{}).Share(decodedWidget(t, encodeJSON(pod)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			table := new(Table)
			for state := range 4 { // after some more of them, a Sharer would look at few
				see(t, table, taggedPod("1", state, "the-node-of-both"))
			}
			if s := table.Stats(); s.Strings > 0 {
				t.Errorf("after 4 states of one object: %+v", s)
			}
			before := table.Stats().Strings
			for _, uid := range []string{"2", "3", "4"} {
				see(t, table, taggedPod(uid, 0, "the-node-of-both"))
			}
			if s := table.Stats(); s.Strings == before {
				t.Errorf("after an object that has a string in common with it: %+v", s)
			}
		})
	}
}

func TestTagIn(t *testing.T) {
	pod := taggedPod("0123-4567", 1, "node")
	data := encode(pod)
	want := tagOf([]byte(pod.UID))
	if got := tagIn(data); got != want || got == noTag {
		t.Errorf("tag %d, want %d, which is not %d", got, want, noTag)
	}
	pod.UID = ""
	for _, other := range [][]byte{nil, {0x0a}, {0x0a, 0x05}, {0x0a, 2, 0x2a, 9}, {0x12, 0}, encode(pod), bytes.Repeat([]byte{0xff}, 20)} {
		if got := tagIn(other); got != noTag {
			t.Errorf("%x: tag %d, want none", other, got)
		}
	}
	for n := range data {
		tagIn(data[:n]) // does not panic
	}
}
