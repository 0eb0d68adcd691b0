// Package command is the main function that the programs of examples/clientgo have in common.
package command
