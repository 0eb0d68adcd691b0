package cli

import (
	"fmt"
	"runtime/metrics"
	"sync"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
	"github.com/tidings-go/tidings/internal/see/format"
)

// printer prints and counts the changes that handlers receive.
type printer struct {
	screen  *view.Screen
	secrecy view.Secrecy
	tally   *view.Tally

	mu     sync.Mutex // held by one handler at a time; guards render and err
	render func(view.Change) (string, error)
	err    error         // of the first failed change
	failed chan struct{} // closed when err is set
}

// show sets the types of the changes, and prints changes as lines. It must come before the first
// change.
func (p *printer) show(types []view.Type) {
	lines := view.NewLines(view.LinesOptions{
		Palette: p.screen.Palette(), Width: p.screen.Width, Types: types,
	})
	p.tally, p.failed = view.NewTally(types), make(chan struct{})
	p.render = func(c view.Change) (string, error) { return lines.Render(c), nil }
}

// print prints a change. Handlers call it.
func (p *printer) print(c view.Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return
	}
	text, err := p.render(p.secrecy.Apply(c))
	if err == nil {
		err = p.screen.Print(text)
	}
	if p.err = err; err != nil {
		close(p.failed)
	}
}

func (p *printer) note(text string) {
	p.screen.Note(p.screen.NotePalette().Dim("── " + view.Printable(text)))
}

// status returns the parts of the status line that demo and watch share.
func (p *printer) status(informers []tidings.Health, now time.Time) []string {
	objects, version := 0, ""
	for _, health := range informers {
		objects += health.Objects
		version = newerVersion(version, health.Version)
	}
	parts := []string{format.Counted(objects, "object", "objects") + " of " +
		format.Counted(len(informers), "type", "types")}
	if version != "" {
		parts = append(parts, "RV "+view.Printable(version))
	}
	parts = append(parts, fmt.Sprintf("%.0f events/s", p.tally.Rate(now)))
	return append(parts, "heap "+format.Bytes(heapSize()))
}

// newerVersion returns b if it is newer than a, or if the two cannot be compared.
func newerVersion(a, b string) string {
	order, err := resourceversion.CompareResourceVersion(b, a)
	if b != "" && (err != nil || order > 0) {
		return b
	}
	return a
}

// statusLine joins the parts of a status line, without the parts that do not fit on the screen.
func statusLine(screen *view.Screen, parts []string) string {
	p, text := screen.Palette(), ""
	for _, part := range parts {
		if text != "" {
			part = " · " + part
		}
		length := utf8.RuneCountInString("── " + text + part)
		if width := screen.Width(); text == "" || width == 0 || length < width {
			text += part
		}
	}
	return p.Dim("── ") + p.Bold(text)
}

func remaining(limit time.Duration, began, now time.Time) string {
	return format.Short(max(time.Second, limit-now.Sub(began)).Round(time.Second)) + " left"
}

// heapSize returns the size of this process's objects in bytes.
func heapSize() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
