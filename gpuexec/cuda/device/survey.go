//go:build cuda

package device

import "github.com/geniemq/geniemq/gpuexec/cuda/abi"

// survey derives repeats from a part that has been copied, into the device's memory, and arranges its lists for the (query, tile) kernel
// (kernels/load.cu). It takes the part back to the host where it is streamed.
func (l *loader) survey(i int, repeats abi.Pointer) error {
	const slices = 16
	r, u := l.resident, l.upload
	part := &r.Parts[i]
	sections := part.Tiles * r.Attributes
	if sections == 0 {
		return nil
	}
	argument := abi.Survey{
		Data: r.dataOf(i), Sections: r.sections + abi.Pointer(part.FirstTile*r.Attributes*abi.SectionBytes), Repeats: repeats,
		Attributes: uint32(r.Attributes),
	}
	var list steps
	launch(&list, r.kernels.surveyRepeats, sections, slices, &argument)
	launch(&list, r.kernels.arrange, sections, slices, &argument)
	if r.Streamed {
		list.copyOut(r.hosts[i][:part.Units*abi.UnitBytes], r.dataOf(i))
	}
	return deviceError("surveying the index", list.run(u.stream, u.copied[0]))
}

// surveyed takes the repeats from the device.
func (l *loader) surveyed(repeats abi.Pointer) error {
	if len(l.repeats) == 0 {
		return nil
	}
	host := l.upload.buffers[0][:len(l.repeats)*4]
	var list steps
	list.copyOut(host, repeats)
	if err := list.run(l.upload.stream, l.upload.copied[0]); err != nil {
		return deviceError("surveying the index", err)
	}
	copy(l.repeats, abi.Array[uint32](host, 0, len(l.repeats)))
	return nil
}
