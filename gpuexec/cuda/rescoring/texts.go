package rescoring

import (
	"context"
	"sync"

	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/texts"
	"github.com/geniemq/geniemq/gpuexec/run"
	"github.com/geniemq/geniemq/index/verify"
)

// Texts say how large the texts of a range of an index's tiles are on the device, and how they are encoded there, so that
// candidates are compared where they are found (kernels/verify.cu). Package texts says how a text is encoded.
//
// Texts stay on the host, where the CPU compares them, when the memory does not suffice, when the index is streamed, and
// when more than 65,535 different code points occur.
type Texts struct {
	Tiles   run.Tiles
	Objects int
	Symbols texts.Symbols
	Units   int64 // of all texts

	Longest int // symbols of a text

	Source verify.Texts // that are compared
}

// surveyTexts lays out the texts of a range of tiles. It is nil when they cannot be on the device.
func surveyTexts(ctx context.Context, x verify.Texts, tiles run.Tiles, c *run.Crew) (*Texts, error) {
	t := &Texts{Tiles: tiles, Objects: int(tiles.Objects(x.Objects())), Source: x}
	var all texts.Survey
	var mu sync.Mutex // of all
	err := c.Run(ctx, tiles.Len(), func(_ *run.Shift, i int) {
		s := &texts.Survey{}
		for id, end := idsOf(x, tiles.First+i); id < end; id++ {
			s.Add(x.Text(id))
		}
		mu.Lock()
		defer mu.Unlock()
		all.Join(s)
	})
	if err != nil {
		return nil, err
	}
	t.Longest = all.Longest
	symbols, units, ok := all.Symbols()
	if !ok {
		return nil, nil
	}
	t.Symbols, t.Units = *symbols, units
	return t, nil
}

// idsOf are the objects of a tile.
func idsOf(x verify.Texts, tile int) (first, end uint32) {
	return uint32(tile) * run.TileObjects, uint32(min(uint64(tile+1)*run.TileObjects, uint64(x.Objects())))
}

// DeviceBytes is the memory of the texts on the device: texts, then where each starts.
func (t *Texts) DeviceBytes() int64 {
	if t == nil {
		return 0
	}
	return (t.Units+abi.Units(4*t.Objects))*abi.UnitBytes + abi.UnitBytes
}

// Each calls write with the texts, tile after tile, and then with where each starts. As many tiles are encoded at a time as there are cores.
func (t *Texts) Each(ctx context.Context, c *run.Crew, write func(array []byte)) error {
	starts := make([]uint32, 0, t.Objects)
	encoded := make([]encodedTexts, min(c.Size(), max(1, t.Tiles.Len())))
	var at uint32
	for first := t.Tiles.First; first < t.Tiles.End; first += len(encoded) {
		n := min(len(encoded), t.Tiles.End-first)
		if err := c.Run(ctx, n, func(_ *run.Shift, i int) { t.encode(&encoded[i], first+i) }); err != nil {
			return err
		}
		for i := range encoded[:n] {
			for _, length := range encoded[i].Units {
				starts = append(starts, at)
				at += length
			}
			write(encoded[i].Data)
		}
	}
	write(abi.Bytes(starts))
	return nil
}

// encodedTexts are the texts of a tile as the device wants them. The memory is used again.
type encodedTexts struct {
	Data  []byte
	Units []uint32 // of each text
}

// encode encodes the texts of a tile of the index.
func (t *Texts) encode(e *encodedTexts, tile int) {
	e.Data, e.Units = e.Data[:0], e.Units[:0]
	for id, end := idsOf(t.Source, tile); id < end; id++ {
		start := len(e.Data)
		e.Data = t.Symbols.Append(e.Data, t.Source.Text(id))
		e.Units = append(e.Units, uint32((len(e.Data)-start)/abi.UnitBytes))
	}
}
