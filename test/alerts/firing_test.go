// Copyright The Crosswatch Authors
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

const (
	// step is the time between two samples, and between two evaluations.
	step = 30 * time.Second
	// observed is how long each scenario is, which is 120 steps.
	observed = time.Hour
)

// scenario has series of one replica in Prometheus' notation for tests, each with
// its labels but for those of the target: "0+30x120" starts at 0 and grows by 30
// at each of 120 steps, "1x40 0x80" is 1 for 40 steps and then 0, "_" is no sample.
type scenario map[string]string

// well is an operator with two XRDs and one function that has nothing to complain
// about. It is the leader.
var well = scenario{
	`crosswatch_publication_interval_seconds`:                                       `30x120`,
	`crosswatch_publication_success_timestamp_seconds`:                              `0+30x120`,
	`crosswatch_converged{controller="xbuckets"}`:                                   `1x120`,
	`crosswatch_converged{controller="xclusters"}`:                                  `1x120`,
	`crosswatch_watches{state="Starting"}`:                                          `0x120`,
	`crosswatch_watches{state="Active"}`:                                            `7x120`,
	`crosswatch_watches{state="Forbidden"}`:                                         `0x120`,
	`crosswatch_watches{state="NotFound"}`:                                          `0x120`,
	`crosswatch_watches{state="Unwatchable"}`:                                       `0x120`,
	`crosswatch_watches{state="Failed"}`:                                            `0x120`,
	`crosswatch_event_to_reconcile_seconds_bucket{controller="xbuckets",le="0.1"}`:  `0+10x120`,
	`crosswatch_event_to_reconcile_seconds_bucket{controller="xbuckets",le="5"}`:    `0+10x120`,
	`crosswatch_event_to_reconcile_seconds_bucket{controller="xbuckets",le="60"}`:   `0+10x120`,
	`crosswatch_event_to_reconcile_seconds_bucket{controller="xbuckets",le="+Inf"}`: `0+10x120`,
	`crosswatch_function_calls_total{function="place",code="OK"}`:                   `0+100x120`,
	`crosswatch_reconciles_total{controller="xbuckets",result="synced"}`:            `0+30x120`,
	`crosswatch_reconciles_total{controller="xclusters",result="synced"}`:           `0x120`,
	`crosswatch_api_requests_total{verb="update",reason="lease",code="200"}`:        `0+100x120`,
	`crosswatch_api_requests_total{verb="apply",reason="apply",code="409"}`:         `0+10x120`,
	`crosswatch_circuits_open{controller="xbuckets"}`:                               `0x120`,
	`go_gc_heap_live_bytes`:                                                         `400e6x120`,
	`go_gc_gomemlimit_bytes`:                                                        `1e9x120`,
}

// firing is when an alert fired first, by its name and its labels but for the
// severity and those of the target.
type firing map[string]time.Duration

func TestAlerts(t *testing.T) {
	tests := []struct {
		name string
		with scenario // in place of, or added to, what is well; a series without samples is not there
		want firing
	}{
		{name: "all is well"},

		{
			name: "no replica leads",
			with: scenario{
				`crosswatch_publication_interval_seconds`:          ``,
				`crosswatch_publication_success_timestamp_seconds`: ``,
				`crosswatch_converged{controller="xbuckets"}`:      ``,
				`crosswatch_converged{controller="xclusters"}`:     ``,
			},
			want: firing{`CrosswatchNoLeader`: 5 * time.Minute},
		},
		{
			name: "the leader changes, and nobody leads for two minutes",
			with: scenario{
				`crosswatch_publication_interval_seconds`:                              `30x40`,
				`crosswatch_publication_success_timestamp_seconds`:                     `0+30x40`,
				`crosswatch_publication_interval_seconds{pod="crosswatch-1"}`:          `_x44 30x76`,
				`crosswatch_publication_success_timestamp_seconds{pod="crosswatch-1"}`: `_x44 1320+30x76`,
			},
		},

		{
			name: "an XR of one XRD doesn't settle",
			with: scenario{`crosswatch_converged{controller="xbuckets"}`: `0x120`},
			want: firing{`CrosswatchNotConverged{controller="xbuckets"}`: 15 * time.Minute},
		},
		{
			name: "an XRD is not established, so that nobody reconciles its XRs",
			with: scenario{`crosswatch_converged{controller="xqueues"}`: `0x120`},
			want: firing{`CrosswatchNotConverged{controller="xqueues"}`: 15 * time.Minute},
		},
		{
			name: "an XRD needs ten minutes to be established",
			with: scenario{`crosswatch_converged{controller="xqueues"}`: `0x20 1x100`},
		},
		{
			name: "XRs need ten minutes to settle",
			with: scenario{`crosswatch_converged{controller="xbuckets"}`: `0x20 1x100`},
		},
		{
			name: "XRs settle again and again",
			with: scenario{`crosswatch_converged{controller="xbuckets"}`: strings.Repeat(`0x10 1x10 `, 6)},
		},

		{
			name: "watches fail",
			with: scenario{
				`crosswatch_watches{state="Forbidden"}`: `0x10 1x110`,
				`crosswatch_watches{state="NotFound"}`:  `2x120`,
			},
			want: firing{
				`CrosswatchWatchNotActive{state="Forbidden"}`: 15*time.Minute + 11*step,
				`CrosswatchWatchNotActive{state="NotFound"}`:  15 * time.Minute,
			},
		},
		{
			name: "watches don't start",
			with: scenario{
				`crosswatch_watches{state="Starting"}`: `1x120`,
				`crosswatch_watches{state="Failed"}`:   `1x120`,
			},
			want: firing{
				`CrosswatchWatchNotActive{state="Starting"}`: 15 * time.Minute,
				`CrosswatchWatchNotActive{state="Failed"}`:   15 * time.Minute,
			},
		},
		{
			name: "XRs need kinds that can't be watched at all",
			with: scenario{`crosswatch_watches{state="Unwatchable"}`: `3x120`},
			want: firing{`CrosswatchWatchNotActive{state="Unwatchable"}`: 15 * time.Minute},
		},
		{
			name: "a kind's CRD comes ten minutes late",
			with: scenario{`crosswatch_watches{state="NotFound"}`: `1x20 0x100`},
		},

		{
			name: "of a hundred reconciles, two start after more than five seconds",
			with: scenario{
				`crosswatch_event_to_reconcile_seconds_bucket{controller="xbuckets",le="0.1"}`:  `0+980x120`,
				`crosswatch_event_to_reconcile_seconds_bucket{controller="xbuckets",le="5"}`:    `0+980x120`,
				`crosswatch_event_to_reconcile_seconds_bucket{controller="xbuckets",le="60"}`:   `0+1000x120`,
				`crosswatch_event_to_reconcile_seconds_bucket{controller="xbuckets",le="+Inf"}`: `0+1000x120`,
			},
			want: firing{`CrosswatchSlowToReact{controller="xbuckets"}`: 15*time.Minute + step},
		},
		{
			name: "of a thousand reconciles, two start after more than five seconds",
			with: scenario{
				`crosswatch_event_to_reconcile_seconds_bucket{controller="xbuckets",le="0.1"}`:  `0+998x120`,
				`crosswatch_event_to_reconcile_seconds_bucket{controller="xbuckets",le="5"}`:    `0+998x120`,
				`crosswatch_event_to_reconcile_seconds_bucket{controller="xbuckets",le="60"}`:   `0+1000x120`,
				`crosswatch_event_to_reconcile_seconds_bucket{controller="xbuckets",le="+Inf"}`: `0+1000x120`,
			},
		},

		{
			name: "every fifth call of one function fails, and one of another now and then",
			with: scenario{
				`crosswatch_function_calls_total{function="place",code="Unavailable"}`: `0+25x120`,
				`crosswatch_function_calls_total{function="name",code="OK"}`:           `0+100x120`,
				`crosswatch_function_calls_total{function="name",code="Unknown"}`:      `0+5x120`,
			},
			want: firing{`CrosswatchFunctionErrors{function="place"}`: 10*time.Minute + step},
		},
		{
			name: "all calls of a function fail, and nothing else calls it",
			with: scenario{
				`crosswatch_function_calls_total{function="place",code="OK"}`:          `5x120`,
				`crosswatch_function_calls_total{function="place",code="Unavailable"}`: `0+1x120`,
			},
			want: firing{`CrosswatchFunctionErrors{function="place"}`: 10*time.Minute + step},
		},
		{
			name: "a function is away for three minutes",
			with: scenario{`crosswatch_function_calls_total{function="place",code="Unavailable"}`: `0x20 0+100x6 600x94`},
		},
		{
			name: "no function is called",
			with: scenario{`crosswatch_function_calls_total{function="place",code="OK"}`: `5x120`},
		},

		{
			name: "a function says of every XR that it can't go on",
			with: scenario{
				`crosswatch_reconciles_total{controller="xbuckets",result="synced"}`: `5x120`,
				`crosswatch_reconciles_total{controller="xbuckets",result="fatal"}`:  `0+25x120`,
			},
			want: firing{`CrosswatchReconcilesFail{controller="xbuckets"}`: 10*time.Minute + step},
		},
		{
			name: "one in five reconciles fails, for one reason or another",
			with: scenario{
				`crosswatch_reconciles_total{controller="xbuckets",result="failed"}`: `0+4x120`,
				`crosswatch_reconciles_total{controller="xbuckets",result="fatal"}`:  `0+4x120`,
			},
			// After three steps they are more than 18, which is 0.06 a second for five minutes.
			want: firing{`CrosswatchReconcilesFail{controller="xbuckets"}`: 10*time.Minute + 3*step},
		},
		{
			name: "one XR fails once a minute, and nothing else happens",
			with: scenario{
				`crosswatch_reconciles_total{controller="xclusters",result="fatal"}`: `0+0.5x120`,
			},
		},
		{
			name: "of very many reconciles, one in twenty fails",
			with: scenario{
				`crosswatch_reconciles_total{controller="xbuckets",result="synced"}`: `0+950x120`,
				`crosswatch_reconciles_total{controller="xbuckets",result="failed"}`: `0+50x120`,
			},
		},
		{
			name: "all XRs wait for a watch, are deleted or are paused",
			with: scenario{
				`crosswatch_reconciles_total{controller="xbuckets",result="synced"}`:   `5x120`,
				`crosswatch_reconciles_total{controller="xbuckets",result="waiting"}`:  `0+30x120`,
				`crosswatch_reconciles_total{controller="xbuckets",result="deleting"}`: `0+30x120`,
				`crosswatch_reconciles_total{controller="xbuckets",result="paused"}`:   `0+30x120`,
			},
		},

		{
			name: "two XRs are in a loop",
			with: scenario{`crosswatch_circuits_open{controller="xbuckets"}`: `0x10 2x110`},
			want: firing{`CrosswatchLoops{controller="xbuckets"}`: 15*time.Minute + 11*step},
		},
		{
			name: "an XR is in a loop for ten minutes, then another",
			with: scenario{
				`crosswatch_circuits_open{controller="xbuckets"}`:  `1x20 0x100`,
				`crosswatch_circuits_open{controller="xclusters"}`: `0x30 1x20 0x70`,
			},
		},

		{
			name: "the API server turns requests away, fails and doesn't answer, each a little",
			with: scenario{
				`crosswatch_api_requests_total{verb="apply",reason="apply",code="429"}`:      `0+3x120`,
				`crosswatch_api_requests_total{verb="patch",reason="status",code="503"}`:     `0+3x120`,
				`crosswatch_api_requests_total{verb="update",reason="lease",code="<error>"}`: `0+3x120`,
			},
			want: firing{`CrosswatchAPIErrors`: 10*time.Minute + step},
		},
		{
			name: "the API server says no",
			with: scenario{
				`crosswatch_api_requests_total{verb="apply",reason="apply",code="422"}`: `0+100x120`,
				`crosswatch_api_requests_total{verb="list",reason="read",code="403"}`:   `0+100x120`,
				`crosswatch_api_requests_total{verb="get",reason="read",code="404"}`:    `0+100x120`,
			},
		},

		{
			name: "nothing is published any more",
			with: scenario{`crosswatch_publication_success_timestamp_seconds`: `0+30x20 600x100`},
			// More than 150 s after the last success at 600 s, and five minutes on.
			want: firing{`CrosswatchPublicationStale`: 780*time.Second + 5*time.Minute},
		},
		{
			name: "nothing was ever published",
			with: scenario{`crosswatch_publication_success_timestamp_seconds`: `0x120`},
			want: firing{`CrosswatchPublicationStale`: 180*time.Second + 5*time.Minute},
		},
		{
			name: "every third round is without an error",
			with: scenario{`crosswatch_publication_success_timestamp_seconds`: everyThirdRound()},
		},

		{
			name: "one of two replicas needs more and more memory",
			with: scenario{
				`go_gc_heap_live_bytes{pod="crosswatch-1"}`:  `800e6 810e6x119`,
				`go_gc_gomemlimit_bytes{pod="crosswatch-1"}`: `1e9x120`,
			},
			want: firing{`CrosswatchMemoryNearLimit{pod="crosswatch-1"}`: 15*time.Minute + step},
		},
		{
			name: "a replica leaves its garbage until there is as much of it as of what it needs",
			with: scenario{`process_resident_memory_bytes`: `990e6x120`},
		},
		{
			name: "a replica without a limit needs much memory",
			with: scenario{
				`go_gc_heap_live_bytes`:  `9e12x120`,
				`go_gc_gomemlimit_bytes`: `9223372036854775807x120`,
			},
		},
	}
	fired := map[string]bool{}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if tc.want == nil {
				tc.want = firing{}
			}
			if diff := cmp.Diff(tc.want, evaluate(t, tc.with)); diff != "" {
				t.Errorf("alerts and when they fire first (-want +got):\n%s", diff)
			}
		})
		for alert := range tc.want {
			name, _, _ := strings.Cut(alert, "{")
			fired[name] = true
		}
	}
	for _, rule := range alertRules(t) {
		if !fired[rule.Alert] {
			t.Errorf("alert %s fires in no scenario", rule.Alert)
		}
	}
}

// everyThirdRound is the time of the last success when only every third round of
// 30 s is one.
func everyThirdRound() string {
	var samples []string
	for at := 0; at <= 3600; at += 90 {
		samples = append(samples, fmt.Sprintf("%dx2", at))
	}
	return strings.Join(samples, " ")
}

// evaluate runs the rules at each step, as Prometheus does.
func evaluate(t *testing.T, with scenario) firing {
	t.Helper()
	storage := promqltest.LoadedStorage(t, load(with))
	engine := promqltest.NewTestEngine(t, false, 5*time.Minute, 1_000_000)
	query := rules.EngineQueryFunc(engine, storage)

	fires := firing{}
	for _, rule := range alertingRules(t) {
		for at := time.Duration(0); at <= observed; at += step {
			if _, err := rule.Eval(t.Context(), 0, time.Unix(0, 0).Add(at), query, &url.URL{}, 0); err != nil {
				t.Fatalf("alert %s after %s: %v", rule.Name(), at, err)
			}
			for _, alert := range rule.ActiveAlerts() {
				id := identify(rule.Name(), alert)
				if _, ok := fires[id]; alert.State == rules.StateFiring && !ok {
					fires[id] = at
					checkAnnotations(t, id, alert)
				}
			}
		}
	}
	return fires
}

func alertingRules(t *testing.T) []*rules.AlertingRule {
	t.Helper()
	var alerting []*rules.AlertingRule
	for _, rule := range alertRules(t) {
		expr, err := promQL.ParseExpr(rule.Expr)
		if err != nil {
			t.Fatal(err)
		}
		alerting = append(alerting, rules.NewAlertingRule(rule.Alert, expr,
			time.Duration(rule.For), time.Duration(rule.KeepFiringFor),
			labels.FromMap(rule.Labels), labels.FromMap(rule.Annotations), labels.EmptyLabels(), "",
			true, // there is no earlier Prometheus whose pending alerts go on
			slog.New(slog.DiscardHandler)))
	}
	return alerting
}

// load is the command that stores the series of a scenario.
func load(with scenario) string {
	all := maps.Clone(well)
	maps.Copy(all, with)
	var command strings.Builder
	fmt.Fprintf(&command, "load %s\n", step)
	for _, series := range slices.Sorted(maps.Keys(all)) {
		if all[series] != "" {
			fmt.Fprintf(&command, "  %s %s\n", target(series), all[series])
		}
	}
	return command.String()
}

// target gives a series the labels of the target that it is scraped from.
func target(series string) string {
	name, own, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
	all := []string{`job="crosswatch"`, `namespace="crosswatch-system"`}
	if own != "" {
		all = append(all, own)
	}
	if !strings.Contains(own, "pod=") {
		all = append(all, `pod="crosswatch-0"`)
	}
	return name + "{" + strings.Join(all, ",") + "}"
}

// identify is the key of an alert in firing.
func identify(name string, alert *rules.Alert) string {
	var own []string
	alert.Labels.Range(func(l labels.Label) {
		if !slices.Contains([]string{"alertname", "severity", "job", "namespace"}, l.Name) {
			own = append(own, fmt.Sprintf("%s=%q", l.Name, l.Value))
		}
	})
	if len(own) == 0 {
		return name
	}
	return name + "{" + strings.Join(own, ",") + "}"
}

// checkAnnotations finds templates that fail, or that name a label which the alert
// doesn't have.
func checkAnnotations(t *testing.T, id string, alert *rules.Alert) {
	t.Helper()
	alert.Annotations.Range(func(l labels.Label) {
		for _, sign := range []string{"<error", "<no value>", "%!", "{{", "  "} {
			if strings.Contains(l.Value, sign) {
				t.Errorf("%s, %s: %q has %q in it", id, l.Name, l.Value, sign)
			}
		}
	})
}
