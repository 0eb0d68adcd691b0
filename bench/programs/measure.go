package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// figures are those of one run. Memory is in bytes.
type figures struct {
	peak, resident, heap float64       // until and after the time of rest
	cpu, wall            time.Duration // until the program was ready
	later                time.Duration // CPU during the time of rest
}

func (f figures) String() string {
	return fmt.Sprintf("peak %.0f MB, resident %.0f MB, live heap %.0f MB, CPU %v and %v, start %v",
		f.peak/1e6, f.resident/1e6, f.heap/1e6, f.cpu, f.later,
		f.wall.Round(time.Millisecond))
}

// startLimit bounds the time until a program is ready.
const startLimit = 5 * time.Minute

// measure runs a program once.
func (c *copies) measure(
	ctx context.Context, v variant, s *cluster, o options,
) (f figures, err error) {
	s.reset()
	ctx, cancel := context.WithTimeout(ctx, startLimit+o.rest+time.Minute)
	defer cancel()
	p, err := c.start(ctx, v, s.kubeconfig, o.pods)
	if err != nil {
		return f, err
	}
	defer func() {
		if ended := p.stop(); err != nil {
			err = fmt.Errorf("%w; the program: %w, and its last lines:\n%s",
				err, ended, indent(p.tail()))
		}
	}()
	if c.readyz != "" {
		err = p.awaitURL(ctx, c.readyz)
	} else {
		_, err = p.await(ctx, c.ready)
	}
	if err != nil {
		return f, err
	}
	f.wall = time.Since(p.begin)
	if f.cpu, err = p.cpu(); err != nil {
		return f, err
	}
	select {
	case <-time.After(o.rest):
	case <-p.ended:
		return f, errors.New("it has ended")
	case <-ctx.Done():
		return f, ctx.Err()
	}
	used, err := p.cpu()
	if err != nil {
		return f, err
	}
	f.later = used - f.cpu
	if f.peak, f.resident, err = p.memory(); err != nil {
		return f, err
	}
	f.heap, err = p.liveHeap(ctx)
	return f, err
}

// process is a running program.
type process struct {
	*exec.Cmd
	begin time.Time
	ended chan struct{} // closed after the last line and the end
	err   error         // of the end

	mu    sync.Mutex // guards the rest
	lines []string
	more  chan struct{} // closed by the next line
}

// start starts a program.
func (c *copies) start(
	ctx context.Context, v variant, kubeconfig string, pods int,
) (*process, error) {
	read, write := io.Pipe()
	var arguments []string
	for _, argument := range c.arguments {
		arguments = append(arguments, strings.ReplaceAll(argument, "KUBECONFIG", kubeconfig))
	}
	p := &process{
		Cmd:   exec.CommandContext(ctx, c.binary(v), arguments...),
		ended: make(chan struct{}), more: make(chan struct{}),
	}
	p.Dir, p.Stdout, p.Stderr = c.dirs[v], write, write
	p.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, fmt.Sprintf("PROGRAMS_PODS=%d", pods))
	p.Env = append(p.Env, c.environment...)
	p.begin = time.Now()
	if err := p.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.Wait()
		_ = write.Close() // a pipe in memory: it cannot fail
	}()
	go p.read(read)
	return p, nil
}

// read keeps the lines of the program's output until it has ended.
func (p *process) read(from io.Reader) {
	defer close(p.ended)
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.mu.Lock()
		p.lines = append(p.lines, lines.Text())
		close(p.more)
		p.more = make(chan struct{})
		p.mu.Unlock()
	}
	_, _ = io.Copy(io.Discard, from) // after a line that is too long
}

// await waits for a line with a text and returns it.
func (p *process) await(ctx context.Context, text string) (string, error) {
	for seen := 0; ; {
		p.mu.Lock()
		lines, more := p.lines[seen:], p.more
		p.mu.Unlock()
		for _, line := range lines {
			if strings.Contains(line, text) {
				return line, nil
			}
		}
		seen += len(lines)
		select {
		case <-more:
		case <-p.ended:
			return "", errors.New("it has ended")
		case <-ctx.Done():
			return "", fmt.Errorf("no line with %q: %w", text, ctx.Err())
		}
	}
}

// tail returns the last lines of the output.
func (p *process) tail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines[max(0, len(p.lines)-20):], "\n")
}

// stop kills the program and returns the reason of its end.
func (p *process) stop() error {
	if err := p.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.ended
	return p.err
}

// cpu returns the user and system time so far.
func (p *process) cpu() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Process.Pid))
	if err != nil {
		return 0, err
	}
	// After the name in parentheses: field 3 on, of which 14 and 15 are the times.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	ticks := 0
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(string(field))
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	const tick = 10 * time.Millisecond // Linux gives programs 100 in a second
	return time.Duration(ticks) * tick, nil
}

// memory returns the largest and the present resident set.
func (p *process) memory() (peak, resident float64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		var kilobytes float64
		switch name, value, _ := strings.Cut(line, ":"); name {
		case "VmHWM", "VmRSS":
			if _, err := fmt.Sscanf(value, "%f kB", &kilobytes); err != nil {
				return 0, 0, fmt.Errorf("%s: %w", strings.TrimSpace(line), err)
			}
			if name == "VmHWM" {
				peak = kilobytes * 1024
			} else {
				resident = kilobytes * 1024
			}
		}
	}
	return peak, resident, nil
}

// liveHeap asks the program for its live heap.
func (p *process) liveHeap(ctx context.Context) (heap float64, err error) {
	if err := p.Process.Signal(syscall.SIGUSR1); err != nil {
		return 0, err
	}
	line, err := p.await(ctx, "programs: live heap")
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscanf(line, "programs: live heap %f", &heap)
	return heap, err
}

// awaitURL waits until a server of the program answers with 200.
func (p *process) awaitURL(ctx context.Context, url string) error {
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			if err := response.Body.Close(); err != nil {
				return err
			}
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-p.ended:
			return errors.New("it has ended")
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer with 200: %w", url, ctx.Err())
		}
	}
}
