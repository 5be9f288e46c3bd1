// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/crosswatch-io/crosswatch/controllers/watchstatus"
	"github.com/crosswatch-io/crosswatch/internal/inspect"
)

// minInterval keeps a typing error, such as 30 instead of 30s, from becoming a busy loop.
const minInterval = 10 * time.Millisecond

// Validate returns everything that is wrong with the options, each fault with the flag that it comes from.
func (o *Options) Validate() error {
	return errors.Join(
		o.validateNamespace(),
		validateAddress("--metrics-bind-address", o.MetricsBindAddress),
		validateAddress("--health-probe-bind-address", o.HealthProbeBindAddress),
		o.validateLease(),
		validateInterval("--sync-interval", o.SyncInterval),
		validateInterval("--sweep-interval", o.SweepInterval),
		o.validateVerifyInterval(),
		o.validateStatusInterval(),
		validateInterval("--default-response-ttl", o.DefaultResponseTTL),
		o.validateMessageLimit(),
		o.validateConcurrency(),
		validateOneOf("--function-runtime", o.FunctionRuntime, FunctionRuntimeDeployment, FunctionRuntimeExternal),
		o.validateInspect(),
		validateOneOf("--log-level", o.LogLevel, LogLevelDebug, LogLevelInfo, LogLevelError),
		validateOneOf("--log-format", o.LogFormat, LogFormatJSON, LogFormatConsole),
		o.validateRetries(),
		validateInterval("failure tolerance", o.FailureTolerance),
		o.validateClock(),
	)
}

func (o *Options) validateVerifyInterval() error {
	if o.VerifyInterval == 0 {
		return nil
	}
	return validateInterval("--verify-interval", o.VerifyInterval)
}

func (o *Options) validateNamespace() error {
	if faults := validation.IsDNS1123Label(o.Namespace); len(faults) > 0 {
		return fmt.Errorf("--namespace: %q is no name of a namespace: %s", o.Namespace, strings.Join(faults, ", "))
	}
	return nil
}

// validateLease holds the times apart as the election demands: a leader that can't renew must give up before it is replaced, and
// try more than once before it gives up.
func (o *Options) validateLease() error {
	lease, renew, retry := o.LeaderElectLeaseDuration, o.LeaderElectRenewDeadline, o.LeaderElectRetryPeriod
	var faults []error
	if lease < time.Second || lease%time.Second != 0 {
		faults = append(faults, fmt.Errorf("--leader-elect-lease-duration: must be whole seconds, at least one, not %s", lease))
	}
	if renew >= lease {
		faults = append(faults, fmt.Errorf("--leader-elect-renew-deadline: must be less than the lease duration of %s, not %s", lease, renew))
	}
	if longest := time.Duration(leaderelection.JitterFactor * float64(retry)); longest >= renew {
		faults = append(faults, fmt.Errorf("--leader-elect-retry-period: %g times of it must be less than the renew deadline of %s, not %s",
			leaderelection.JitterFactor, renew, longest))
	}
	return errors.Join(append(faults, validateInterval("--leader-elect-retry-period", retry))...)
}

// validateMessageLimit refuses less than even a small XR needs, as 64 for 64 MiB would be, and more than a message can have.
func (o *Options) validateMessageLimit() error {
	const least, most = 64 << 10, math.MaxInt32
	if o.FunctionMessageLimit < least || o.FunctionMessageLimit > most {
		return fmt.Errorf("--function-message-limit: must be between %d and %d bytes, not %d", least, most, o.FunctionMessageLimit)
	}
	return nil
}

func (o *Options) validateConcurrency() error {
	if o.MaxConcurrentReconciles < 1 {
		return fmt.Errorf("--max-concurrent-reconciles: must be at least 1, not %d", o.MaxConcurrentReconciles)
	}
	return nil
}

func (o *Options) validateRetries() error {
	if o.RetryBaseDelay <= 0 || o.RetryMaxDelay < o.RetryBaseDelay {
		return fmt.Errorf("retry delays: want 0 < base <= max, not base %s and max %s", o.RetryBaseDelay, o.RetryMaxDelay)
	}
	return nil
}

func (o *Options) validateClock() error {
	if o.Clock == nil {
		return errors.New("clock: want one")
	}
	return nil
}

func (o *Options) validateInspect() error {
	if o.Inspect == "" {
		return nil
	}
	if _, err := inspect.ParseDestination(o.Inspect); err != nil {
		return fmt.Errorf("--inspect: %w", err)
	}
	return nil
}

// validateStatusInterval holds the interval to what a DependencyWatchStatus promises of its age.
func (o *Options) validateStatusInterval() error {
	if o.StatusInterval > watchstatus.Heartbeat {
		return fmt.Errorf("--status-interval: must be at most %s, not %s", watchstatus.Heartbeat, o.StatusInterval)
	}
	return validateInterval("--status-interval", o.StatusInterval)
}

func validateInterval(name string, interval time.Duration) error {
	if interval < minInterval {
		return fmt.Errorf("%s: must be at least %s, not %s", name, minInterval, interval)
	}
	return nil
}

func validateAddress(name, address string) error {
	if address == "0" {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%s: %q is neither 0 nor an address such as :8443 or 127.0.0.1:8443", name, address)
	}
	return nil
}

func validateOneOf(name, value string, allowed ...string) error {
	if !slices.Contains(allowed, value) {
		return fmt.Errorf("%s: %q is none of %s", name, value, strings.Join(allowed, ", "))
	}
	return nil
}
