//go:build unix

package lsh

import "syscall"

// spent are the seconds that cores have worked for this process, which a busy machine does not change much.
func spent() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
}
