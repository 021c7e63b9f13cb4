/**
 * A split block Bloom filter, as in Parquet (Apache Parquet format, "BloomFilter"; after Putze, Sanders and Singler,
 * "Cache-, Hash- and Space-Efficient Bloom Filters", 2007): blocks of eight 32-bit words, and of every hash one bit in
 * each word of one block. Never says that a hash is missing which was added. Unlike Parquet's it takes 32-bit hashes:
 * their upper half chooses the block.
 */
export const WORDS_PER_BLOCK = 8;
export const BLOCK_BYTES = WORDS_PER_BLOCK * 4;
/** Half a hash chooses among no more. */
export const MAX_BLOCKS = 0x1_0000;

/** Adds a hash to a filter of as many words as there is room for. */
export function addHash(words: Int32Array, blocks: number, hash: number): void {
  const at = blockOf(hash, blocks) * WORDS_PER_BLOCK;
  // The salts are Parquet's.
  words[at] = (words[at] as number) | (1 << (Math.imul(hash, 0x47b6137b) >>> 27));
  words[at + 1] = (words[at + 1] as number) | (1 << (Math.imul(hash, 0x44974d91) >>> 27));
  words[at + 2] = (words[at + 2] as number) | (1 << (Math.imul(hash, 0x8824ad5b) >>> 27));
  words[at + 3] = (words[at + 3] as number) | (1 << (Math.imul(hash, 0xa2b7289d) >>> 27));
  words[at + 4] = (words[at + 4] as number) | (1 << (Math.imul(hash, 0x705495c7) >>> 27));
  words[at + 5] = (words[at + 5] as number) | (1 << (Math.imul(hash, 0x2df1424b) >>> 27));
  words[at + 6] = (words[at + 6] as number) | (1 << (Math.imul(hash, 0x9efc4947) >>> 27));
  words[at + 7] = (words[at + 7] as number) | (1 << (Math.imul(hash, 0x5c6bfb31) >>> 27));
}

const SALTS = Int32Array.of(
  0x47b6137b,
  0x44974d91,
  0x8824ad5b,
  0xa2b7289d,
  0x705495c7,
  0x2df1424b,
  0x9efc4947,
  0x5c6bfb31,
);

/** Whether the hash may have been added; the words are read as little-endian. */
export function hasHash(words: DataView, blocks: number, hash: number): boolean {
  const at = blockOf(hash, blocks) * BLOCK_BYTES;
  for (let i = 0; i < WORDS_PER_BLOCK; i++) {
    const bit = Math.imul(hash, SALTS[i] ?? 0) >>> 27;
    if (((words.getInt32(at + i * 4, true) >>> bit) & 1) === 0) return false;
  }
  return true;
}

/** A range of hashes to a block: of half as many blocks, each takes what two neighbours had. */
function blockOf(hash: number, blocks: number): number {
  return Math.imul(hash >>> 16, blocks) >>> 16;
}

/** Halves a filter of an even number of blocks: the first half of `words` is then the filter of the same hashes. */
export function foldBlocks(words: Int32Array, blocks: number): void {
  for (let block = 0; block < blocks; block += 2) {
    const from = block * WORDS_PER_BLOCK;
    const to = from >>> 1;
    for (let i = 0; i < WORDS_PER_BLOCK; i++) {
      words[to + i] = (words[from + i] as number) | (words[from + WORDS_PER_BLOCK + i] as number);
    }
  }
}

/** The part of the bits that are set. */
export function fillOf(words: Int32Array): number {
  let count = 0;
  for (let i = 0; i < words.length; i++) {
    // Counts pairs, fours and bytes of bits side by side (Warren, "Hacker's Delight").
    let word = words[i] as number;
    word -= (word >>> 1) & 0x55555555;
    word = (word & 0x33333333) + ((word >>> 2) & 0x33333333);
    word = (word + (word >>> 4)) & 0x0f0f0f0f;
    count += Math.imul(word, 0x01010101) >>> 24;
  }
  return count / (words.length * 32);
}
