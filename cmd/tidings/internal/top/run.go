package top

import (
	"context"
	"errors"
	"io"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

// Options are the options of Run.
type Options struct {
	// In and Out are the terminal. Nil for In means the terminal of the process.
	In  io.Reader
	Out io.Writer
	// Palette colours the output.
	Palette view.Palette
	// Interval is the time between two refreshes. It must be positive.
	Interval time.Duration

	width, height int // the size of the screen in tests
}

// Run shows the figures of a process until the user quits or ctx ends. It returns an error if the
// first request fails; the screen shows the errors of later requests.
func Run(ctx context.Context, c *Client, o Options) error {
	_, err := run(ctx, c, o)
	return err
}

// run is Run, and returns the last state of the model.
func run(ctx context.Context, c *Client, o Options) (model, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop() // it ends the requests
	m := model{
		ctx: ctx, client: c, interval: o.Interval, palette: o.Palette, width: o.width, height: o.height,
	}
	if err := c.read(ctx, "?history=1", &m.figures.Overview); err != nil {
		return m, err
	}
	m.answered = time.Now()
	profile := colorprofile.ASCII
	if o.Palette.Colours {
		profile = colorprofile.ANSI
	}
	options := []tea.ProgramOption{
		tea.WithContext(ctx), tea.WithOutput(o.Out), tea.WithoutSignalHandler(),
		tea.WithColorProfile(profile),
	}
	if o.In != nil {
		options = append(options, tea.WithInput(o.In))
	}
	if o.width > 0 {
		options = append(options, tea.WithWindowSize(o.width, o.height))
	}
	last, err := tea.NewProgram(m, options...).Run()
	if shown, ok := last.(model); ok {
		m = shown
	}
	if ctx.Err() != nil && errors.Is(err, tea.ErrProgramKilled) {
		err = nil // Ctrl-C from elsewhere, or the end of the terminal
	}
	return m, err
}
