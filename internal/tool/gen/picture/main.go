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
	var r recording
	out := flag.String("out", "", "the SVG file to write")
	flag.IntVar(&r.columns, "columns", 100, "the width of the terminal")
	flag.IntVar(&r.rows, "rows", 24, "the height of the terminal")
	flag.Parse()
	err := errors.New("usage: picture -out FILE COMMAND [ARGUMENT…]")
	if *out != "" && flag.NArg() > 0 {
		err = r.run(flag.Args())
	}
	if err == nil {
		err = os.WriteFile(*out, []byte(r.svg()), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

// run runs a command to its end in a terminal.
func (r *recording) run(command []string) error {
	words := []string{fmt.Sprintf("stty columns %d rows %d; exec", r.columns, r.rows)}
	for _, arg := range command {
		words = append(words, "'"+strings.ReplaceAll(arg, "'", `'\''`)+"'")
	}
	cmd := exec.Command("script", "--quiet", "--return", "--command", strings.Join(words, " "), "/dev/null")
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "SHELL=/bin/sh")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	began := time.Now()
	for buffer := make([]byte, 1<<16); err == nil; {
		var n int
		n, err = out.Read(buffer)
		r.write(string(buffer[:n]), time.Since(began))
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(command, " "), err)
	}
	return nil
}
