// Package rules tests the alert rules and the dashboard of docs/metrics with Prometheus' own
// parsers: both use metrics and labels of docs/metrics-reference.md only.
//
// It is a module of its own, because of Prometheus' requirements.
package rules
