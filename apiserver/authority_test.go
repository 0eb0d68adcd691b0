package apiserver

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"k8s.io/client-go/rest"
)

// TestCertificates connects a user to a server, each of which trusts the authority alone.
func TestCertificates(t *testing.T) {
	a, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	serving, err := a.server()
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(serving.certificate, serving.key)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(a.pem)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		user := r.TLS.PeerCertificates[0].Subject
		if user.CommonName != "jane" || !slices.Equal(user.Organization, []string{"system:masters"}) {
			t.Errorf("the user is %s", user)
		}
	}))
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{certificate}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert,
	}
	server.StartTLS()
	defer server.Close()
	config, err := (&Server{authority: a}).ConfigFor("jane", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	response, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("the answer is %s, %v", response.Status, err)
	}
}
