//go:build !race

package raced

// Detector is whether the race detector runs.
const Detector = false
