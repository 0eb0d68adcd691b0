package stack

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/bench/internal/objects"
)

// PodView is a view of pods of a dozen fields.
type PodView struct {
	tidings.Meta `json:"metadata"`
	Spec         struct {
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

// DatabaseView is a view of six fields of a custom resource.
type DatabaseView struct {
	tidings.Meta `json:"metadata"`
	Spec         struct {
		Class    string `json:"class"`
		Replicas *int32 `json:"replicas"`
		Paused   bool   `json:"paused"`
	} `json:"spec"`
	Status struct {
		ObservedGeneration int64  `json:"observedGeneration"`
		Phase              string `json:"phase"`
		Endpoint           string `json:"endpoint"`
	} `json:"status"`
}

// View is Tidings by its own API, with views of pods and of custom resources. It has no informer
// of other objects, and none from memory.
func View() Stack { return Stack{Name: "view", FromServer: viewFromServer} }

func viewFromServer(t Target, o Options) (Informer, error) {
	if o.ListerWatcher {
		return nil, errors.New("stack: the native API has no ListerWatcher")
	}
	factory, err := tidings.NewFactory(&rest.Config{Host: t.URL, QPS: -1}, tidings.FactoryOptions{
		Scheme: objects.Scheme(), Transport: tidings.Transport{NoStreamedLists: t.Paged},
	})
	if err != nil {
		return nil, err
	}
	selection := tidings.Selection{Slots: o.Slots}
	switch t.Kind {
	case objects.Pods, objects.UnlikePods:
		informer, err := tidings.View[*PodView, *corev1.Pod](factory, selection)
		if err != nil {
			return nil, err
		}
		return newNative(informer, runFactory(factory, Eyes{}), o)
	case objects.Databases, objects.UnlikeDatabases:
		informer, err := tidings.View[*DatabaseView, *objects.Database[[0]byte]](factory, selection)
		if err != nil {
			return nil, err
		}
		return newNative(informer, runFactory(factory, Eyes{}), o)
	}
	return nil, errUnsupported(t.Kind)
}
