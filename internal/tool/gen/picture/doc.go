// Command picture runs a command in a terminal of a fixed size and writes its output as an
// animated SVG, which browsers show without a script. `make pictures` runs it.
//
//	script(1) ─▶ recording: lines and status lines, with times ─▶ SVG
//
// A [terminal] understands the escape sequences of this repository's command only: colours, and the
// erasing of the last line. The SVG has each line once and moves them: three lists of keyframes
// scroll the lines, place the status line, and change its text.
package main
