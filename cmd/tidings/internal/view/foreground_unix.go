//go:build unix

package view

import "golang.org/x/sys/unix"

// isForeground reports whether this process may read a terminal and change its settings. One in the
// background is stopped if it does.
func isForeground(fd int) bool {
	group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
