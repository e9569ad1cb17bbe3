//go:build cuda

package device

import (
	"errors"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
)

// A repeatSurvey derives repeats, and arranges the lists for the (query, tile) kernel (kernels/load.cu), part by part.
type repeatSurvey struct{ repeats abi.Pointer }

func newRepeatSurvey(repeats []uint32, u *uploader) (s *repeatSurvey, err error) {
	s = &repeatSurvey{}
	if s.repeats, err = allocDevice(max(1, abi.Units(4*len(repeats))) * abi.UnitBytes); err != nil {
		return nil, deviceError("allocating the survey", err)
	}
	if err := u.whole(s.repeats, abi.Bytes(repeats)); err != nil {
		return nil, errors.Join(err, s.free())
	}
	return s, nil
}

// part surveys a part that has been copied, and takes it back to the host where it is streamed.
func (s *repeatSurvey) part(r *resident, u *uploader, i int) error {
	const slices = 16
	part := &r.Parts[i]
	sections := part.Tiles * r.Attributes
	if sections == 0 {
		return nil
	}
	argument := abi.Survey{
		Data: r.dataOf(i), Sections: r.sections + abi.Pointer(part.FirstTile*r.Attributes*abi.SectionBytes), Repeats: s.repeats,
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

func (s *repeatSurvey) finish(repeats []uint32, u *uploader) error {
	if len(repeats) == 0 {
		return nil
	}
	host := u.buffers[0][:len(repeats)*4]
	var list steps
	list.copyOut(host, s.repeats)
	if err := list.run(u.stream, u.copied[0]); err != nil {
		return deviceError("surveying the index", err)
	}
	copy(repeats, abi.Array[uint32](host, 0, len(repeats)))
	return nil
}

func (s *repeatSurvey) free() error { return deviceError("freeing the survey", freeDevice(s.repeats)) }

// longestRun is the most times that one id is in a list, at least 1.
func longestRun(starts, ids []uint32) uint32 {
	longest := uint32(1)
	for i := range len(starts) - 1 {
		run := uint32(1)
		for j := starts[i] + 1; j < starts[i+1]; j++ {
			if run++; ids[j] != ids[j-1] {
				run = 1
			}
			longest = max(longest, run)
		}
	}
	return longest
}
