// Of tiles in which few objects pass a filter, a list in place of bits.
//
// Where the host says so (FilterTiles::listing), because nobody but the (query, tile) kernel looks at what passes, filter_tiles writes the ids of
// the tile's objects that pass, 16 bits each, in any order, where their bits would begin, and no bits. passingOfTile says that it did. 8 KB are not
// written then for each filter and tile, nor read for each query and tile.
#pragma once
#include <cstdint>

namespace geniemq {

constexpr uint32_t kListed = 1u << 31;   // beside how many objects pass in a tile
constexpr uint32_t kMostListed = 512;    // objects

}  // namespace geniemq
