// Package command is what the main functions of the examples have in common.
package command
