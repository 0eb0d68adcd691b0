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

// Options say how Run shows the figures.
type Options struct {
	// In and Out are the terminal. A nil In is the terminal of the process.
	In  io.Reader
	Out io.Writer
	// Palette has the colours.
	Palette view.Palette
	// Interval is the time between two refreshes, which must be positive.
	Interval time.Duration

	// width and height are the size of the screen in tests.
	width, height int
}

// Run shows the figures of a process until the user ends it or ctx ends. It returns an error if
// the process does not answer at the beginning; later the screen shows it.
func Run(ctx context.Context, c *Client, o Options) error {
	_, err := run(ctx, c, o)
	return err
}

// run returns the last state of the model.
func run(ctx context.Context, c *Client, o Options) (model, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop() // the commands end
	m := model{
		name: c.Name(), palette: o.Palette, reader: c.reader(ctx, o.Interval),
		width: o.width, height: o.height,
	}
	first := m.reader.refresh("")
	if first.err != nil {
		return m, first.err
	}
	m.figures.Overview = first.overview
	options := []tea.ProgramOption{
		tea.WithContext(ctx), tea.WithOutput(o.Out), tea.WithoutSignalHandler(),
	}
	if o.In != nil {
		options = append(options, tea.WithInput(o.In))
	}
	if o.width > 0 {
		options = append(options, tea.WithWindowSize(o.width, o.height))
	}
	profile := colorprofile.ASCII
	if o.Palette.Colours {
		profile = colorprofile.ANSI
	}
	last, err := tea.NewProgram(m, append(options, tea.WithColorProfile(profile))...).Run()
	if shown, ok := last.(model); ok {
		m = shown
	}
	if ctx.Err() != nil && errors.Is(err, tea.ErrProgramKilled) {
		return m, nil // Ctrl-C from elsewhere, or the end of the terminal
	}
	return m, err
}

// reader returns the functions of a model, which end with ctx.
func (c *Client) reader(ctx context.Context, interval time.Duration) reader {
	open := func(link string) answered {
		page, err := c.page(ctx, link)
		return answered{link, page, err}
	}
	return reader{
		wait: func() ticked {
			timer := time.NewTimer(interval)
			defer timer.Stop()
			select {
			case <-ctx.Done():
			case <-timer.C:
			}
			return ticked{}
		},
		refresh: func(link string) (r refreshed) {
			r.err = c.read(ctx, "", &r.overview)
			if r.err == nil && link != "" {
				r.page = open(link)
			}
			return r
		},
		open: open,
	}
}
