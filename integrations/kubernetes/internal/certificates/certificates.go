// Package certificates creates the certificates by which the API server and kube-scheduler authenticate the webhook and the extender.
package certificates

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const lasts = 2 * 365 * 24 * time.Hour

// Install creates an authority and a certificate for both services of a release, stores the certificate in the secret RELEASE-tls, lets the
// configuration of the webhook trust the authority, and returns the authority. The authority's key is discarded, so both can only be renewed
// together.
func Install(ctx context.Context, cluster client.Client, namespace, release string, hosts []string) (authority []byte, err error) {
	for _, service := range []string{release + "-webhook", release + "-extender"} {
		hosts = append(hosts, service+"."+namespace+".svc", service+"."+namespace+".svc.cluster.local")
	}
	authority, certificate, key, err := Make(hosts)
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: release + "-tls", Namespace: namespace}}
	if _, err := controllerutil.CreateOrUpdate(ctx, cluster, secret, func() error {
		secret.Type = corev1.SecretTypeTLS
		secret.Data = map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key, "ca.crt": authority}
		return nil
	}); err != nil {
		return nil, fmt.Errorf("the secret %s/%s cannot be written: %w", namespace, secret.Name, err)
	}
	webhook := &admissionv1.MutatingWebhookConfiguration{}
	if err := cluster.Get(ctx, types.NamespacedName{Name: release}, webhook); err != nil {
		extender := types.NamespacedName{Namespace: namespace, Name: release + "-extender"}
		if apierrors.IsNotFound(err) && cluster.Get(ctx, extender, &corev1.Service{}) == nil {
			return authority, nil // the extender is installed without the webhook
		}
		return nil, fmt.Errorf("the webhook's configuration %s cannot be read; install the webhook or the extender first: %w", release, err)
	}
	before := webhook.DeepCopy()
	for index := range webhook.Webhooks {
		webhook.Webhooks[index].ClientConfig.CABundle = authority
	}
	return authority, cluster.Patch(ctx, webhook, client.MergeFrom(before))
}

// Make creates an authority, and a certificate for hosts that it signs, all as PEM.
func Make(hosts []string) (authority, certificate, key []byte, err error) {
	root := &x509.Certificate{
		Subject: pkix.Name{CommonName: "nodewise"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lasts), SerialNumber: serial(),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, nil, err
	}
	rootBytes, err := x509.CreateCertificate(rand.Reader, root, root, &rootKey.PublicKey, rootKey)
	if err != nil {
		return nil, nil, nil, err
	}
	leaf := &x509.Certificate{
		Subject: pkix.Name{CommonName: "nodewise-kubernetes"}, NotBefore: root.NotBefore, NotAfter: root.NotAfter, SerialNumber: serial(),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if address := net.ParseIP(host); address != nil {
			leaf.IPAddresses = append(leaf.IPAddresses, address)
		} else {
			leaf.DNSNames = append(leaf.DNSNames, host)
		}
	}
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, nil, err
	}
	leafBytes, err := x509.CreateCertificate(rand.Reader, leaf, root, &leafKey.PublicKey, rootKey)
	if err != nil {
		return nil, nil, nil, err
	}
	keyBytes, err := x509.MarshalECPrivateKey(leafKey)
	if err != nil {
		return nil, nil, nil, err
	}
	return text("CERTIFICATE", rootBytes), text("CERTIFICATE", leafBytes), text("EC PRIVATE KEY", keyBytes), nil
}

func text(kind string, content []byte) []byte {
	var out bytes.Buffer
	_ = pem.Encode(&out, &pem.Block{Type: kind, Bytes: content})
	return out.Bytes()
}

func serial() *big.Int {
	found, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	return found
}
