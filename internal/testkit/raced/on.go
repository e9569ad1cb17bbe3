//go:build race

package raced

// Detector is whether the race detector runs, under which a test takes some ten times as long.
const Detector = true
