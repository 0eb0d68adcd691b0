package apisim_test

import (
	"bytes"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The state of one server is written, and another one goes on from it.
func ExampleServer_ReadSnapshot() {
	ctx := context.Background()
	first, _ := serverAndClient()
	defer first.Close()
	if _, err := first.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}); err != nil {
		fmt.Println(err)
		return
	}
	var file bytes.Buffer
	if _, err := first.Snapshot().WriteTo(&file); err != nil {
		fmt.Println(err)
		return
	}

	second, client := serverAndClient()
	defer second.Close()
	snapshot, err := second.ReadSnapshot(&file)
	if err != nil {
		fmt.Println(err)
		return
	}
	second.Rewind(snapshot)
	team, err := client.CoreV1().Namespaces().Get(ctx, "team", metav1.GetOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(team.Name, team.Status.Phase, team.ResourceVersion == snapshot.ResourceVersion())
	// Output: team Active true
}
