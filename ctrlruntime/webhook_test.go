package ctrlruntime_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
)

// TestAWebhookBesideAManager runs controller-runtime's webhook server beside a manager of package
// controller. The webhook answers from the cache of the manager's informers: it refuses ConfigMaps
// for Deployments that do not exist.
func TestAWebhookBesideAManager(t *testing.T) {
	server := apisim.Start(t)
	quiet := slog.New(slog.DiscardHandler)
	factory, err := tidings.NewFactory(server.Config(), tidings.FactoryOptions{Logger: quiet})
	noError(t, err)
	deployments, err := tidings.For[*appsv1.Deployment](factory, tidings.Selection{})
	noError(t, err)
	guard, err := controller.NewGuard(server.Config(), controller.GuardOptions{})
	noError(t, err)
	kube, err := kubernetes.NewForConfig(guard.Config())
	noError(t, err)
	names, err := controller.New(deployments,
		controller.Options[*appsv1.Deployment]{Name: "names", Guard: guard, Logger: quiet},
		func(
			ctx context.Context, r controller.Request[*appsv1.Deployment],
		) (done controller.Result, err error) {
			if r.Gone || r.Object.Labels["name"] == r.Object.Name {
				return done, nil
			}
			d := r.Object.DeepCopy()
			metav1.SetMetaDataLabel(&d.ObjectMeta, "name", d.Name)
			_, err = kube.AppsV1().Deployments(d.Namespace).Update(ctx, d, metav1.UpdateOptions{})
			return done, err
		})
	noError(t, err)
	manager, err := controller.NewManager(factory, controller.ManagerOptions{Guard: guard, Logger: quiet})
	noError(t, err)
	noError(t, manager.AddController(names))

	hooks, post := newHooks(t)
	hooks.Register("/validate", &admission.Webhook{Handler: admission.HandlerFunc(
		func(_ context.Context, r admission.Request) admission.Response {
			if _, err := deployments.Lister().Get(r.Namespace + "/" + r.Name); err != nil {
				return admission.Denied("there is no such Deployment")
			}
			return admission.Allowed("")
		})})

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() { ended <- hooks.Start(ctx) }()
	go func() { ended <- manager.Run(ctx) }()
	ready := func() bool {
		answer := httptest.NewRecorder()
		manager.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		return answer.Code == http.StatusOK && hooks.StartedChecker()(nil) == nil
	}
	within(t, "the manager and the webhook server are ready", ready)
	if answer := post("web"); answer.Allowed {
		t.Error("a ConfigMap without a Deployment is allowed")
	}
	web := metav1.ObjectMeta{Namespace: "default", Name: "web"}
	createOn(t, server, &appsv1.Deployment{ObjectMeta: web})
	within(t, "the controller has set the label", func() bool {
		d, err := apisim.Get[*appsv1.Deployment](t.Context(), server, "default", "web")
		return err == nil && d.Labels["name"] == "web"
	})
	if answer := post("web"); !answer.Allowed {
		t.Errorf("a ConfigMap with a Deployment is refused: %v", answer.Result)
	}
	stop()
	noError(t, <-ended)
	noError(t, <-ended)
}

// newHooks returns a webhook server at a free port, with a certificate of its own, and a function
// that asks it about a new ConfigMap.
func newHooks(t *testing.T) (webhook.Server, func(name string) *admissionv1.AdmissionResponse) {
	t.Helper()
	const host = "127.0.0.1"
	certificate, key, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
	noError(t, err)
	dir := t.TempDir()
	noError(t, os.WriteFile(filepath.Join(dir, "tls.crt"), certificate, 0o600))
	noError(t, os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600))
	listener, err := net.Listen("tcp", host+":0")
	noError(t, err)
	port := listener.Addr().(*net.TCPAddr).Port
	noError(t, listener.Close())

	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(certificate)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}
	t.Cleanup(transport.CloseIdleConnections)
	return webhook.NewServer(webhook.Options{Host: host, Port: port, CertDir: dir}),
		func(name string) *admissionv1.AdmissionResponse {
			t.Helper()
			review := admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
				UID: "1", Namespace: "default", Name: name, Operation: admissionv1.Create,
				Object: runtime.RawExtension{Object: &corev1.ConfigMap{}},
			}}
			review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
			body, err := json.Marshal(review)
			noError(t, err)
			client := &http.Client{Transport: transport}
			answer, err := client.Post(fmt.Sprintf("https://%s:%d/validate", host, port),
				"application/json", bytes.NewReader(body))
			noError(t, err)
			defer answer.Body.Close()
			review.Response = nil
			noError(t, json.NewDecoder(answer.Body).Decode(&review))
			return review.Response
		}
}

// within waits until a condition holds.
func within(t *testing.T, what string, holds func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 30*time.Second, true,
		func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
