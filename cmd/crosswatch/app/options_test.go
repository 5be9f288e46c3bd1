// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDefaultsAreValid(t *testing.T) {
	o := NewOptions()
	if err := o.Validate(); err != nil {
		t.Errorf("Validate: %v", err)
	}
}

func TestAddFlags(t *testing.T) {
	args := []string{
		"--kubeconfig=k", "--namespace=n", "--metrics-bind-address=:1", "--health-probe-bind-address=:2", "--leader-elect",
		"--leader-elect-lease-duration=30s", "--leader-elect-renew-deadline=20s", "--leader-elect-retry-period=2s",
		"--sync-interval=1m", "--sweep-interval=2m", "--verify-interval=5m", "--status-interval=3m", "--default-response-ttl=4m",
		"--function-cache-bytes=6", "--function-message-limit=7", "--max-concurrent-reconciles=5", "--function-runtime=External",
		"--allow-development-functions", "--inspect=unix:/i", "--log-level=debug", "--log-format=console",
	}
	got := NewOptions()
	flags := flag.NewFlagSet("test", flag.ContinueOnError)
	got.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	want := Options{
		Kubeconfig: "k", Namespace: "n", MetricsBindAddress: ":1", HealthProbeBindAddress: ":2", LeaderElect: true,
		LeaderElectLeaseDuration: 30 * time.Second, LeaderElectRenewDeadline: 20 * time.Second, LeaderElectRetryPeriod: 2 * time.Second,
		SyncInterval: time.Minute, SweepInterval: 2 * time.Minute, VerifyInterval: 5 * time.Minute, StatusInterval: 3 * time.Minute,
		DefaultResponseTTL: 4 * time.Minute,
		FunctionCacheBytes: 6, FunctionMessageLimit: 7, MaxConcurrentReconciles: 5, FunctionRuntime: FunctionRuntimeExternal,
		AllowDevelopmentFunctions: true, Inspect: "unix:/i", LogLevel: LogLevelDebug, LogFormat: LogFormatConsole,
		RetryBaseDelay: got.RetryBaseDelay, RetryMaxDelay: got.RetryMaxDelay, FunctionCallTimeout: got.FunctionCallTimeout,
		FailureTolerance: got.FailureTolerance, Clock: got.Clock, Breaker: got.Breaker,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	defined := 0
	flags.VisitAll(func(*flag.Flag) { defined++ })
	if defined != len(args) {
		t.Errorf("want every one of %d flags tested, got %d", defined, len(args))
	}
}

func TestValidate(t *testing.T) {
	cases := map[string]struct {
		change func(*Options)
		want   []string // the flags that are named; none if the options are valid
	}{
		"NoServers": {change: func(o *Options) { o.MetricsBindAddress, o.HealthProbeBindAddress = "0", "0" }},
		"Address":   {change: func(o *Options) { o.MetricsBindAddress = "127.0.0.1:0" }},
		"IPv6":      {change: func(o *Options) { o.MetricsBindAddress = "[::1]:8443" }},
		"Namespace": {change: func(o *Options) { o.Namespace = "" }, want: []string{"--namespace"}},
		"NoPort":    {change: func(o *Options) { o.MetricsBindAddress = "localhost" }, want: []string{"--metrics-bind-address"}},
		"BadPort":   {change: func(o *Options) { o.HealthProbeBindAddress = ":http" }, want: []string{"--health-probe-bind-address"}},
		"Workers":   {change: func(o *Options) { o.MaxConcurrentReconciles = 0 }, want: []string{"--max-concurrent-reconciles"}},
		"Inspect":   {change: func(o *Options) { o.Inspect = "file:/var/tmp/rounds.jsonl" }},
		"NoScheme":  {change: func(o *Options) { o.Inspect = "/var/tmp/rounds.jsonl" }, want: []string{"--inspect"}},
		"Messages":  {change: func(o *Options) { o.FunctionMessageLimit = 64 }, want: []string{"--function-message-limit"}},
		"TooLong":   {change: func(o *Options) { o.FunctionMessageLimit = 1 << 31 }, want: []string{"--function-message-limit"}},
		"Retries":   {change: func(o *Options) { o.RetryMaxDelay = 0 }, want: []string{"retry delays"}},
		"ShortLease": {
			change: func(o *Options) {
				o.LeaderElectLeaseDuration, o.LeaderElectRenewDeadline, o.LeaderElectRetryPeriod = 2*time.Second, time.Second, 500*time.Millisecond
			},
		},
		"LeaseOfMilliseconds": {
			change: func(o *Options) { o.LeaderElectLeaseDuration = 10500 * time.Millisecond },
			want:   []string{"--leader-elect-lease-duration"},
		},
		"RenewedTooLate": {
			change: func(o *Options) { o.LeaderElectRenewDeadline = o.LeaderElectLeaseDuration },
			want:   []string{"--leader-elect-renew-deadline"},
		},
		"RetriedTooLate": {
			change: func(o *Options) { o.LeaderElectRetryPeriod = 6 * time.Second },
			want:   []string{"--leader-elect-retry-period"},
		},
		"NoLease": {
			change: func(o *Options) {
				o.LeaderElectLeaseDuration, o.LeaderElectRenewDeadline, o.LeaderElectRetryPeriod = 0, 0, 0
			},
			want: []string{
				"--leader-elect-lease-duration", "--leader-elect-renew-deadline", "--leader-elect-retry-period", "--leader-elect-retry-period",
			},
		},
		"All": {
			change: func(o *Options) {
				o.VerifyInterval = time.Nanosecond
				o.SyncInterval, o.SweepInterval, o.StatusInterval, o.DefaultResponseTTL = 0, -1, time.Nanosecond, 0
				o.FunctionRuntime, o.LogLevel, o.LogFormat = "Pod", "loud", "xml"
			},
			want: []string{
				"--sync-interval", "--sweep-interval", "--verify-interval", "--status-interval", "--default-response-ttl",
				"--function-runtime", "--log-level", "--log-format",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := NewOptions()
			tc.change(&o)
			err := o.Validate()
			var lines []string
			if err != nil {
				lines = strings.Split(err.Error(), "\n")
			}
			if len(lines) != len(tc.want) {
				t.Fatalf("want faults of %v, got %v", tc.want, err)
			}
			for i, name := range tc.want {
				if !strings.HasPrefix(lines[i], name+":") {
					t.Errorf("want a fault of %s, got %q", name, lines[i])
				}
			}
		})
	}
}
