package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.out, "out", "", "the SVG file to write")
	flag.IntVar(&o.columns, "columns", 100, "the width of the terminal")
	flag.IntVar(&o.rows, "rows", 24, "the height of the terminal")
	flag.Parse()
	if err := run(o, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

// options are the choices of a picture.
type options struct {
	out           string
	columns, rows int
}

func run(o options, command []string) error {
	if o.out == "" || len(command) == 0 {
		return errors.New("usage: picture -out FILE COMMAND [ARGUMENT…]")
	}
	r, err := record(o, command)
	if err != nil {
		return err
	}
	return os.WriteFile(o.out, []byte(r.svg(o)), 0o644)
}

// record runs a command to its end in a terminal.
func record(o options, command []string) (*recording, error) {
	quoted := make([]string, len(command))
	for i, arg := range command {
		quoted[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
	}
	line := fmt.Sprintf("stty columns %d rows %d; exec %s", o.columns, o.rows,
		strings.Join(quoted, " "))
	cmd := exec.Command("script", "--quiet", "--return", "--command", line, "/dev/null")
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "SHELL=/bin/sh")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r, began := newRecording(o.columns), time.Now()
	for buffer := make([]byte, 1<<16); err == nil; {
		var n int
		n, err = out.Read(buffer)
		r.write(string(buffer[:n]), time.Since(began))
	}
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(command, " "), err)
	}
	return r, nil
}
