// Command writer is a replica of a controller, for tests that stop its process. Its calls write
// ConfigMaps of the namespace default, in terms of the Lease "writer":
//
//	ConfigMap   a call
//	"gate"      waits for a line of the standard input, whatever happens to its term, and writes
//	others      writes again and again, until its term ends
//
// Writes have a resource version, so that the server refuses those that come after others'. The
// call of "gate" prints when it waits, and the result of its write.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller"
)

const workers = 10

func main() {
	kubeconfig := flag.String("kubeconfig", "", "path of the kubeconfig")
	name := flag.String("name", "", "name of the replica, with which its identities begin")
	duration := flag.Duration("duration", 0, "duration of the Lease; 0 is the default")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *name, *duration); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs the replica until ctx ends.
func run(ctx context.Context, kubeconfig, name string, duration time.Duration) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	factory, err := tidings.NewFactory(config, tidings.FactoryOptions{})
	if err != nil {
		return err
	}
	maps, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{Namespace: "default"})
	if err != nil {
		return err
	}
	guard, err := controller.NewGuard(config, controller.GuardOptions{RequirePreconditions: true})
	if err != nil {
		return err
	}
	w, err := newWriter(name, guard.Config())
	if err != nil {
		return err
	}
	c, err := controller.New(maps, controller.Options[*corev1.ConfigMap]{
		Name: "writer", Workers: workers, Guard: guard, StopGrace: time.Second,
	}, w.reconcile)
	if err != nil {
		return err
	}
	manager, err := controller.NewManager(factory, controller.ManagerOptions{
		Guard: guard, Election: &controller.Election{
			Namespace: "default", Name: "writer", Identity: name, Duration: duration,
		},
	})
	if err != nil {
		return err
	}
	if err := manager.AddController(c); err != nil {
		return err
	}
	return manager.Run(ctx)
}

// writer reconciles ConfigMaps.
type writer struct {
	name  string
	maps  typedcorev1.ConfigMapInterface
	lines chan struct{} // one for each line of the standard input
}

func newWriter(name string, config *rest.Config) (*writer, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	w := &writer{name, client.CoreV1().ConfigMaps("default"), make(chan struct{})}
	go func() {
		for input := bufio.NewScanner(os.Stdin); input.Scan(); {
			w.lines <- struct{}{}
		}
	}()
	return w, nil
}

func (w *writer) reconcile(
	ctx context.Context, r controller.Request[*corev1.ConfigMap],
) (controller.Result, error) {
	switch {
	case r.Gone:
		return controller.Result{}, nil
	case r.Name() != "gate":
		return controller.Result{}, w.writeAgain(ctx, r.Object)
	case r.Object.Data["by"] == w.name:
		return controller.Result{}, nil
	}
	fmt.Println("a call waits")
	<-w.lines
	_, err := w.write(context.WithoutCancel(ctx), r.Object, 0)
	fmt.Println("the write has ended with:", err)
	return controller.Result{}, err
}

// writeAgain writes a ConfigMap until ctx ends.
func (w *writer) writeAgain(ctx context.Context, m *corev1.ConfigMap) (err error) {
	for n := 0; err == nil; n++ {
		m, err = w.write(ctx, m, n)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (w *writer) write(
	ctx context.Context, m *corev1.ConfigMap, n int,
) (*corev1.ConfigMap, error) {
	m = m.DeepCopy()
	m.Data = map[string]string{"by": w.name, "n": strconv.Itoa(n)}
	return w.maps.Update(ctx, m, metav1.UpdateOptions{})
}
