/** The least and the greatest text of a block, by their bytes, which is the order of their code points. */

import { GREATEST, HAS_BOUNDS, LEAST, NULL_BITS, NULLS, ROWS, TEXT, TEXT_SHIFT, VALUES } from "./layout";

/** Leaves the rows of the two in the column; -1 where there is none. `firstBit` is the first row's bit in bitmaps. */
export function findBounds(column: usize, firstBit: u32): void {
  const rows = load<u32>(column, ROWS);
  const nulls = load<u32>(column, NULLS);
  let least: i32 = -1;
  let greatest: i32 = -1;
  if (load<u32>(column, HAS_BOUNDS) != 0 && rows > nulls) {
    const bits = <usize>load<u32>(column, NULL_BITS);
    const shift = load<u32>(column, TEXT_SHIFT);
    const ends = <usize>load<u32>(column, VALUES);
    let start = <usize>load<u32>(column, TEXT);
    let end = start;
    let leastStart: usize = 0;
    let leastLength: usize = 0;
    let leastPrefix: u64 = 0;
    let greatestStart: usize = 0;
    let greatestLength: usize = 0;
    let greatestPrefix: u64 = 0;
    for (let row: u32 = 0; row < rows; row++, start = end) {
      end = <usize>(load<u32>(ends + (<usize>row << 2)) - shift);
      const length = end - start;
      if (length == 0 && nulls != 0 && isBitSet(bits, row + firstBit)) continue;
      const prefix = prefixOf(start, length);
      const isFirst = least < 0;
      // Most texts are between the two by their first bytes.
      if (
        isFirst ||
        prefix < leastPrefix ||
        (prefix == leastPrefix && compare(start, length, leastStart, leastLength) < 0)
      ) {
        least = row;
        leastStart = start;
        leastLength = length;
        leastPrefix = prefix;
      }
      if (
        isFirst ||
        prefix > greatestPrefix ||
        (prefix == greatestPrefix && compare(start, length, greatestStart, greatestLength) > 0)
      ) {
        greatest = row;
        greatestStart = start;
        greatestLength = length;
        greatestPrefix = prefix;
      }
    }
  }
  store<i32>(column, least, LEAST);
  store<i32>(column, greatest, GREATEST);
}

@inline
function isBitSet(bits: usize, bit: u32): bool {
  return ((<u32>load<u8>(bits + <usize>(bit >> 3)) >> (bit & 7)) & 1) != 0;
}

/** The first eight bytes as a number that orders as they do; short texts are filled up with zeroes. */
@inline
function prefixOf(start: usize, length: usize): u64 {
  const word = load<u64>(start);
  return reversed(length < 8 ? firstBytes(word, length) : word);
}

/** So many bytes of a word, fewer than eight. */
@inline
function firstBytes(word: u64, count: usize): u64 {
  return word & ((<u64>1 << (<u64>count << 3)) - 1);
}

@inline
function reversed(word: u64): u64 {
  const v = i64x2.splat(word);
  return i64x2.extract_lane(i8x16.shuffle(v, v, 7, 6, 5, 4, 3, 2, 1, 0, 7, 6, 5, 4, 3, 2, 1, 0), 0);
}

function compare(a: usize, lengthA: usize, b: usize, lengthB: usize): i32 {
  const shared = min(lengthA, lengthB);
  let i: usize = 0;
  for (; i + 8 <= shared; i += 8) {
    const order = compareWords(load<u64>(a + i), load<u64>(b + i));
    if (order != 0) return order;
  }
  const rest = shared - i;
  const order = compareWords(firstBytes(load<u64>(a + i), rest), firstBytes(load<u64>(b + i), rest));
  return order != 0 ? order : <i32>lengthA - <i32>lengthB;
}

@inline
function compareWords(a: u64, b: u64): i32 {
  if (a == b) return 0;
  return reversed(a) < reversed(b) ? -1 : 1;
}
