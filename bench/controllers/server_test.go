package controllers

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/bench/internal/server"
)

// served is the content of a server in a process of its own.
type served struct {
	// Encoded are deployments that are encoded before they are asked for. Their statuses take
	// any update, and no watch shows it. A request for one of them has no answer.
	Encoded *server.Spec
	// Secrets and Primaries are numbers of secrets, and of deployments that mention them.
	Secrets, Primaries int
}

// servedKey is the environment variable that makes the test binary a server.
const servedKey = "TIDINGS_BENCH_SERVED"

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	if text, ok := os.LookupEnv(servedKey); ok {
		if err := serve(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serve serves until the end of the standard input. It writes the URL to the standard output.
func serve(text string) error {
	var s served
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return err
	}
	handler, err := s.handler()
	if err != nil {
		return err
	}
	listening := httptest.NewServer(handler)
	defer listening.Close()
	defer listening.CloseClientConnections()
	fmt.Println(listening.URL)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func (s served) handler() (http.Handler, error) {
	if s.Encoded == nil {
		return s.secrets()
	}
	encoded, err := server.Encode(*s.Encoded)
	if err != nil {
		return nil, err
	}
	reads := server.Handler(encoded)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPut:
			if err := acceptStatus(w, r); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
			}
		case strings.Contains(r.URL.Path, "/namespaces/"):
			<-r.Context().Done()
		default:
			reads.ServeHTTP(w, r)
		}
	}), nil
}

// writtenVersion is the version of every status that was written.
const writtenVersion = "90000000"

// acceptStatus answers an update with the object itself, at a later version.
func acceptStatus(w http.ResponseWriter, r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	var d appsv1.Deployment
	if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, &d); err != nil {
		return err
	}
	d.ResourceVersion = writtenVersion
	d.APIVersion, d.Kind = "apps/v1", "Deployment"
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(d)
}

// secrets returns a server with the secrets and their primaries, in one namespace.
func (s served) secrets() (http.Handler, error) {
	simulated, err := apisim.New(apisim.Options{})
	if err != nil {
		return nil, err
	}
	ctx := context.Background()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: opsNamespace}}
	if _, err := simulated.Create(ctx, namespace); err != nil {
		return nil, err
	}
	for i := range s.Secrets {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: opsNamespace, Name: secretName(i),
		}}
		secret.Data = map[string][]byte{"token": fmt.Appendf(nil, "%0200d", i)}
		if _, err := simulated.Create(ctx, secret); err != nil {
			return nil, err
		}
	}
	for i := range s.Primaries {
		if _, err := simulated.Create(ctx, s.primary(i)); err != nil {
			return nil, err
		}
	}
	return simulated, nil
}

func secretName(i int) string { return fmt.Sprintf("secret-%05d", i) }

func primaryName(i int) string { return fmt.Sprintf("primary-%05d", i) }

// primary returns a deployment that mentions its share of the secrets as volumes.
func (s served) primary(i int) *appsv1.Deployment {
	d := deployment(opsNamespace, primaryName(i))
	for j := i; j < s.Secrets; j += s.Primaries {
		d.Spec.Template.Spec.Volumes = append(d.Spec.Template.Spec.Volumes, corev1.Volume{
			Name: secretName(j), VolumeSource: corev1.VolumeSource{
				Secret: &corev1.SecretVolumeSource{SecretName: secretName(j)},
			},
		})
	}
	return d
}

// secretsOf returns the names of the secrets that a deployment mentions.
func secretsOf(d *appsv1.Deployment) (names []string) {
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.Secret != nil {
			names = append(names, v.Secret.SecretName)
		}
	}
	return names
}

// start serves in a process of its own, until the test ends, and returns the configuration of
// its clients.
func (s served) start(t *testing.T) *rest.Config {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program)
	command.Env = append(os.Environ(), servedKey+"="+string(text))
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := input.Close(); err != nil {
			t.Error(err)
		}
		if err := command.Wait(); err != nil {
			t.Errorf("the server: %v", err)
		}
	})
	url, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		t.Fatalf("the server has not begun: %v", err)
	}
	return &rest.Config{
		Host: strings.TrimSpace(url), QPS: -1,
		ContentConfig: rest.ContentConfig{
			AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json",
			ContentType:        "application/vnd.kubernetes.protobuf",
		},
	}
}
