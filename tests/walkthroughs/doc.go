// Package walkthroughs does what the pages of docs/walkthroughs say, and holds their outputs to what the command prints.
package walkthroughs
