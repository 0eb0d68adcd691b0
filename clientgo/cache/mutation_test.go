package cache_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	clientgo "k8s.io/client-go/tools/cache"
)

// mutator changes the object that it receives.
func mutator(obj any) { obj.(*corev1.Pod).Labels = map[string]string{"changed": "by a handler"} }

// TestMutationDetector: with client-go's variable in the environment, a handler that changes an
// object ends the process with a report of the change, whether the object came from the list,
// from the watch, or from a transform. Without the variable, nothing happens.
func TestMutationDetector(t *testing.T) {
	if part, ok := isChild(); ok {
		mutateInChild(t, part)
		return
	}
	for constructor := range constructors {
		for _, from := range []string{"list", "watch", "watch, transformed"} {
			t.Run(constructor+", "+from, func(t *testing.T) {
				part := constructor + ": " + from
				output, code := runChild(t, "TestMutationDetector", part, "KUBE_CACHE_MUTATION_DETECTOR=true")
				if code == 0 || !strings.Contains(output, "CACHE *v1.Pod[0] ALTERED") || !strings.Contains(output, "by a handler") {
					t.Errorf("the exit code is %d, and the output does not report the change:\n%s", code, output)
				}
				if output, code = runChild(t, "TestMutationDetector", part, "KUBE_CACHE_MUTATION_DETECTOR=false"); code != 0 {
					t.Errorf("without the variable, the exit code is %d:\n%s", code, output)
				}
			})
		}
	}
}

func mutateInChild(t *testing.T, part string) {
	constructor, from, _ := strings.Cut(part, ": ")
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		informer := constructors[constructor](source, &corev1.Pod{}, noOptions)
		if from == "watch, transformed" {
			must(t, informer.SetTransform(func(obj any) (any, error) { return obj.(*corev1.Pod).DeepCopy(), nil }))
		}
		addHandler(t, informer, clientgo.ResourceEventHandlerFuncs{AddFunc: mutator})
		if from == "list" {
			source.Add(newPod("a"))
		}
		runSynced(t, informer)
		if from != "list" {
			source.Add(newPod("a"))
		}
		time.Sleep(5 * time.Second)
	})
}
