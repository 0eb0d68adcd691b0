package dedup_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/internal/dedup"
)

func ExampleDecoder() {
	var table dedup.Table // one for all decoders
	decoder := dedup.NewDecoder(&table, &corev1.Pod{}, dedup.ShareAll)

	var pods []*corev1.Pod
	for _, name := range []string{"web-1", "web-2", "web-3"} {
		data, err := (&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "example.com/app:v1"}}},
		}).Marshal()
		if err != nil {
			fmt.Println(err)
			return
		}
		pod := &corev1.Pod{}
		if err := decoder.Unmarshal(data, pod); err != nil {
			fmt.Println(err)
			return
		}
		pods = append(pods, pod)
	}
	fmt.Println(pods[1].Name, pods[2].Name)
	fmt.Println(&pods[1].Spec.Containers[0] == &pods[2].Spec.Containers[0])
	// Output:
	// web-2 web-3
	// true
}
