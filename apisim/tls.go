package apisim

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// certificateLife is how long the certificate of a server is valid.
const certificateLife = 365 * 24 * time.Hour

// ListenTLS is Listen over TLS. It makes a certificate for this machine and for the address, and
// returns it in PEM as the authority that clients have to trust. kubectl and other clients
// with a kubeconfig send the token of a user over TLS only.
func (s *Server) ListenTLS(address string) (url string, authority []byte, err error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return "", nil, fmt.Errorf("apisim: cannot listen on %s: %w", address, err)
	}
	certificate, err := newCertificate(listener.Addr())
	if err != nil {
		listener.Close() //nolint:errcheck // it was not used
		return "", nil, fmt.Errorf("apisim: cannot make a certificate for %s: %w", address, err)
	}
	secured := tls.NewListener(listener, &tls.Config{
		Certificates: []tls.Certificate{certificate}, NextProtos: []string{"http/1.1"},
	})
	authority = pem.EncodeToMemory(&pem.Block{
		Type: "CERTIFICATE", Bytes: certificate.Certificate[0],
	})
	url, err = s.serveTCP(&s.entrance, "https", secured)
	return url, authority, err
}

// newCertificate returns a certificate that signs itself.
func newCertificate(address net.Addr) (tls.Certificate, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "apisim"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(certificateLife),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA:        true, BasicConstraintsValid: true,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if tcp, ok := address.(*net.TCPAddr); ok {
		template.IPAddresses = append(template.IPAddresses, tcp.IP)
	}
	data, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	return tls.Certificate{Certificate: [][]byte{data}, PrivateKey: private}, err
}
