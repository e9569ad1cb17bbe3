// In which form an attribute lies on the device, and what a span of its keywords is there.
#pragma once
#include "batch.cuh"

namespace geniemq {

// How an attribute lies on the device.
struct Form {
  const unsigned long long* words;  // kFormRare: the ranks of frequent keywords, as a directory
  const uint32_t* table;  // kFormRare: where the list of each rare keyword starts; kFormPlanes: by keyword, its code
  uint32_t kind, place;   // place: Span::attribute of what is not on postings
};

enum FormKind : uint32_t { kFormPostings, kFormPlanes, kFormRare };

static_assert(sizeof(Form) == 24);

constexpr uint32_t kKinds = 3;  // as they follow each other: on postings, on planes, rare

// What a span becomes: one of each kind at most, those that are not there with lo = hi.
struct Resolved {
  Span of[kKinds];
};

__device__ inline Resolved look(const Form* forms, const Span& span) {
  Resolved r = {};
  const Form* at = forms + span.attribute;
  const Form form = {reinterpret_cast<const unsigned long long*>(__ldg(reinterpret_cast<const unsigned long long*>(&at->words))),
                     reinterpret_cast<const uint32_t*>(__ldg(reinterpret_cast<const unsigned long long*>(&at->table))),
                     __ldg(&at->kind), __ldg(&at->place)};
  switch (form.kind) {
    case kFormPostings:
      r.of[0] = span;
      break;
    case kFormPlanes:
      r.of[1] = {form.place, __ldg(form.table + span.lo), __ldg(form.table + span.hi), span.weight};
      break;
    case kFormRare: {
      const uint32_t lo = rankOf(form.words, span.lo), hi = rankOf(form.words, span.hi);
      const uint32_t first = span.lo - lo, end = span.hi - hi;  // rare keywords
      r.of[0] = {span.attribute, lo, hi, span.weight};
      r.of[2] = {form.place | (end == first + 1), __ldg(form.table + first), __ldg(form.table + end), span.weight};
    }
  }
  return r;
}

}  // namespace geniemq
