// Package command has the common parts of the main functions of the examples.
package command
