// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	v1 "github.com/crosswatch-io/crosswatch/api/apiextensions/v1"
	fnv1 "github.com/crosswatch-io/crosswatch/api/fn/v1"
	"github.com/crosswatch-io/crosswatch/cmd/crosswatch/app"
	"github.com/crosswatch-io/crosswatch/test/functions"
	"github.com/crosswatch-io/crosswatch/test/functions/respond"
)

// secretReader requires a Secret, and is given one as a credential.
func secretReader(req *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	rsp := respond.To(req)
	respond.Ready(rsp, fnv1.Ready_READY_TRUE)
	respond.Require(rsp, "login", respond.Selector{APIVersion: "v1", Kind: "Secret", Namespace: functions.XR(req).Namespace, Name: "login"})
	return rsp, nil
}

func TestInspectShowsEachRoundWithoutSecrets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rounds.jsonl")
	w := newWorld(t)
	w.readableSecrets()
	w.operate(func(o *app.Options, _ *rest.Config) { o.Inspect = "file:" + path })
	w.function("greeter", secretReader)
	kind := w.shared(sample)
	w.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "login"},
		StringData: map[string]string{"password": "dontlookatme"},
	})
	login := &v1.SecretReference{Namespace: w.namespace, Name: "login"}
	greet := step("greeter", nil)
	greet.Credentials = []v1.FunctionCredentials{{Name: "cloud", Source: v1.CredentialsSourceSecret, SecretRef: login}}
	w.compose(kind, greet)
	w.ready(w.xr(kind, "hello", nil))
	var content []byte
	w.eventually("both rounds", func() (bool, string) {
		var err error
		content, err = os.ReadFile(path)
		w.must(err)
		content = content[:bytes.LastIndexByte(content, '\n')+1] // the last line may be half written
		return bytes.Count(content, []byte("\n")) >= 2, string(content)
	})
	for _, secret := range []string{"dontlookatme", "ZG9udGxvb2thdG1l"} {
		if strings.Contains(string(content), secret) {
			t.Errorf("%s is written", secret)
		}
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	var rounds []int
	for _, text := range lines {
		var line struct {
			XR struct {
				Kind, Namespace, Name string
			}
			Step  string
			Round int
			Tag   string
		}
		w.must(json.Unmarshal([]byte(text), &line))
		if line.XR.Kind != kind.Kind || line.XR.Namespace != w.namespace || line.XR.Name != "hello" || line.Step != "greeter" || line.Tag == "" {
			t.Errorf("want a round of step greeter for the XR, got %s", text)
		}
		rounds = append(rounds, line.Round)
	}
	if len(rounds) < 2 || rounds[0] != 1 || rounds[1] != 2 {
		t.Errorf("want the round that asks and the one that is shown, got rounds %v", rounds)
	}
	if !strings.Contains(lines[1], `"password":"[redacted]"`) {
		t.Errorf("want the keys of secrets, got %s", lines[1])
	}
}
