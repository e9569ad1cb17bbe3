//go:build cuda

package device

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gorgonia.org/cu"

	"github.com/geniemq/geniemq/gpuexec"
)

// TestDeviceError: the class of a result survives wrapping and joining. Numbers are those of the driver's documentation.
func TestDeviceError(t *testing.T) {
	if err := deviceError("nothing", nil); err != nil {
		t.Errorf("no error became %v", err)
	}
	if err := deviceError("nothing", errors.Join(nil, nil)); err != nil {
		t.Errorf("no errors became %v", err)
	}
	sticky := map[int]bool{
		4: true, 214: true, 220: true, 226: true, 700: true, 702: true, 709: true, 710: true, 714: true, 715: true, 716: true, 717: true,
		718: true, 719: true, 721: true, 810: true, 911: true, 999: true,
	}
	for number := 1; number < 1000; number++ {
		of := driverError(number)
		for name, err := range map[string]error{
			"alone":   of,
			"wrapped": fmt.Errorf("closing: %w", of),
			"joined":  errors.Join(errors.New("first"), nil, driverError(1), fmt.Errorf("third: %w", errors.Join(of))),
			"again":   deviceError("inside", errors.Join(of, driverError(400))),
			"of both": fmt.Errorf("%w and %w", errors.New("other"), of),
		} {
			var device *gpuexec.DeviceError
			if !errors.As(deviceError("testing", err), &device) || device.Op != "testing" || !errors.Is(device, of) {
				t.Fatalf("%d %s: %v", number, name, device)
			}
			if device.Sticky != sticky[number] || device.OutOfMemory != (number == 2) {
				t.Errorf("%d %s: sticky %v, out of memory %v", number, name, device.Sticky, device.OutOfMemory)
			}
		}
	}
	// What an engine finds to be lost has no number.
	lost := deviceError("outside", fmt.Errorf("a batch: %w", &gpuexec.DeviceError{Op: "reading", Sticky: true, Err: errors.New("nonsense")}))
	if !strings.Contains(lost.Error(), "restart") {
		t.Errorf("%v", lost)
	}
	// The driver's results as cu has them, alone, among others and wrapped.
	for name, err := range map[string]error{
		"alone": deviceError("testing", cu.OutOfMemory), "others": deviceError("testing", nil, errors.New("first"), cu.OutOfMemory),
		"wrapped": deviceError("testing", fmt.Errorf("inside: %w", cu.OutOfMemory)),
	} {
		var device *gpuexec.DeviceError
		if !errors.As(err, &device) || !device.OutOfMemory || device.Sticky {
			t.Errorf("%s: %v", name, err)
		}
		if name != "wrapped" && (!errors.Is(err, driverError(2)) || errors.Is(err, cu.OutOfMemory)) {
			t.Errorf("%s does not say it in the driver's words: %v", name, err)
		}
	}
	both := deviceError("closing", errors.Join(driverError(2), driverError(719)))
	if !strings.Contains(both.Error(), "restart") {
		t.Errorf("out of memory on a lost device says %v", both)
	}
}

// TestImageError: auto falls back where the device or the driver is too old, and on nothing else.
func TestImageError(t *testing.T) {
	cannot := map[int]bool{200: true, 209: true, 218: true, 221: true, 222: true, 223: true, 300: true, 302: true, 303: true, 801: true}
	for number := 1; number < 1000; number++ {
		err := imageError("NVIDIA T4", deviceError("loading the kernels of match.cu", driverError(number)))
		if errors.Is(err, gpuexec.ErrNoCUDA) != cannot[number] || !errors.Is(err, driverError(number)) {
			t.Errorf("%d: %v", number, err)
		}
		if text := err.Error(); cannot[number] && !(strings.Contains(text, "NVIDIA T4") && strings.Contains(text, "8.0") && strings.Contains(text, "580")) {
			t.Errorf("%d does not say what is needed: %v", number, err)
		}
	}
	if err := imageError("NVIDIA T4", nil); err != nil {
		t.Errorf("no error became %v", err)
	}
}
