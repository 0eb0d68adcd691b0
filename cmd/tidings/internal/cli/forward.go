package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// forwarder forwards a free port of this machine to a port of a pod, as `kubectl port-forward`
// does. It chooses a pod at its first use, and again when the connection to that pod has ended. Its
// goroutine ends with ctx.
type forwarder struct {
	ctx       context.Context
	cluster   *cluster
	of        query
	namespace string
	port      int
	path      string

	mu      sync.Mutex    // guards the rest
	address *url.URL      // address of the present forwarding
	ended   chan struct{} // closed at the end of the present forwarding; nil without one
}

// open returns the address of the pages on this machine.
func (f *forwarder) open(ctx context.Context) (*url.URL, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended != nil {
		select {
		case <-f.ended:
		default:
			return f.address, nil
		}
	}
	pods, err := corev1client.NewForConfig(f.cluster.config)
	if err != nil {
		return nil, err
	}
	pod, err := f.pod(ctx, pods)
	if err != nil {
		return nil, err
	}
	dialer, err := dialerOf(f.cluster, pods.RESTClient().Post().Resource("pods").
		Namespace(f.namespace).Name(pod).SubResource("portforward").URL())
	if err != nil {
		return nil, err
	}
	err = f.forwardLocked(pod, dialer)
	return f.address, err
}

func (f *forwarder) forwardLocked(pod string, dialer httpstream.Dialer) error {
	ready, ended, failed := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	forwarding, err := portforward.NewOnAddressesForStreamingWithContext(f.ctx, dialer,
		[]string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", f.port)}, ready, nil, nil)
	if err != nil {
		return err
	}
	go func() {
		defer close(ended)
		failed <- forwarding.ForwardPorts()
	}()
	select {
	case err := <-failed:
		return fmt.Errorf("cannot forward a port to pod %s/%s: %w: check that it runs, and that the "+
			"credentials have the verb create on pods/portforward", f.namespace, pod, err)
	case <-ready:
	}
	ports, err := forwarding.GetPorts()
	if err != nil {
		return err
	}
	host := fmt.Sprintf("127.0.0.1:%d", ports[0].Local)
	f.address = &url.URL{Scheme: "http", Host: host, Path: f.path}
	f.ended = ended
	return nil
}

// dialerOf returns a dialer that connects to a pod over a WebSocket, or over SPDY for servers older
// than 1.31.
func dialerOf(c *cluster, target *url.URL) (httpstream.Dialer, error) {
	transport, upgrader, err := spdy.RoundTripperFor(c.config)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: transport}
	overSPDY := spdy.NewDialerForStreaming(upgrader, client, http.MethodPost, target)
	overWebSocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(target, c.config)
	if err != nil {
		return nil, err
	}
	return portforward.NewFallbackDialerForStreaming(overWebSocket, overSPDY, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}

// pod returns the name of the pod in the command line, or of a running pod that the object there
// selects. It prefers a ready pod.
func (f *forwarder) pod(ctx context.Context, pods corev1client.CoreV1Interface) (string, error) {
	types, err := f.cluster.discover([]query{f.of})
	if err != nil {
		return "", err
	}
	if types[0].GroupVersionKind.GroupKind() == (schema.GroupKind{Kind: "Pod"}) {
		return f.of.name, nil
	}
	selector := ""
	if isNamespaced(types[0]) {
		if selector, err = f.selector(ctx, types[0].Resource); err != nil {
			return "", f.cluster.target.Explain(err)
		}
	}
	if selector == "" {
		return "", fmt.Errorf("%s/%s selects no pods: name a pod, as in pod/my-operator-0", f.of.kind,
			f.of.name)
	}
	list, err := pods.Pods(f.namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return "", f.cluster.target.Explain(err)
	}
	name := ""
	for _, pod := range list.Items {
		if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
			continue
		}
		name = pod.Name
		if slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}) {
			break
		}
	}
	if name == "" {
		return "", fmt.Errorf("%s/%s has no running pod in namespace %q: `kubectl get pods -n %[3]s "+
			"-l %s` lists its pods", f.of.kind, f.of.name, f.namespace, strings.ReplaceAll(selector, " ", ""))
	}
	return name, nil
}

// selector returns the selector of the pods of a workload or a service, in the form of list
// options, and "" for an object without one.
func (f *forwarder) selector(
	ctx context.Context, resource schema.GroupVersionResource,
) (string, error) {
	objects, err := dynamic.NewForConfig(f.cluster.config)
	if err != nil {
		return "", err
	}
	object, err := objects.Resource(resource).Namespace(f.namespace).Get(ctx, f.of.name,
		metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if object.GetKind() == "Service" {
		plain, _, _ := unstructured.NestedStringMap(object.Object, "spec", "selector")
		return labels.Set(plain).String(), nil
	}
	selector, _, _ := unstructured.NestedMap(object.Object, "spec", "selector")
	var of metav1.LabelSelector
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(selector, &of)
	if err != nil || len(selector) == 0 {
		return "", nil //nolint:nilerr // the object does not select pods
	}
	return metav1.FormatLabelSelector(&of), nil
}
