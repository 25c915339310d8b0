#include "runtime/text/jinja/TextOps.h"

#include <cstring>

namespace lathe::runtime::jinja {

Value mapChars(Meter &meter, const Text &text, const CharMap &map) {
  Builder out(meter);
  const std::string &bytes = text.bytes();
  meter.step(bytes.size() / 8);
  std::string piece;
  size_t begin = 0;
  for (const Text::Run &run : text.runs()) {
    // Runs are of whole characters where texts are made, but a slice by bytes
    // could differ: a character has the trust of its first byte.
    for (size_t at = begin; at < run.end; at += charWidth(bytes, at)) {
      map(piece, decodeAt(bytes, at), at);
      begin = at + charWidth(bytes, at);
      if (piece.size() > 4096) {
        out.add(piece, run.trusted);
        piece.clear();
      }
    }
    out.add(piece, run.trusted);
    piece.clear();
  }
  return out.take();
}

void appendLower(std::string &out, std::string_view bytes, char32_t c,
                 size_t at) {
  if (c != 0x3A3)
    return appendCased(out, c, Case::Lower);
  size_t after = at + charWidth(bytes, at);
  bool inWord = at > 0 && isCased(decodeAt(bytes, previousChar(bytes, at)));
  bool ends = after == bytes.size() || !isCased(decodeAt(bytes, after));
  appendUtf8(out, inWord && ends ? 0x3C2 : 0x3C3);
}

Value changeCase(Meter &meter, const Text &text, Case to) {
  return mapChars(meter, text, [&](std::string &out, char32_t c, size_t at) {
    if (to == Case::Lower)
      appendLower(out, text.bytes(), c, at);
    else
      appendCased(out, c, to);
  });
}

Value capitalize(Meter &meter, const Text &text) {
  return mapChars(meter, text, [&](std::string &out, char32_t c, size_t at) {
    if (at > 0)
      appendLower(out, text.bytes(), c, at);
    else
      appendCased(out, c, Case::Title);
  });
}

Value titleCase(Meter &meter, const Text &text) {
  bool inWord = false;
  return mapChars(meter, text, [&](std::string &out, char32_t c, size_t at) {
    if (inWord)
      appendLower(out, text.bytes(), c, at);
    else
      appendCased(out, c, Case::Title);
    inWord = isCased(c);
  });
}

Span stripSpan(std::string_view bytes, const std::string *chars, bool left,
               bool right) {
  auto strips = [&](size_t at) {
    if (!chars)
      return isSpace(decodeAt(bytes, at));
    return chars->find(bytes.substr(at, charWidth(bytes, at))) !=
           std::string::npos;
  };
  size_t begin = 0, end = bytes.size();
  while (left && begin < end && strips(begin))
    begin += charWidth(bytes, begin);
  while (right && end > begin) {
    size_t last = previousChar(bytes, end);
    if (!strips(last))
      break;
    end = last;
  }
  return {begin, end};
}

size_t findBytes(std::string_view bytes, std::string_view part, size_t from,
                 size_t to) {
  if (from > to)
    return std::string_view::npos;
  // std::string::find takes quadratic time on hostile text; memmem does not.
  const void *hit =
      memmem(bytes.data() + from, to - from, part.data(), part.size());
  return hit ? static_cast<size_t>(static_cast<const char *>(hit) -
                                   bytes.data())
             : std::string_view::npos;
}

size_t findLastBytes(Meter &meter, std::string_view bytes,
                     std::string_view part, size_t from, size_t to) {
  if (from > to || part.size() > to - from)
    return std::string_view::npos;
  for (size_t at = to - part.size();; --at) {
    if (std::memcmp(bytes.data() + at, part.data(), part.size()) == 0)
      return at;
    meter.step(1 + part.size() / 64);
    if (at == from)
      return std::string_view::npos;
  }
}

Value replaceText(Meter &meter, const Text &text, const Text &from,
                  const Text &to, Int count) {
  Builder out(meter);
  const std::string &bytes = text.bytes();
  meter.touch(bytes.size());
  size_t at = 0;
  for (; count != 0; --count) {
    meter.step();
    if (from.empty()) {
      // Before every character, and at the end.
      out.add(to);
      if (at == bytes.size())
        break;
      size_t end = at + charWidth(bytes, at);
      out.add(text, at, end);
      at = end;
      continue;
    }
    size_t hit = findBytes(bytes, from.bytes(), at, bytes.size());
    if (hit == std::string::npos)
      break;
    out.add(text, at, hit);
    out.add(to);
    at = hit + from.size();
  }
  out.add(text, at, bytes.size());
  return out.take();
}

std::vector<Span> lineSpans(std::string_view bytes, bool keepEnds) {
  std::vector<Span> lines;
  size_t begin = 0;
  for (size_t at = 0; at < bytes.size();) {
    size_t end = at + charWidth(bytes, at);
    if (isLineBreak(decodeAt(bytes, at))) {
      if (bytes[at] == '\r' && end < bytes.size() && bytes[end] == '\n')
        ++end;
      lines.emplace_back(begin, keepEnds ? end : at);
      begin = end;
    }
    at = end;
  }
  if (begin < bytes.size())
    lines.emplace_back(begin, bytes.size());
  return lines;
}

Value joinText(Meter &meter, const Text &separator, const Values &items,
               bool convert) {
  Builder out(meter);
  for (size_t i = 0; i < items.size(); ++i) {
    meter.step();
    if (i > 0)
      out.add(separator);
    if (convert)
      appendStr(out, items[i]);
    else if (items[i].isString())
      out.add(items[i].text());
    else
      raise("sequence item {}: expected str instance, {} found", i,
            typeName(items[i]));
  }
  return out.take();
}

} // namespace lathe::runtime::jinja
