/**
 * JSON values, checked and copied without the white space between their tokens. Says "no" to what is legal but rare:
 * escapes that JSON.stringify would write differently, duplicate keys, very many keys, very deep nesting.
 */

import { FRAMES, KEYS, MAX_DEPTH, MAX_LIVE_KEYS } from "./layout";
import { readNumber } from "./numbers";
import { copied, copyCanonical, skipSpace } from "./text";

/** Objects with more keys than this are left to the text functions. */
const MAX_KEYS: u32 = 64;
const OBJECT: u32 = 1;

/** Where the copy of the value last read ends. */
export let copyEnd: usize = 0;

/** Position after the literal `true`, `false` or `null` at `at`; 0 when there is none. */
@inline
export function literalEnd(at: usize): usize {
  const word = load<u32>(at);
  if (word == 0x65757274 || word == 0x6c6c756e) return at + 4;
  return word == 0x736c6166 && load<u8>(at, 4) == 0x65 ? at + 5 : 0;
}

@inline
function skip(at: usize): usize {
  return <u32>load<u8>(at) > 0x20 ? at : skipSpace(at);
}

/** Reads the value at `start` and copies it to `target`; returns the position after it, 0 for "no". */
export function readJson(start: usize, target: usize): usize {
  let at = start;
  let to = target;
  let depth: u32 = 0;
  let keys: u32 = 0;
  let firstKey: u32 = 0;
  let isObject = false;
  while (true) {
    const first = <u32>load<u8>(at);
    let isKeyNext = false;
    if (first == 0x22) {
      store<u8>(to, 0x22);
      at = copyCanonical(at + 1, to + 1);
      if (at == 0) return 0;
      to = copied;
    } else if (first == 0x7b || first == 0x5b) {
      store<u8>(to++, first);
      // The frame of the container around.
      if (depth >= MAX_DEPTH) return 0;
      const frame = FRAMES + (<usize>depth << 3);
      store<u32>(frame, firstKey);
      store<u32>(frame, <u32>isObject, 4);
      depth++;
      firstKey = keys;
      isObject = first == 0x7b;
      at = skip(at + 1);
      if (<u32>load<u8>(at) != first + 2) {
        if (!isObject) continue;
        isKeyNext = true;
      }
    } else if (first == 0x2d || first - 0x30 <= 9) {
      const end = readNumber(at);
      if (end == 0) return 0;
      let from = at;
      do {
        v128.store(to, v128.load(from));
        from += 16;
        to += 16;
      } while (from < end);
      to -= from - end;
      at = end;
    } else {
      const end = literalEnd(at);
      if (end == 0) return 0;
      store<u64>(to, load<u64>(at));
      to += end - at;
      at = end;
    }
    // After a value, or behind the brace of an object: close containers until one goes on.
    while (true) {
      if (!isKeyNext) {
        if (depth == 0) {
          copyEnd = to;
          return at;
        }
        at = skip(at);
        const byte = <u32>load<u8>(at);
        store<u8>(to++, byte);
        at++;
        if (byte != 0x2c) {
          if (byte != <u32>(isObject ? 0x7d : 0x5d)) return 0;
          keys = firstKey;
          depth--;
          const frame = FRAMES + (<usize>depth << 3);
          firstKey = load<u32>(frame);
          isObject = load<u32>(frame, 4) == OBJECT;
          continue;
        }
        at = skip(at);
        if (!isObject) break;
      }
      // A key and its colon.
      if (load<u8>(at) != 0x22) return 0;
      const keyStart = to + 1;
      store<u8>(to, 0x22);
      at = copyCanonical(at + 1, keyStart);
      if (at == 0) return 0;
      to = copied;
      if (!remember(keyStart, to - 1 - keyStart, firstKey, keys)) return 0;
      keys++;
      at = skip(at);
      if (load<u8>(at) != 0x3a) return 0;
      store<u8>(to++, 0x3a);
      at = skip(at + 1);
      break;
    }
  }
}

/** False when the object has the key already, or too many. */
@inline
function remember(start: usize, length: usize, firstKey: u32, keys: u32): bool {
  if (keys - firstKey >= MAX_KEYS || keys >= MAX_LIVE_KEYS) return false;
  const head = length >= 8 ? load<u64>(start) : load<u64>(start) & ((<u64>1 << (<u64>length << 3)) - 1);
  for (let key = KEYS + (<usize>firstKey << 4), end = KEYS + (<usize>keys << 4); key < end; key += 16) {
    if (load<u64>(key) == head && load<u32>(key, 12) == <u32>length) {
      if (length <= 8 || memory.compare(<usize>load<u32>(key, 8), start, length) == 0) return false;
    }
  }
  const key = KEYS + (<usize>keys << 4);
  store<u64>(key, head);
  store<u32>(key, <u32>start, 8);
  store<u32>(key, <u32>length, 12);
  return true;
}
