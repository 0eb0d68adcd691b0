package debug

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/tidings-go/tidings/controller/election"
	"github.com/tidings-go/tidings/internal/see/format"
	"github.com/tidings-go/tidings/internal/see/gather"
)

// Process describes the process.
type Process struct {
	// Program is the name of the program, and Version that of its main module, or its commit.
	Program string `json:"program"`
	Version string `json:"version,omitempty"`
	// Replica is the name of the host: in a cluster, the name of the pod.
	Replica string `json:"replica,omitempty"`
	// Leads says for each Lease and group what this process does in it.
	Leads []string `json:"leads,omitempty"`
	// Since is the time at which the handler was made, which is about when the process began.
	Since      time.Time `json:"since"`
	GoVersion  string    `json:"goVersion"`
	Goroutines int       `json:"goroutines"`
	HeapBytes  uint64    `json:"heapBytes"`
	// SystemBytes is the memory that the runtime has from the system.
	SystemBytes uint64 `json:"systemBytes"`
}

// identity returns the fields of the process that do not change.
func identity() Process {
	p := Process{GoVersion: runtime.Version(), Since: now()}
	if file, err := os.Executable(); err == nil {
		p.Program = filepath.Base(file)
	}
	p.Replica, _ = os.Hostname() //nolint:errcheck // the page leaves it out
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return p
	}
	if info.Path != "" && info.Path != "command-line-arguments" {
		p.Program = path.Base(info.Path)
	}
	p.Version = info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && p.Version == "(devel)" {
			p.Version = s.Value[:min(len(s.Value), 12)]
		}
	}
	return p
}

// memoryMetrics are the heap's objects, and all memory of the runtime. Reading them does not stop
// the program, as runtime.ReadMemStats does.
var memoryMetrics = [...]string{"/memory/classes/heap/objects:bytes", "/memory/classes/total:bytes"}

// memory returns the bytes of the objects on the heap, and of all memory from the system.
func memory() (heap, system uint64) {
	read := []metrics.Sample{{Name: memoryMetrics[0]}, {Name: memoryMetrics[1]}}
	metrics.Read(read)
	return read[0].Value.Uint64(), read[1].Value.Uint64()
}

// process describes the process at present.
func (h *Handler) process(all *gather.Figures) Process {
	p := h.identity
	p.Goroutines = runtime.NumGoroutine()
	p.HeapBytes, p.SystemBytes = memory()
	for _, e := range all.Elections {
		switch {
		case e.State == election.Leading || e.State == election.Draining:
			p.Leads = append(p.Leads, "leads "+e.Lease)
		case e.Holder == "":
			p.Leads = append(p.Leads, "nobody leads "+e.Lease)
		default:
			p.Leads = append(p.Leads, fmt.Sprintf("%s leads %s", e.Holder, e.Lease))
		}
	}
	for _, g := range all.Groups {
		owned := format.Counted(g.Health.Owned, "slot", "slots")
		p.Leads = append(p.Leads, fmt.Sprintf("owns %s of %s", owned, g.Health.Lease))
	}
	return p
}
