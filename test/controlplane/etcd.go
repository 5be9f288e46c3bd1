// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// CompactEtcd drops the history of all objects: what was at any revision but the
// last is gone. A resource version from before the last write expires with that
// for whoever asks etcd; the API server remembers recent ones by itself until it
// is restarted.
func (c *ControlPlane) CompactEtcd(ctx context.Context) error {
	var current struct {
		Header struct {
			Revision json.Number `json:"revision"`
		} `json:"header"`
	}
	// Any key will do: the answer tells the revision of the whole store.
	if err := c.askEtcd(ctx, "/v3/kv/range", map[string]any{"key": []byte{0}}, &current); err != nil {
		return fmt.Errorf("cannot find out etcd's revision: %w", err)
	}
	compaction := map[string]any{"revision": current.Header.Revision, "physical": true}
	if err := c.askEtcd(ctx, "/v3/kv/compaction", compaction, nil); err != nil {
		return fmt.Errorf("cannot compact etcd at revision %s: %w", current.Header.Revision, err)
	}
	return nil
}

// askEtcd calls etcd by way of its JSON gateway.
func (c *ControlPlane) askEtcd(ctx context.Context, path string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.servers.Etcd.URL.String()+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s was answered %s", path, response.Status)
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(answer)
}
