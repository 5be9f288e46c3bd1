// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenSeconds is how long a token of ServiceAccountConfig is valid: longer than
// any test.
const tokenSeconds = int64(24 * 60 * 60)

// AdminConfig is the access of a user who may do everything, without a rate
// limit on the client's side. The caller owns what it gets.
func (c *ControlPlane) AdminConfig() *rest.Config {
	return rest.CopyConfig(c.admin)
}

// Kubeconfig is the path of the admin's kubeconfig, which goes when Stop removes
// a temporary folder.
func (c *ControlPlane) Kubeconfig() string {
	return filepath.Join(c.dir, "admin.kubeconfig")
}

// ServiceAccountConfig is the access of a service account that exists, with a
// token that the API server issued and that is valid for a day. It may do what
// RBAC grants it, nothing more.
func (c *ControlPlane) ServiceAccountConfig(ctx context.Context, namespace, name string) (*rest.Config, error) {
	seconds := tokenSeconds
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	answer, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("cannot get a token for service account \"%s/%s\": %w", namespace, name, err)
	}
	cfg := rest.AnonymousClientConfig(c.admin)
	cfg.BearerToken = answer.Status.Token
	return cfg, nil
}

// WriteKubeconfig writes access by client certificate or by token to a file that
// only the caller's user can read. It replaces the file if there is one.
func (*ControlPlane) WriteKubeconfig(path string, cfg *rest.Config) error {
	const name = "crosswatch"
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   cfg.Host,
		CertificateAuthorityData: cfg.CAData,
	}
	kubeconfig.AuthInfos[name] = &clientcmdapi.AuthInfo{
		ClientCertificateData: cfg.CertData,
		ClientKeyData:         cfg.KeyData,
		Token:                 cfg.BearerToken,
	}
	kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	kubeconfig.CurrentContext = name
	if err := clientcmd.WriteToFile(*kubeconfig, path); err != nil {
		return fmt.Errorf("cannot write the kubeconfig %q: %w", path, err)
	}
	return nil
}
