/**
 * Where things lie in the module's memory, which the host lays out: it puts bodies in, adds columns and keys, and takes
 * finished columns out. The same numbers stand in `../block-reader.ts`.
 */

/** What a scan leaves for the host: four words, see `finish` in `rows.as`. */
export const RESULT: usize = 0x800;
/** Containers that the JSON reader is in: where each began its keys, and what it is. */
export const FRAMES: usize = 0x900;
export const MAX_DEPTH: u32 = 100;
/** Keys of the objects that the JSON reader is in. */
export const KEYS: usize = 0x1000;
export const MAX_LIVE_KEYS: u32 = 2048;

/** A column: words at these offsets. */
/** Rows of this block that are written; the rest are NULL until somebody writes them. */
export const ROWS: usize = 0;
/** How many of them are NULL. */
export const NULLS: usize = 4;
/** Values by row: of fixed width, bits, or where each text ends. */
export const VALUES: usize = 8;
/** Where the text of the block starts, and where it ends so far. */
export const TEXT: usize = 12;
export const TEXT_END: usize = 16;
/** Bits of the rows that are NULL, meaningless while none is. */
export const NULL_BITS: usize = 20;
/** What makes of an address in the text the offset that the builder needs. */
export const TEXT_SHIFT: usize = 24;
/** One of the widths below. */
export const WIDTH: usize = 28;
/** Whether its least and greatest text are looked for, and the rows that have them; -1 for none. */
export const HAS_BOUNDS: usize = 32;
export const LEAST: usize = 36;
export const GREATEST: usize = 40;
export const COLUMN_BYTES: usize = 64;

export const WIDTH_BIT: u32 = 0;
export const WIDTH_4: u32 = 4;
export const WIDTH_8: u32 = 8;
export const WIDTH_TEXT: u32 = 1;

/** A key as rows have it: words at these offsets. */
/** Bytes with quotes and colon. */
export const KEY_BYTES: usize = 0;
export const KIND: usize = 4;
/** The address of its column, if it has one. */
export const COLUMN: usize = 8;
export const HASH: usize = 16;
/** Where its bytes are, with 16 zero ones behind. */
export const TOKEN: usize = 20;
/** The first sixteen bytes, and which of them count. */
export const HEAD: usize = 32;
export const HEAD_MASK: usize = 48;
export const SLOT_BYTES: usize = 64;

/** A step from key to key: words at these offsets. See `key-order.as`. */
/** The slots of its key, and of the key that tells the kind of the row; 0 without one. */
export const KEY: usize = 0;
export const KIND_KEY: usize = 4;
/** The step that is likely to follow, and the one that did last. */
export const LIKELY: usize = 8;
export const LAST: usize = 12;
/** The step that took its turn the last time that this one had been taken. */
export const AFTER: usize = 16;
/** Whether several have followed. */
export const FORKS: usize = 20;
export const STEP_BYTES: usize = 32;
