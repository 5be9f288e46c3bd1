// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"flag"
	"time"

	"k8s.io/utils/clock"

	"github.com/crosswatch-io/crosswatch/internal/breaker"
	"github.com/crosswatch-io/crosswatch/internal/engine"
	"github.com/crosswatch-io/crosswatch/internal/function"
)

// Options are what the operator can be told. NewOptions has the defaults.
type Options struct {
	// Kubeconfig is the path of the file that says how to reach the API server. Run is given that; this is for its caller.
	Kubeconfig string
	// Namespace of the operator's own Secrets, of its lease, and of the Functions that it runs.
	Namespace string

	// MetricsBindAddress is where metrics are served, over TLS, to those who may get /metrics; "0" serves none.
	MetricsBindAddress string
	// HealthProbeBindAddress is where /healthz and /readyz are served; "0" serves none.
	HealthProbeBindAddress string
	// LeaderElect lets one of several replicas work while the others stand by.
	LeaderElect bool
	// LeaderElectLeaseDuration is how long a leader that is not heard of stays one. The lease counts whole seconds.
	LeaderElectLeaseDuration time.Duration
	// LeaderElectRenewDeadline is how long the leader tries to renew the lease before it gives up, and the process ends.
	LeaderElectRenewDeadline time.Duration
	// LeaderElectRetryPeriod is the time between two tries to renew or to acquire the lease.
	LeaderElectRetryPeriod time.Duration

	// SyncInterval is after what time each XR is reconciled although nothing changed.
	SyncInterval time.Duration
	// SweepInterval is the time between two sweeps of watches that nothing needs.
	SweepInterval time.Duration
	// VerifyInterval is the time between two checks that each XR was woken for each change; 0 checks never.
	VerifyInterval time.Duration
	// StatusInterval is the least time between two publications of a DependencyWatchStatus.
	StatusInterval time.Duration
	// DefaultResponseTTL replaces the TTL of function responses that state none, or the function SDKs' default of 60 s.
	DefaultResponseTTL time.Duration
	// FunctionCacheBytes is how much memory function responses may take that are kept until their TTL ends; 0 keeps none.
	FunctionCacheBytes uint64
	// FunctionMessageLimit is the largest request to a function, and the largest response of one, in bytes.
	FunctionMessageLimit int
	// MaxConcurrentReconciles is how many XRs of one kind are reconciled at once.
	MaxConcurrentReconciles int
	// FunctionRuntime says who runs Functions and makes their FunctionRevisions: Deployment or External.
	FunctionRuntime string
	// AllowDevelopmentFunctions permits plain-text calls of the servers that Functions' development annotations name.
	AllowDevelopmentFunctions bool

	// Inspect is where to write what functions are asked and what they answer: file:/path, or unix:/path of a socket that a
	// viewer listens on; nowhere if it is empty.
	Inspect string

	// LogLevel is the least severe level that is logged: debug, info or error.
	LogLevel string
	// LogFormat is json, or console for people.
	LogFormat string

	// RetryBaseDelay and RetryMaxDelay bound the time after which an XR whose run failed is tried again, if no event wakes it
	// earlier; it doubles with each failure. They have no flags.
	RetryBaseDelay, RetryMaxDelay time.Duration
	// FunctionCallTimeout is how long one call of a function may take. It has no flag, either.
	FunctionCallTimeout time.Duration
	// FailureTolerance is for how long a watch may fail before it counts as failed, and the API server may leave requests without
	// an answer before the operator is not ready. It has no flag.
	FailureTolerance time.Duration
	// Clock says what time it is. It has no flag.
	Clock clock.Clock
	// Breaker is when an XR that writes what somebody undoes is slowed. It has no flag, either.
	Breaker breaker.Settings
}

// Values of FunctionRuntime, LogLevel and LogFormat.
const (
	// FunctionRuntimeDeployment runs each Function as a Deployment in the operator's namespace.
	FunctionRuntimeDeployment = "Deployment"
	// FunctionRuntimeExternal only reads FunctionRevisions, which somebody else makes.
	FunctionRuntimeExternal = "External"

	LogLevelDebug = "debug"
	LogLevelInfo  = "info"
	LogLevelError = "error"

	LogFormatJSON    = "json"
	LogFormatConsole = "console"
)

// NewOptions returns the defaults.
func NewOptions() Options {
	return Options{
		Namespace:                "crosswatch-system",
		MetricsBindAddress:       "0",
		HealthProbeBindAddress:   ":8081",
		LeaderElectLeaseDuration: 10 * time.Second,
		LeaderElectRenewDeadline: 7 * time.Second,
		LeaderElectRetryPeriod:   time.Second,
		SyncInterval:             time.Hour,
		SweepInterval:            time.Minute,
		StatusInterval:           30 * time.Second,
		DefaultResponseTTL:       4 * time.Hour,
		FunctionCacheBytes:       function.DefaultResponsesBytes,
		FunctionMessageLimit:     function.DefaultMessageLimit,
		MaxConcurrentReconciles:  32,
		FunctionRuntime:          FunctionRuntimeDeployment,
		LogLevel:                 LogLevelInfo,
		LogFormat:                LogFormatJSON,
		RetryBaseDelay:           time.Second,
		RetryMaxDelay:            time.Minute,
		FunctionCallTimeout:      function.DefaultCallTimeout,
		FailureTolerance:         engine.DefaultFailureTolerance,
		Clock:                    clock.RealClock{},
		Breaker:                  breaker.DefaultSettings(),
	}
}

// AddFlags adds a flag for each option that has one. What the options hold is the default.
func (o *Options) AddFlags(fs *flag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig,
		"path of a kubeconfig; without it, $KUBECONFIG, the pod's ServiceAccount or ~/.kube/config is used")
	fs.StringVar(&o.Namespace, "namespace", o.Namespace, "namespace of the operator's own Secrets, of its lease, and of the Functions that it runs")
	fs.StringVar(&o.MetricsBindAddress, "metrics-bind-address", o.MetricsBindAddress,
		"address to serve metrics at, over TLS, to whoever may get /metrics; 0 serves none")
	fs.StringVar(&o.HealthProbeBindAddress, "health-probe-bind-address", o.HealthProbeBindAddress,
		"address to serve /healthz and /readyz at; 0 serves none")
	fs.BoolVar(&o.LeaderElect, "leader-elect", o.LeaderElect, "let one of several replicas work while the others stand by")
	fs.DurationVar(&o.LeaderElectLeaseDuration, "leader-elect-lease-duration", o.LeaderElectLeaseDuration,
		"replace a leader that was not heard of for this time, in whole seconds")
	fs.DurationVar(&o.LeaderElectRenewDeadline, "leader-elect-renew-deadline", o.LeaderElectRenewDeadline,
		"end the leader if it can't renew its lease for this time, less than the lease's")
	fs.DurationVar(&o.LeaderElectRetryPeriod, "leader-elect-retry-period", o.LeaderElectRetryPeriod,
		"try to renew or to acquire the lease this often, several times within the renew deadline")
	fs.DurationVar(&o.SyncInterval, "sync-interval", o.SyncInterval,
		"reconcile each XR once in this time although nothing changed")
	fs.DurationVar(&o.SweepInterval, "sweep-interval", o.SweepInterval, "stop watches that nothing needs any more this often")
	fs.DurationVar(&o.VerifyInterval, "verify-interval", o.VerifyInterval,
		"check this often that each XR was woken for each change, some seconds, which takes memory; 0 checks never")
	fs.DurationVar(&o.StatusInterval, "status-interval", o.StatusInterval,
		"publish a DependencyWatchStatus at most this often, if something changed")
	fs.DurationVar(&o.DefaultResponseTTL, "default-response-ttl", o.DefaultResponseTTL,
		"TTL of function responses that state none, or exactly 60s, which is the function SDKs' default; 60s takes all as they are")
	fs.Uint64Var(&o.FunctionCacheBytes, "function-cache-bytes", o.FunctionCacheBytes,
		"memory for function responses that are kept until their TTL ends; 0 keeps none")
	fs.IntVar(&o.FunctionMessageLimit, "function-message-limit", o.FunctionMessageLimit,
		"largest request to a function, and largest response of one, in bytes; the function has a limit of its own")
	fs.IntVar(&o.MaxConcurrentReconciles, "max-concurrent-reconciles", o.MaxConcurrentReconciles,
		"how many XRs of one kind are reconciled at once")
	fs.StringVar(&o.FunctionRuntime, "function-runtime", o.FunctionRuntime,
		"Deployment runs Functions in the operator's namespace; External only reads FunctionRevisions, which somebody else makes")
	fs.BoolVar(&o.AllowDevelopmentFunctions, "allow-development-functions", o.AllowDevelopmentFunctions,
		"call Functions at the plain-text address that their development annotations name")
	fs.StringVar(&o.Inspect, "inspect", o.Inspect,
		"write what functions are asked and answer, without secrets, as JSON lines to file:/path or to who listens on unix:/path")
	fs.StringVar(&o.LogLevel, "log-level", o.LogLevel, "least severe level to log: debug, info or error")
	fs.StringVar(&o.LogFormat, "log-format", o.LogFormat, "json, or console for people")
}
