package cli

import (
	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
	"github.com/tidings-go/tidings/internal/delta"
)

// statusOf sums up the health of informers.
func statusOf(informers []tidings.Health) view.Status {
	status := view.Status{Types: len(informers)}
	for _, health := range informers {
		status.Objects += int64(health.Objects)
		if order, ok := delta.CompareDecimal(health.Version, status.Version); health.Version != "" && (!ok || order > 0) {
			status.Version = health.Version
		}
	}
	return status
}
