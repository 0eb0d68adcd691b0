package guard

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestC10_HTTP2 closes a term before the head of an answer over HTTP/2, and within its body.
func TestC10_HTTP2(t *testing.T) {
	for name, begin := range map[string]string{"no answer": "", "half an answer": `{"kind":"ConfigMap",`} {
		t.Run(name, func(t *testing.T) {
			arrived := make(chan int)
			server := httptest.NewUnstartedServer(http.HandlerFunc(
				func(w http.ResponseWriter, r *http.Request) {
					if begin != "" {
						w.Header().Set("Content-Type", "application/json")
						io.WriteString(w, begin)
						http.NewResponseController(w).Flush()
					}
					arrived <- r.ProtoMajor
					<-r.Context().Done()
				}))
			server.EnableHTTP2 = true
			server.StartTLS()
			defer server.Close()
			config := &rest.Config{Host: server.URL}
			config.CAData = pem.EncodeToMemory(&pem.Block{
				Type: "CERTIFICATE", Bytes: server.Certificate().Raw,
			})
			g, err := New(config, Options{})
			if err != nil {
				t.Fatal(err)
			}
			client, err := kubernetes.NewForConfig(g.Config())
			if err != nil {
				t.Fatal(err)
			}
			term := newTerm(time.Hour)
			go func() {
				if version := <-arrived; version != 2 {
					t.Errorf("the request came over HTTP/%d", version)
				}
				term.close(errTaken)
			}()
			ctx, call := g.Begin(t.Context(), term)
			maps := client.CoreV1().ConfigMaps("default")
			_, err = maps.Update(ctx, configMap("a"), metav1.UpdateOptions{})
			r := &rig{T: t}
			if e := r.isError(err, ErrFenced, "was interrupted", errTaken.Error()); !e.Sent {
				t.Errorf("the error is %v", e)
			}
			if w := r.only(call); !w.Unknown {
				t.Errorf("it is noted as %+v", w)
			}
			<-call.Done()
		})
	}
}
