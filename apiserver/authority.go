package apiserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// validity is the time for which a certificate is valid from now on. Its validity begins an hour
// ago, for clocks that differ.
const validity = 365 * 24 * time.Hour

// authority signs the certificates of a server and of its users.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

// pair is a certificate and its key, in PEM.
type pair struct{ certificate, key []byte }

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "tests"}, key)
	if err != nil {
		return nil, err
	}
	return &authority{certificate: certificate, key: key, pem: encode(certificate.Raw)}, nil
}

// server returns the certificate of a server at the loopback address.
func (a *authority) server() (pair, error) {
	return a.sign(x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	})
}

// user returns the certificate of a user.
func (a *authority) user(name string, groups []string) (pair, error) {
	return a.sign(x509.Certificate{
		Subject:     pkix.Name{CommonName: name, Organization: groups},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (a *authority) sign(c x509.Certificate) (pair, error) {
	now := time.Now()
	c.SerialNumber, c.KeyUsage = big.NewInt(now.UnixNano()), x509.KeyUsageDigitalSignature
	c.NotBefore, c.NotAfter = now.Add(-time.Hour), now.Add(validity)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, &c, a.certificate, key.Public(), a.key)
	encoded, keyErr := keyutil.MarshalPrivateKeyToPEM(key)
	if err := errors.Join(err, keyErr); err != nil {
		return pair{}, fmt.Errorf("apiserver: sign the certificate of %s: %w", c.Subject, err)
	}
	return pair{certificate: encode(der), key: encoded}, nil
}

// encode returns a certificate in PEM.
func encode(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
}
