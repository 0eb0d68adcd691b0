package tidings_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
)

// weather returns a config map with the weather of a city.
func weather(city, now string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: city, Labels: map[string]string{"kind": "weather"},
		},
		Data: map[string]string{"now": now},
	}
}

// A handler that is behind receives the difference between the state that it saw last and the
// present one.
func ExampleHandlerOptions_conflateState() {
	server, ctx := cluster(), context.Background()
	defer server.Close()
	factory := factoryFor(server)
	defer factory.Shutdown(ctx)
	_, err := server.Create(ctx, weather("oslo", "sun"))
	check(err)
	cities, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{Labels: "kind=weather"})
	check(err)

	called, proceed := make(chan struct{}, 3), make(chan struct{})
	slow := func(e tidings.Event[*corev1.ConfigMap]) {
		fmt.Println(e.Type, e.Key(), e.Object().Data["now"])
		called <- struct{}{}
		<-proceed
	}
	_, err = cities.AddHandler(tidings.HandlerFunc[*corev1.ConfigMap](slow),
		tidings.HandlerOptions{Name: "slow", Policy: tidings.PolicyConflateState, Limit: 1})
	check(err)
	startAndSync(factory)
	<-called
	for _, now := range []string{"clouds", "rain", "snow"} {
		updated, err := server.Update(ctx, weather("oslo", now))
		check(err)
		check(cities.WaitFor(ctx, updated.(*corev1.ConfigMap).ResourceVersion))
	}
	created, err := server.Create(ctx, weather("rome", "sun"))
	check(err)
	check(cities.WaitFor(ctx, created.(*corev1.ConfigMap).ResourceVersion))
	close(proceed)
	<-called
	<-called
	// Output:
	// Added default/oslo sun
	// Updated default/oslo snow
	// Added default/rome sun
}

// A resync repeats the cached objects.
func ExampleHandlerOptions_resync() {
	server := cluster()
	defer server.Close()
	factory := factoryFor(server)
	defer factory.Shutdown(context.Background())
	colours, err := tidings.For[*corev1.ConfigMap](factory,
		tidings.Selection{Namespace: "default", Fields: "metadata.name=blue"})
	check(err)

	var once sync.Once
	resynced := make(chan string)
	_, err = colours.AddHandler(tidings.Funcs[*corev1.ConfigMap]{
		OnUpdate: func(old, new *corev1.ConfigMap) {
			once.Do(func() { resynced <- fmt.Sprint(new.Name, ", the same object: ", old == new) })
		},
	}, tidings.HandlerOptions{Resync: 10 * time.Millisecond})
	check(err)
	startAndSync(factory)
	fmt.Println(<-resynced)
	// Output: blue, the same object: true
}

// Health describes each informer of a factory.
func ExampleFactory_Health() {
	server := cluster()
	defer server.Close()
	factory := factoryFor(server)
	defer factory.Shutdown(context.Background())

	_, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{Labels: "kind=colour"})
	check(err)
	for _, h := range factory.Health() {
		fmt.Println(h.Name, "is", h.State)
	}
	startAndSync(factory)
	for _, h := range factory.Health() {
		fmt.Println(h.Name, "holds", h.Objects, "objects, synced:", h.Synced)
	}
	// Output:
	// configmaps.v1 [labels kind=colour] is Pending
	// configmaps.v1 [labels kind=colour] holds 2 objects, synced: true
}

// The watch ends with the last handle of an informer.
func ExampleInformer_Release() {
	server := cluster()
	defer server.Close()
	factory := factoryFor(server)
	defer factory.Shutdown(context.Background())

	colours := tidings.Selection{Labels: "kind=colour"}
	mine, err := tidings.For[*corev1.ConfigMap](factory, colours)
	check(err)
	yours, err := tidings.For[*corev1.ConfigMap](factory, colours) // the same informer
	check(err)
	startAndSync(factory)

	mine.Release()
	fmt.Println("informers:", len(factory.Health()), "objects:", yours.Lister().Len())
	yours.Release()
	fmt.Println("informers:", len(factory.Health()))
	// Output:
	// informers: 1 objects: 2
	// informers: 0
}
