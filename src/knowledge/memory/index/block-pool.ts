import { grown } from "./columns.ts";

/**
 * Lists of numbers side by side in one array, each in a block whose capacity is a power of two. A list that outgrows its
 * block moves to one of twice the size, and the old one is for the next list of its size. So a list is read straight
 * through, and appending costs a constant on average.
 */
export class BlockPool {
  values = new Uint32Array(256);
  #end = 0;
  /** The first free block by the exponent of its size, + 1; a free block holds the next one. */
  readonly #free = new Uint32Array(32);

  /** Where a block for `2 ** exponent` numbers begins. */
  take(exponent: number): number {
    const head = this.#free[exponent] ?? 0;
    if (head !== 0) {
      this.#free[exponent] = this.values[head - 1] ?? 0;
      return head - 1;
    }
    const start = this.#end;
    this.#end += 2 ** exponent;
    this.values = grown(this.values, this.#end);
    return start;
  }

  give(start: number, exponent: number): void {
    this.values[start] = this.#free[exponent] ?? 0;
    this.#free[exponent] = start + 1;
  }

  get sizeBytes(): number {
    return this.values.byteLength;
  }
}

/** Lists by number, in blocks of one pool. */
export class Lists {
  readonly pool = new BlockPool();
  starts = new Uint32Array(64);
  lengths = new Uint32Array(64);

  push(list: number, value: number): void {
    this.#reserve(list);
    const { pool } = this;
    const length = this.lengths[list] ?? 0;
    if (length === 0) this.starts[list] = pool.take(0);
    else if ((length & (length - 1)) === 0) this.#double(list, length);
    pool.values[(this.starts[list] ?? 0) + length] = value;
    this.lengths[list] = length + 1;
  }

  /** The same for the values from `from` to `to`. */
  append(list: number, values: Uint32Array, from: number, to: number): void {
    this.#reserve(list);
    const { pool } = this;
    const length = this.lengths[list] ?? 0;
    const grownTo = length + to - from;
    if (length === 0) this.starts[list] = pool.take(exponentOf(grownTo));
    else if (exponentOf(grownTo) > exponentOf(length))
      this.#move(list, length, exponentOf(length), exponentOf(grownTo));
    const start = (this.starts[list] ?? 0) + length;
    copy(values, { from, to }, pool.values, start);
    this.lengths[list] = grownTo;
  }

  /** Makes the list that of the first `count` values. */
  set(list: number, values: Uint32Array, count: number): void {
    this.#reserve(list);
    this.clear(list);
    if (count === 0) return;
    const start = this.pool.take(exponentOf(count));
    copy(values, { from: 0, to: count }, this.pool.values, start);
    this.starts[list] = start;
    this.lengths[list] = count;
  }

  clear(list: number): void {
    const length = this.lengths[list] ?? 0;
    if (length === 0) return;
    this.pool.give(this.starts[list] ?? 0, exponentOf(length));
    this.lengths[list] = 0;
  }

  /** Takes one such value out; the order of the others is not kept. False when there is none. */
  remove(list: number, value: number): boolean {
    const length = this.lengths[list] ?? 0;
    const start = this.starts[list] ?? 0;
    const values = this.pool.values.subarray(start, start + length);
    const at = values.indexOf(value);
    if (at === -1) return false;
    values[at] = values[length - 1] ?? 0;
    this.lengths[list] = length - 1;
    if (length === 1) this.pool.give(start, 0);
    else if (((length - 1) & (length - 2)) === 0) this.#halve(list, length - 1);
    return true;
  }

  /** The list's own numbers: valid until the next change of any list. */
  view(list: number): Uint32Array {
    const start = this.starts[list] ?? 0;
    return this.pool.values.subarray(start, start + this.lengthOf(list));
  }

  /** Where the list begins among the numbers of the pool. */
  startOf(list: number): number {
    return this.starts[list] ?? 0;
  }

  lengthOf(list: number): number {
    return this.lengths[list] ?? 0;
  }

  get sizeBytes(): number {
    return this.pool.sizeBytes + this.starts.byteLength + this.lengths.byteLength;
  }

  #reserve(list: number): void {
    if (list < this.starts.length) return;
    this.starts = grown(this.starts, list + 1);
    this.lengths = grown(this.lengths, list + 1);
  }

  #double(list: number, length: number): void {
    this.#move(list, length, exponentOf(length), exponentOf(length) + 1);
  }

  /** After the removal: `length` fills the half of its block. */
  #halve(list: number, length: number): void {
    this.#move(list, length, exponentOf(length) + 1, exponentOf(length));
  }

  #move(list: number, length: number, from: number, to: number): void {
    const { pool } = this;
    const old = this.starts[list] ?? 0;
    const start = pool.take(to);
    copy(pool.values, { from: old, to: old + length }, pool.values, start);
    pool.give(old, from);
    this.starts[list] = start;
  }
}

/** A loop costs less than `set` or `copyWithin` where there are few, as in most lists. */
function copy(values: Uint32Array, { from, to }: { from: number; to: number }, into: Uint32Array, at: number): void {
  if (to - from <= FEW) for (let i = from, end = at; i < to; i++, end++) into[end] = values[i] ?? 0;
  else into.set(values.subarray(from, to), at);
}

const FEW = 64;

/** The least block that holds so many. */
function exponentOf(length: number): number {
  return length <= 1 ? 0 : 32 - Math.clz32(length - 1);
}
