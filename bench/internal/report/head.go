package report

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Head says when, where, how and with what a report was made, in Markdown.
func Head(r Report, arguments []string) (string, error) {
	cpu, err := field("/proc/cpuinfo", "model name")
	if err != nil {
		return "", err
	}
	memory, err := field("/proc/meminfo", "MemTotal")
	if err != nil {
		return "", err
	}
	kilobytes, err := strconv.ParseFloat(strings.TrimSuffix(memory, " kB"), 64)
	if err != nil {
		return "", fmt.Errorf("report: /proc/meminfo: %w", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "- Date: %s; it took %s.\n", time.Now().Format(time.DateOnly), r.Took.Round(time.Second))
	fmt.Fprintf(&b, "- Machine: %s, %d cores, %.0f GB of memory, %s/%s.\n", cpu, runtime.NumCPU(), kilobytes/1e6, runtime.GOOS, runtime.GOARCH)
	fmt.Fprintf(&b, "- Versions: %s, client-go %s.\n", runtime.Version(), moduleVersion("k8s.io/client-go"))
	fmt.Fprintf(&b, "- Command: `%s`; %s of each case on each stack.\n", strings.TrimSpace("bench "+strings.Join(arguments, " ")), runs(r.Runs))
	return b.String(), nil
}

func runs(n int) string {
	if n == 1 {
		return "one run"
	}
	return fmt.Sprintf("%d runs", n)
}

// field returns the first value of a name in a file of /proc.
func field(file, name string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("report: the machine is described by Linux' /proc: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value), nil
		}
	}
	return "unknown", nil
}

// moduleVersion returns the version of a module that this program was built with.
func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return m.Version
			}
		}
	}
	return "unknown"
}
