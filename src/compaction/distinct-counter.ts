/**
 * Counts different 32-bit hashes: exactly up to `EXACT`, then by HyperLogLog (Flajolet et al., 2007) with 4,096 registers
 * and the linear counting of small numbers, which is off by 1.6 % in one case of three.
 */
const EXACT = 1_024;
const SLOTS = EXACT * 4;
const SLOT_SHIFT = 32 - 12;
const REGISTER_BITS = 12;
const REGISTERS = 1 << REGISTER_BITS;
const ALPHA = 0.7213 / (1 + 1.079 / REGISTERS);

export class DistinctCounter {
  /** The hashes seen; zero marks a free slot, and has a mark of its own. Dropped when there are too many. */
  #slots: Int32Array | undefined = new Int32Array(SLOTS);
  #hasZero = false;
  #count = 0;
  readonly #registers = new Uint8Array(REGISTERS);

  add(hash: number): void {
    const slots = this.#slots;
    if (slots === undefined) {
      this.#note(hash);
      return;
    }
    if (hash === 0) {
      if (!this.#hasZero) this.#count++;
      this.#hasZero = true;
      return;
    }
    let slot = hash >>> SLOT_SHIFT;
    while (slots[slot] !== hash) {
      if (slots[slot] === 0) {
        slots[slot] = hash;
        this.#count++;
        if (this.#count > EXACT) this.#goOnByEstimate(slots);
        return;
      }
      slot = (slot + 1) & (SLOTS - 1);
    }
  }

  get count(): number {
    if (this.#slots !== undefined) return this.#count;
    let sum = 0;
    let free = 0;
    for (const register of this.#registers) {
      sum += 1 / (1 << register);
      if (register === 0) free++;
    }
    const estimate = (ALPHA * REGISTERS * REGISTERS) / sum;
    return Math.round(estimate <= 2.5 * REGISTERS && free > 0 ? REGISTERS * Math.log(REGISTERS / free) : estimate);
  }

  #note(hash: number): void {
    const register = hash >>> (32 - REGISTER_BITS);
    const rank = Math.clz32((hash << REGISTER_BITS) | (1 << (REGISTER_BITS - 1))) + 1;
    if (rank > (this.#registers[register] as number)) this.#registers[register] = rank;
  }

  #goOnByEstimate(slots: Int32Array): void {
    for (const hash of slots) if (hash !== 0) this.#note(hash);
    if (this.#hasZero) this.#note(0);
    this.#slots = undefined;
  }
}
