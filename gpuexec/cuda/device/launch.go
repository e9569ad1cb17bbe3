//go:build cuda

package device

import (
	"github.com/geniemq/geniemq/gpuexec/cuda/abi"
	"github.com/geniemq/geniemq/gpuexec/cuda/plan"
	"github.com/geniemq/geniemq/gpuexec/cuda/rescoring"
)

// A launcher records kernels on an index into the steps of a lane.
type launcher struct {
	*lane
	*resident
}

// at is where in the lane's arena something lies.
func (l launcher) at(offset int64) abi.Pointer { return l.arena + abi.Pointer(offset) }

// A pieceLauncher records the kernels of a piece. What it gives them is addresses: sizes and offsets are the piece's.
type pieceLauncher struct {
	launcher
	*plan.Piece
}

// record records all of the piece.
func (l pieceLauncher) record() {
	l.mark(stageUpload)
	l.steps.copyIn(l.arena, l.in[:l.InBytes()])
	l.parts()
	l.mark(stageSelect)
	b := l.batch()
	if l.Filters.Only {
		launch(&l.steps, l.kernels.firstPassing, len(l.Queries), 1, &abi.FilteredBatch{Batch: b, Filters: l.filters()})
	}
	selected := l.kernels.answer
	if l.Scores.Orders.Count == len(l.Queries) { // scores are all that orders them
		selected = l.kernels.choose
	}
	launch(&l.steps, selected, len(l.Queries), 1, &b)
	l.compareTexts(l.Scores.Edit())
	l.compareTerms(l.Scores.Terms())
	l.mark(stageDownload)
	l.steps.copyOut(l.out[:l.OutBytes()], l.at(l.States))
	l.mark(stageEnd)
}

// batch is the argument of the kernels of match.cu and select.cu.
func (l pieceLauncher) batch() abi.Batch {
	b := abi.Batch{
		Rare:    l.rare,
		Queries: l.arena, Spans: l.at(l.Spans), States: l.at(l.States), Entries: l.at(l.Candidates), Out: l.at(l.Answers),
		Attributes: uint32(l.Attributes), Objects: l.Objects(), Base: l.Tiles.Base(), RoundSpans: uint32(max(1, l.RoundSpans())),
	}
	if l.Planes != nil {
		b.PlanesOfGroup = uint32(l.Planes.OfGroup)
	}
	return b
}

// parts records the kernels that go through the index, part after part. Thresholds carry over from part to part, since ids
// ascend.
func (l pieceLauncher) parts() {
	for i := range l.Sliced {
		l.planSliced(&l.Sliced[i])
	}
	b := l.batch()
	l.resolve()
	l.partStream.begin(&l.steps, l.resident)
	width := l.FirstWave
	for i := range l.Parts {
		part := &l.Parts[i]
		b.Data, b.ResidentTile = l.dataOf(i), uint32(part.FirstTile)
		b.Sections = l.sections + abi.Pointer(part.FirstTile*l.Attributes*abi.SectionBytes)
		b.Planes = b.Data // where a part begins
		l.mark(stageMatch)
		l.partStream.await(&l.steps, l.resident, i)
		l.filterTiles(&b, part)
		width = l.tiles(b, part, width)
		if len(l.Sliced) > 0 && i > 0 {
			l.mark(stageSelect)
			b.FirstQuery = uint32(l.Tiled)
			launch(&l.steps, l.kernels.compact, len(l.Queries)-l.Tiled-l.Bound.Count, 1, &b)
			l.mark(stageMatch)
		}
		for j := range l.Sliced {
			l.matchSliced(&l.Sliced[j], part, b.Planes)
		}
		l.partStream.consumed(&l.steps, i)
	}
	l.bound()
}

// filters is what gates meet.
func (l pieceLauncher) filters() abi.Filters {
	f := &l.Filters
	return abi.Filters{
		Passing: l.at(f.Passing), PassingOfTile: l.at(f.PassingOfTile), FilterOf: l.at(f.Of),
		PassingWords: uint32(l.Tiles.Len() * abi.TileWords),
	}
}

// filterTiles records what finds out which objects of a part pass, where there are filters.
func (l pieceLauncher) filterTiles(b *abi.Batch, part *plan.Part) {
	f := &l.Filters
	if f.Count == 0 {
		return
	}
	argument := abi.FilterTiles{
		Data: b.Data, Sections: b.Sections, Planes: b.Planes, Rare: b.Rare, Forms: l.forms, Numbers: l.numbers,
		Filters: l.at(f.Heads), Clauses: l.at(f.Clauses), Spans: l.at(f.Spans), Ranges: l.at(f.Ranges),
		Passing: l.at(f.Passing), PassingOfTile: l.at(f.PassingOfTile), Totals: l.at(f.Totals),
		Attributes: b.Attributes, Objects: b.Objects, ResidentTile: b.ResidentTile,
		Base: b.Base, PlanesOfGroup: b.PlanesOfGroup, PassingWords: uint32(l.Tiles.Len() * abi.TileWords), Listing: l.Listing(l.Index),
	}
	for done := 0; done < part.Tiles; {
		step := min(part.Tiles-done, abi.MaxGridY)
		argument.FirstTile = uint32(part.FirstTile + done)
		launch(&l.steps, l.kernels.filterTiles, f.Count, step, &argument)
		done += step
	}
}

// resolve records the resolution of the spans of the (query, tile) kernel.
func (l pieceLauncher) resolve() {
	slots := l.Slots()
	if slots == 0 || l.Tiled == 0 {
		return
	}
	l.mark(stagePlan)
	launch(&l.steps, l.kernels.resolve, l.Tiled, 1, &abi.Resolve{
		Queries: l.arena, Spans: l.at(l.Spans), Forms: l.forms,
		Resolved: uint32((l.Resolved - l.Spans) / abi.SpanBytes), Slots: uint32(slots),
	})
}

// tiles records the (query, tile) kernel on a part, its tiles in waves, each but the last followed by a compaction.
// It returns the width of the wave that comes next.
func (l pieceLauncher) tiles(b abi.Batch, part *plan.Part, width int) int {
	tiles := l.Tiles.Len()
	if l.Tiled == 0 {
		return width
	}
	for tile, end := part.FirstTile, part.FirstTile+part.Tiles; tile < end; {
		count := min(width, l.TileWave, end-tile)
		l.wave(b, tile, count)
		tile += count
		if tile < tiles {
			l.mark(stageSelect)
			b.FirstQuery = 0
			launch(&l.steps, l.kernels.compact, l.Tiled, 1, &b)
			l.mark(stageMatch)
		}
		width = min(width*l.policy.Profile.Waves.Growth, tiles)
	}
	return width
}

// wave records a wave of tiles: a launch per width of counters.
func (l pieceLauncher) wave(b abi.Batch, tile, count int) {
	for _, t := range l.Tile {
		b.FirstQuery = uint32(t.First)
		blocks := l.kernels.Tile[t.Variant].Blocks
		for done := 0; done < count; {
			step := min(count-done, abi.MaxGridY/blocks)
			b.FirstTile = uint32(tile + done)
			if t.Filtered {
				launch(&l.steps, l.kernels.tileFiltered[t.Variant], t.Count, step*blocks, &abi.FilteredBatch{Batch: b, Filters: l.filters()})
			} else {
				launch(&l.steps, l.kernels.tile[t.Variant], t.Count, step*blocks, &b)
			}
			done += step
		}
	}
}

// planSliced records the planning of a launch of the shared-decode kernel, whose memory it needs until its last match.
func (l pieceLauncher) planSliced(s *plan.SlicedLaunch) {
	at := func(offset int64) abi.Pointer { return l.at(s.Scratch + offset) }
	v := &l.kernels.Device.Sliced[s.Counters]
	argument := abi.Plan{
		Queries: l.arena, Spans: l.at(l.Spans), Attributes: l.tables, UnitAttribute: l.tables + abi.Pointer(l.Planes.Tables.Units),
		Programs: at(0), Lists: at(s.Lists), Lengths: at(s.Lengths), Records: at(s.Records), Biases: at(s.Biases),
		Chunks: at(s.Chunks), Tasks: at(s.Tasks), Rows: at(s.Rows), Counts: at(s.Counts), Units: at(s.Units),
		FirstQuery: uint32(s.First), QueriesOfBatch: uint32(s.Count), PerBlock: uint32(s.PerBlock),
		Warps: uint32(v.Warps), Slots: uint32(v.Slots), Decoders: uint32(v.Decoders),
		UnitsOfKind: uint32(len(l.Planes.UnitAttribute)), StageOctets: uint32(v.StageOctets),
		MaxRows: uint32(s.MaxRows), MaxChunks: uint32(s.MaxChunks), MaxTrees: uint32(s.MaxTrees), MaxTasks: uint32(s.MaxTasks),
		MaxList: uint32(s.MaxList),
	}
	l.mark(stagePlan)
	launch(&l.steps, l.kernels.slicedPlan, s.Blocks, 1, &argument)
}

// matchSliced records the match on a part. Between parts the queries must be compacted: a launch begins with at most k entries
// per query, and with the thresholds of the parts before.
func (l pieceLauncher) matchSliced(s *plan.SlicedLaunch, part *plan.Part, planes abi.Pointer) {
	at := func(offset int64) abi.Pointer { return l.at(s.Scratch + offset) }
	first := part.FirstTile * abi.TileGroups
	argument := abi.Sliced{
		Planes: planes, Programs: at(0), Lists: at(s.Lists), Lengths: at(s.Lengths), Records: at(s.Records),
		Biases: at(s.Biases), Queries: l.arena, States: l.at(l.States), Entries: l.at(l.Candidates),
		Waves: at(s.Waves), Tickets: at(s.Tickets),
		PlanesOfGroup: uint32(l.Planes.OfGroup), ResidentGroup: uint32(first), FirstGroup: uint32(first), Groups: uint32(part.Groups),
		FirstWave: uint32(s.FirstWave), WaveGroups: uint32(s.WaveGroups),
		Base: l.Tiles.Base(), FirstQuery: uint32(s.First), QueriesOfBatch: uint32(s.Count), PerBlock: uint32(s.PerBlock),
		Stages: abi.SlicedStages, StageOctets: uint32(l.kernels.Device.Sliced[s.Counters].StageOctets),
		MaxTrees: uint32(s.MaxTrees), MaxList: uint32(s.MaxList),
	}
	if first > 0 {
		argument.FirstWave = argument.WaveGroups
	}
	l.steps.Fill(at(s.Waves), s.End-s.Waves)
	if l.Filtered(s.First, s.Count) {
		launch(&l.steps, l.kernels.slicedFiltered[s.Counters], s.Blocks, s.Columns, &abi.FilteredSliced{Sliced: argument, Filters: l.filters()})
	} else {
		launch(&l.steps, l.kernels.sliced[s.Counters], s.Blocks, s.Columns, &argument)
	}
}

// bound records the launches of the bound.
func (l pieceLauncher) bound() {
	s := &l.Bound
	if s.Count == 0 {
		return
	}
	k, c := l.kernels, l.Codes
	masks, ranges, marks := l.at(s.Scratch), l.at(s.Scratch+s.Ranges), l.at(s.Scratch+s.Marks)
	l.mark(stagePlan)
	planned := abi.BoundPlan{
		Queries: l.arena, Spans: l.at(l.Spans), CodeOf: l.codes + abi.Pointer(c.CodeOf), ColumnOf: l.codes + abi.Pointer(c.ColumnOfAt),
		Masks: masks, Ranges: ranges, FirstQuery: uint32(s.First), QueriesOfBatch: uint32(s.Count),
		RowBytes: uint32(c.RowBytes()), KSteps: uint32(c.Steps()),
	}
	l.steps.Fill(masks, s.Ranges)
	warps := k.boundPlan.threads / abi.WarpLanes
	launch(&l.steps, k.boundPlan, (s.Count+warps-1)/warps, 1, &planned)
	l.mark(stageMatch)
	l.steps.Fill(marks, s.End-s.Marks)
	match := abi.BoundMatch{
		Codes: l.codes + abi.Pointer(c.Row(0)), Masks: masks, Ranges: ranges, Queries: l.arena, States: l.at(l.States),
		Entries: l.at(l.Candidates), Marks: marks, RowBytes: planned.RowBytes, KSteps: planned.KSteps,
		FirstQuery: planned.FirstQuery, QueriesOfBatch: planned.QueriesOfBatch, Base: l.Tiles.Base(),
	}
	first, waves := k.boundMatch, &l.policy.Profile.Waves
	first.shared = k.boundShared + c.Steps()*abi.StepBytes
	for object, count := range waves.Bound(c.Objects) {
		match.FirstObject, match.Objects, match.Most = uint32(object), uint32(count), uint32(count/waves.BoundShare)
		launch(&l.steps, first, s.Blocks, s.Columns, &match)
		if l.Filtered(s.First, s.Count) {
			launch(&l.steps, k.boundFiltered, s.Count, 1, &abi.FilteredBound{Bound: match, Filters: l.filters()})
		} else {
			launch(&l.steps, k.boundCount, s.Count, 1, &match)
		}
	}
}

// compareTexts records the comparison of candidates with patterns, a launch per class of these.
func (l pieceLauncher) compareTexts(p *rescoring.Part) {
	for class, some := range p.Launches {
		if some.Tasks == 0 {
			continue
		}
		l.mark(stageVerify)
		kernel := l.masked(l.kernels.verifyNarrow, l.kernels.verifyWide, 1<<class)
		launch(&l.steps, kernel, some.Tasks, 1, &abi.Verify{
			Texts: l.texts, Starts: l.starts(), Out: l.at(l.Answers), Tasks: l.at(p.Tasks), Patterns: l.at(p.Words),
			Distances: l.at(p.Scores), FirstTask: uint32(some.First), Lanes: 1 << class,
			Symbols: uint32(l.Texts.Symbols.Count), Base: l.Tiles.Base(),
		})
	}
}

// compareTerms records the comparison of candidates with terms, a launch per column, and the order of those whose hits come back alone.
func (l pieceLauncher) compareTerms(p *rescoring.Part) {
	for i, some := range p.Launches {
		if some.Tasks == 0 {
			continue
		}
		l.mark(stageVerify)
		t, memory := l.Originals.Terms[i], l.resident.terms[i]
		launch(&l.steps, l.kernels.scoreTerms, some.Tasks, t.Blocks(some.Ranks), &abi.Terms{
			Data: memory + abi.Pointer(t.TableBytes()), Tiles: memory, Out: l.at(l.Answers), States: l.at(l.States),
			Tasks: l.at(p.Tasks), Asked: l.at(p.Words), Scores: l.at(p.Scores),
			FirstTask: uint32(some.First), Lanes: uint32(t.Lanes()), Objects: t.Objects(), Base: l.Tiles.Base(), Ranks: uint32(t.Ranks()),
		})
	}
	if o := &l.Scores.Orders; o.Count > 0 {
		launch(&l.steps, l.kernels.orderTerms.Sharing(o.Shared()), o.Count, 1, &abi.TermsOrders{
			Out: l.at(l.Answers), States: l.at(l.States), Scores: l.at(p.Scores), Orders: l.at(o.Tasks), Heads: l.at(o.Heads), Hits: l.at(o.Hits),
		})
	}
}

// masked is the kernel for the symbols of the texts, with shared memory for the masks of patterns of so many lanes.
func (l launcher) masked(narrow, wide function, lanes int) function {
	if l.Texts.Symbols.Bytes() == 1 {
		return narrow.Sharing(8 * l.Texts.Symbols.Count * lanes)
	}
	return wide.Sharing(abi.HashedMaskBytes * lanes)
}

// A scanLauncher records the kernels of a piece of a scan.
type scanLauncher struct {
	launcher
	*plan.ScanPiece
}

func (l scanLauncher) record() {
	n := len(l.Jobs)
	b := abi.Batch{Queries: l.arena, States: l.at(l.States), Entries: l.at(l.Candidates), Out: l.at(l.Answers)}
	l.mark(stageUpload)
	l.steps.copyIn(l.arena, l.in[:l.InBytes()])
	l.mark(stageVerify)
	l.Waves(func(first, count int) {
		if first > 0 {
			launch(&l.steps, l.kernels.compact, n, 1, &b)
		}
		l.wave(first, count)
	})
	launch(&l.steps, l.kernels.answer, n, 1, &b)
	l.mark(stageDownload)
	l.steps.copyOut(l.out[:l.OutBytes()], l.at(l.States))
	l.mark(stageEnd)
}

// wave records a wave, a launch per class of patterns.
func (l scanLauncher) wave(first, count int) {
	k := l.kernels
	argument := abi.Scan{
		Texts: l.texts, Starts: l.starts(), Patterns: l.at(l.Patterns), Scans: l.at(l.Scans),
		Queries: l.arena, States: l.at(l.States), Entries: l.at(l.Candidates),
		First: uint32(first), End: uint32(first + count), Symbols: uint32(l.Texts.Symbols.Count), Base: l.Tiles.Base(),
		Ngram: uint32(l.NGram),
	}
	for _, class := range l.Classes {
		argument.FirstQuery, argument.Lanes = uint32(class.First), uint32(class.Lanes)
		kernel := l.masked(k.scanNarrow, k.scanWide, class.Lanes)
		launch(&l.steps, kernel, class.Count, (count+k.ScanObjects-1)/k.ScanObjects, &argument)
	}
}
